//! `/proc/TID/schedstat`: run time, run-queue wait and time slices of one thread (Documentation/scheduler/sched-stats.rst).

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Schedstat {
    pub run_ns: u64,
    /// Time runnable but waiting for a CPU ("run delay").
    pub wait_ns: u64,
    /// Number of times it got a CPU.
    pub slices: u64,
}

impl Schedstat {
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split_ascii_whitespace().map(|n| n.parse::<u64>().ok());
        Some(Self { run_ns: numbers.next()??, wait_ns: numbers.next()??, slices: numbers.next()?? })
    }

    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            run_ns: self.run_ns.saturating_sub(earlier.run_ns),
            wait_ns: self.wait_ns.saturating_sub(earlier.wait_ns),
            slices: self.slices.saturating_sub(earlier.slices),
        }
    }
}

/// An open `schedstat` of one thread: each read is one system call. Usable from any thread.
#[derive(Debug)]
pub struct SchedstatReader {
    file: File,
}

impl SchedstatReader {
    /// Errors: the system's error when the kernel has no `schedstat` (`CONFIG_SCHED_INFO`).
    pub fn open_thread(tid: i32) -> io::Result<Self> {
        let path = format!("/proc/{tid}/schedstat");
        let file = File::open(&path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
        Ok(Self { file })
    }

    /// Errors: the system's error (the thread has ended), or a text that is not three numbers.
    pub fn read(&self) -> io::Result<Schedstat> {
        let mut text = [0_u8; 96];
        let len = self.file.read_at(&mut text, 0)?;
        std::str::from_utf8(&text[..len])
            .ok()
            .and_then(Schedstat::parse)
            .ok_or_else(|| io::Error::other("schedstat does not hold three numbers"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_needed() {
        let want = Schedstat { run_ns: 4_953_214, wait_ns: 120_000, slices: 17 };
        assert_eq!(Schedstat::parse("4953214 120000 17\n"), Some(want));
        assert_eq!(Schedstat::parse("4953214 120000"), None);
        assert_eq!(Schedstat::parse("a b c"), None);
    }

    #[test]
    fn another_threads_statistics_can_be_read_while_it_lives() {
        let tid = crate::thread::tid();
        let Ok(own) = SchedstatReader::open_thread(tid) else {
            return println!("skipped: no schedstat here");
        };
        std::thread::scope(|s| {
            let read = s.spawn(move || own.read()).join().unwrap().unwrap();
            assert!(read.slices >= 1);
        });
        assert!(SchedstatReader::open_thread(i32::MAX).is_err());
    }
}
