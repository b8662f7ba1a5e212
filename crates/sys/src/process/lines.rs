//! Lines through a pipe, read and written within a time limit.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use crate::thread::monotonic_ns;

/// A line may be this long, without its line feed.
pub const MAX_LINE_BYTES: usize = 64 << 20;

const CHUNK_BYTES: usize = 64 << 10;

/// Why no line could be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// Nothing complete came in time; what came is kept for the next call.
    #[error("no line within {within_ns} ns")]
    TimedOut {
        /// The time limit.
        within_ns: u64,
    },
    /// More than [`MAX_LINE_BYTES`] without a line feed.
    #[error("a line of more than {MAX_LINE_BYTES} bytes")]
    TooLong,
    /// The line is not UTF-8.
    #[error("a line that is not UTF-8")]
    NotText,
    /// There is no pipe, or it failed.
    #[error("{0}")]
    Os(#[from] io::Error),
}

/// The reading end of a pipe that carries lines.
#[derive(Debug)]
pub struct LineReader {
    fd: OwnedFd,
    buffered: Vec<u8>,
    /// Bytes of `buffered` known to hold no line feed.
    searched: usize,
    ended: bool,
}

impl LineReader {
    pub(super) fn new(fd: OwnedFd) -> Self {
        Self { fd, buffered: Vec::new(), searched: 0, ended: false }
    }

    /// The next line; `None` at the end. A last line without line feed counts. `within_ns` of `None` waits for ever.
    ///
    /// # Errors
    /// [`ReadError`]; after [`ReadError::TimedOut`] the call may be repeated.
    pub fn next(&mut self, within_ns: Option<u64>) -> Result<Option<String>, ReadError> {
        let deadline_ns = within_ns.map(|n| monotonic_ns().saturating_add(n));
        loop {
            if let Some(line) = self.take_line() {
                return text(line).map(Some);
            }
            if self.ended {
                let rest = std::mem::take(&mut self.buffered);
                self.searched = 0;
                return if rest.is_empty() { Ok(None) } else { text(rest).map(Some) };
            }
            if self.buffered.len() > MAX_LINE_BYTES {
                return Err(ReadError::TooLong);
            }
            if !ready(self.fd.as_fd(), libc::POLLIN, deadline_ns)? {
                return Err(ReadError::TimedOut { within_ns: within_ns.unwrap_or(u64::MAX) });
            }
            self.fill()?;
        }
    }

    fn take_line(&mut self) -> Option<Vec<u8>> {
        let Some(at) = self.buffered[self.searched..].iter().position(|b| *b == b'\n') else {
            self.searched = self.buffered.len();
            return None;
        };
        let after = self.buffered.split_off(self.searched + at + 1);
        let mut line = std::mem::replace(&mut self.buffered, after);
        line.pop();
        self.searched = 0;
        Some(line)
    }

    fn fill(&mut self) -> io::Result<()> {
        let mut chunk = vec![0_u8; CHUNK_BYTES];
        match rustix::io::read(&self.fd, &mut chunk) {
            Ok(0) => self.ended = true,
            Ok(n) => self.buffered.extend_from_slice(&chunk[..n]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e.into()),
        }
        Ok(())
    }
}

fn text(line: Vec<u8>) -> Result<String, ReadError> {
    String::from_utf8(line).map_err(|_| ReadError::NotText)
}

/// Writes `line` and a line feed to a descriptor that does not block.
pub(super) fn write_line(fd: BorrowedFd<'_>, line: &str, within_ns: u64) -> io::Result<()> {
    if line.len() > MAX_LINE_BYTES || line.contains('\n') {
        let why = format!("a line is one line of at most {MAX_LINE_BYTES} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let bytes = [line.as_bytes(), b"\n"].concat();
    let deadline_ns = monotonic_ns().saturating_add(within_ns);
    let mut left = bytes.as_slice();
    while !left.is_empty() {
        if !ready(fd, libc::POLLOUT, Some(deadline_ns))? {
            let why = format!("the other side did not take a line within {within_ns} ns");
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        match rustix::io::write(fd, left) {
            Ok(n) => left = &left[n..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}

/// Waits until `fd` is ready for `events` (or was closed by the other side); false when `deadline_ns` came first.
fn ready(fd: BorrowedFd<'_>, events: libc::c_short, deadline_ns: Option<u64>) -> io::Result<bool> {
    loop {
        let left_ms = match deadline_ns {
            None => -1,
            Some(d) => d.saturating_sub(monotonic_ns()).div_ceil(1_000_000).min(1_000_000) as libc::c_int,
        };
        let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
        // SAFETY: one live, writable pollfd.
        let n = unsafe { libc::poll(&raw mut poll, 1, left_ms) };
        if n > 0 {
            return Ok(true);
        }
        if n < 0 {
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::Interrupted {
                return Err(e);
            }
        }
        if deadline_ns.is_some_and(|d| monotonic_ns() >= d) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe() -> (LineReader, OwnedFd) {
        let (r, w) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        (LineReader::new(r), w)
    }

    #[test]
    fn lines_come_whole_however_the_bytes_came() {
        let (mut lines, w) = pipe();
        rustix::io::write(&w, b"one\ntwo\nthr").unwrap();
        assert_eq!(lines.next(Some(0)).unwrap().unwrap(), "one");
        assert_eq!(lines.next(Some(0)).unwrap().unwrap(), "two");
        assert!(matches!(lines.next(Some(5_000_000)), Err(ReadError::TimedOut { within_ns: 5_000_000 })));
        rustix::io::write(&w, b"ee\n\nlast").unwrap();
        drop(w);
        let rest: Vec<String> = std::iter::from_fn(|| lines.next(None).unwrap()).collect();
        assert_eq!(rest, ["three", "", "last"]);
        assert!(lines.next(None).unwrap().is_none(), "the end stays the end");
    }

    #[test]
    fn a_reader_that_does_not_read_blocks_no_writer_and_a_long_line_passes_when_it_does() {
        let (mut lines, w) = pipe();
        rustix::io::ioctl_fionbio(&w, true).unwrap();
        let long = "x".repeat(1 << 20);
        let begin_ns = monotonic_ns();
        let e = write_line(w.as_fd(), &long, 50_000_000).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::TimedOut);
        assert!(monotonic_ns() - begin_ns >= 50_000_000);
        drop(w);
        assert!(lines.next(None).unwrap().unwrap().len() < long.len());

        let (mut lines, w) = pipe();
        rustix::io::ioctl_fionbio(&w, true).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| write_line(w.as_fd(), &long, 20_000_000_000).unwrap());
            assert_eq!(lines.next(Some(20_000_000_000)).unwrap().unwrap(), long);
        });
        assert!(write_line(w.as_fd(), "a\nb", 0).is_err());
    }

    #[test]
    fn a_closed_reader_and_bytes_that_are_no_text_are_errors() {
        let (lines, w) = pipe();
        drop(lines);
        // The test harness ignores SIGPIPE, as the program does.
        assert!(write_line(w.as_fd(), "nobody", 1_000_000).is_err());
        let (mut lines, w) = pipe();
        rustix::io::write(&w, b"\xff\xfe\nfine\n").unwrap();
        assert!(matches!(lines.next(None), Err(ReadError::NotText)));
        assert_eq!(lines.next(None).unwrap().unwrap(), "fine");
    }
}
