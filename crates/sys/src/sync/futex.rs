//! The futex: a word in memory on which one can sleep as long as it holds a value (futex(2)).

use std::io;
use std::sync::atomic::AtomicU32;

use rustix::thread::futex::{self, Flags};

use super::Sharing;
use super::place::Place;
use crate::thread::timespec;

/// A word to wait on, 0 at first.
#[derive(Debug)]
pub struct Word {
    place: Place<AtomicU32>,
    flags: Flags,
}

impl Word {
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let flags = match sharing {
            Sharing::Threads => Flags::PRIVATE,
            Sharing::Processes => Flags::empty(),
        };
        Ok(Self { place: Place::new()?, flags })
    }

    #[inline]
    pub fn value(&self) -> &AtomicU32 {
        // SAFETY: mapped, aligned, zero at first, alive as long as self, and reached as this type only.
        unsafe { AtomicU32::from_ptr(self.place.pointer().cast()) }
    }

    /// Sleeps if the word holds `expected`, until woken or `timeout_ns` later. Returns at once, false, if it does not;
    /// true says nothing about the reason for waking.
    #[inline]
    pub fn wait(&self, expected: u32, timeout_ns: Option<u64>) -> bool {
        let timeout = timeout_ns.map(timespec);
        futex::wait(self.value(), self.flags, expected, timeout.as_ref()) != Err(rustix::io::Errno::AGAIN)
    }

    /// Wakes at most `sleepers`; how many were woken.
    #[inline]
    pub fn wake(&self, sleepers: u32) -> usize {
        futex::wake(self.value(), self.flags, sleepers.min(i32::MAX as u32)).unwrap_or(0)
    }
}
