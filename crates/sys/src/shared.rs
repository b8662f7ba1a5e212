//! Counters in memory that several processes share.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::MapFlags;

use crate::process::keep_passed;
use crate::region::{Mapping, READ_WRITE, check_sealed, sealed_file};

/// Bytes from one counter to the next: two lines of 64 bytes, since processors fetch lines in pairs.
const STRIDE_BYTES: usize = 128;

/// No use of ours comes near this; a larger number is a mistake in a request.
const MAX_COUNTERS: usize = 1 << 16;

/// Counters of 64 bits in a `memfd`, each on cache lines of its own. All operations are relaxed: a counter says how much
/// was done, and orders nothing else.
#[derive(Debug)]
pub struct SharedCounters {
    memory: OwnedFd,
    mapping: Mapping,
    len: usize,
}

// SAFETY: the memory is only reached through atomics, which may be used from several threads.
unsafe impl Sync for SharedCounters {}

impl SharedCounters {
    /// `n` counters of 0. Pass [`SharedCounters::fd`] to the other process.
    /// Errors: [`io::ErrorKind::InvalidInput`] for no counters or more than 65536; else the system's error.
    pub fn create(n: usize) -> io::Result<Self> {
        Self::map(sealed_file(c"machmeter-counters", bytes_for(n)?)?, n)
    }

    /// The counters behind a descriptor that the starter passed under the number `fd`; it is duplicated. Errors:
    /// [`io::ErrorKind::InvalidInput`] when it is not open or holds not exactly `n` counters.
    pub fn open_fd(fd: RawFd, n: usize) -> io::Result<Self> {
        let bytes = bytes_for(n)?;
        if !keep_passed(fd) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("descriptor {fd}: not open")));
        }
        // SAFETY: the call above has shown that it is open; it is borrowed for the duplication only.
        let passed = unsafe { BorrowedFd::borrow_raw(fd) };
        let memory = passed.try_clone_to_owned()?;
        check_sealed(&memory, bytes, |size| {
            format!("descriptor {fd}: holds no {n} counters ({size} bytes)")
        })?;
        Self::map(memory, n)
    }

    fn map(memory: OwnedFd, len: usize) -> io::Result<Self> {
        let mapping = Mapping::of_file(&memory, len * STRIDE_BYTES, READ_WRITE, MapFlags::SHARED)?;
        Ok(Self { memory, mapping, len })
    }

    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.as_fd()
    }

    /// Adds `n` to counter `i`, wrapping.
    pub fn add(&self, i: usize, n: u64) {
        self.counter(i).fetch_add(n, Ordering::Relaxed);
    }

    pub fn get(&self, i: usize) -> u64 {
        self.counter(i).load(Ordering::Relaxed)
    }

    /// The sum of all counters, wrapping.
    pub fn sum(&self) -> u64 {
        (0..self.len).fold(0, |sum, i| sum.wrapping_add(self.get(i)))
    }

    fn counter(&self, i: usize) -> &AtomicU64 {
        assert!(i < self.len, "counter {i} of {}", self.len);
        // SAFETY: inside the mapping, as just checked.
        let at = unsafe { self.mapping.start().add(i * STRIDE_BYTES) };
        // SAFETY: mapped for as long as self, aligned to 128 bytes, and reached through atomics only.
        unsafe { AtomicU64::from_ptr(at.as_ptr().cast()) }
    }
}

fn bytes_for(n: usize) -> io::Result<usize> {
    if n == 0 || n > MAX_COUNTERS {
        let why = format!("{n} shared counters: 1 to {MAX_COUNTERS} are possible");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    Ok(n * STRIDE_BYTES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn two_mappings_see_the_same_counters() {
        let ours = SharedCounters::create(3).unwrap();
        let theirs = SharedCounters::open_fd(ours.fd().as_raw_fd(), 3).unwrap();
        std::thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| (0..10_000).for_each(|_| theirs.add(1, 2)));
            }
        });
        theirs.add(2, u64::MAX);
        ours.add(2, 6);
        assert_eq!((ours.get(0), ours.get(1), theirs.get(2)), (0, 80_000, 5));
    }

    #[test]
    fn counters_outlive_the_mapping_that_made_them() {
        let ours = SharedCounters::create(1).unwrap();
        ours.add(0, 7);
        let theirs = SharedCounters::open_fd(ours.fd().as_raw_fd(), 1).unwrap();
        drop(ours);
        assert_eq!(theirs.get(0), 7);
    }

    #[test]
    fn wrong_descriptors_and_numbers_are_refused() {
        let ours = SharedCounters::create(2).unwrap();
        let fd = ours.fd().as_raw_fd();
        for (fd, n) in [(fd, 3), (fd, 1), (fd, 0), (9_999, 2), (0, 2), (-1, 2)] {
            let e = SharedCounters::open_fd(fd, n).unwrap_err();
            assert_eq!(e.kind(), io::ErrorKind::InvalidInput, "{fd} {n}: {e}");
        }
        let file = tempfile::tempfile().unwrap();
        file.set_len(256).unwrap();
        assert!(SharedCounters::open_fd(file.as_raw_fd(), 2).is_err(), "a file that could shrink");
        assert!(SharedCounters::create(0).is_err() && SharedCounters::create(1 << 17).is_err());
    }

    #[test]
    #[should_panic(expected = "counter 2 of 2")]
    fn a_counter_that_is_not_there_is_not_read() {
        SharedCounters::create(2).unwrap().get(2);
    }
}
