//! Event counters (eventfd(2)) and pipes (pipe(2)), one event at a time.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{EventfdFlags, eventfd};
use rustix::pipe::PipeFlags;

/// An event counter, 0 at first.
#[derive(Debug)]
pub struct EventCounter(OwnedFd);

impl EventCounter {
    /// With `polls`, [`Self::take`] returns false at once instead of sleeping.
    pub fn new(polls: bool) -> io::Result<Self> {
        let mut flags = EventfdFlags::CLOEXEC | EventfdFlags::SEMAPHORE;
        flags.set(EventfdFlags::NONBLOCK, polls);
        Ok(Self(eventfd(0, flags)?))
    }

    #[inline]
    pub fn give(&self) -> bool {
        rustix::io::write(&self.0, &1_u64.to_ne_bytes()) == Ok(8)
    }

    /// Takes one event; sleeps until there is one unless it polls.
    #[inline]
    pub fn take(&self) -> bool {
        take(|| rustix::io::read(&self.0, &mut [0_u8; 8]).map(|n| n == 8))
    }
}

/// A pipe through which single bytes go.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    /// With `polls`, [`Self::take`] returns false at once instead of sleeping.
    pub fn new(polls: bool) -> io::Result<Self> {
        let flags = PipeFlags::CLOEXEC | if polls { PipeFlags::NONBLOCK } else { PipeFlags::empty() };
        let (reader, writer) = rustix::pipe::pipe_with(flags)?;
        Ok(Self { reader, writer })
    }

    #[inline]
    pub fn give(&self) -> bool {
        rustix::io::write(&self.writer, &[1]) == Ok(1)
    }

    /// Reads one byte; sleeps until there is one unless it polls.
    #[inline]
    pub fn take(&self) -> bool {
        take(|| rustix::io::read(&self.reader, &mut [0_u8; 1]).map(|n| n == 1))
    }
}

/// A signal may interrupt a sleep; that is no event.
#[inline]
fn take(mut read: impl FnMut() -> rustix::io::Result<bool>) -> bool {
    loop {
        match read() {
            Ok(taken) => return taken,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
    }
}
