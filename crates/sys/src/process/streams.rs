//! Streams that are read and written within a time limit.

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use crate::thread::{monotonic_ns, timespec};

/// What a [`TimedWriter`] waits for another side that does not read.
const WRITE_WITHIN_NS: u64 = 2_000_000_000;

/// A stream of bytes that ends a wait at a deadline.
pub trait ReadUntil {
    /// Reads what is there, waiting for the first byte until `until_ns` (monotonic; `None` waits for ever); 0 is the end.
    /// Errors: [`io::ErrorKind::TimedOut`] when nothing came in time, else the system's error.
    fn read_until(&mut self, buffer: &mut [u8], until_ns: Option<u64>) -> io::Result<usize>;
}

impl<T: AsFd> ReadUntil for T {
    fn read_until(&mut self, buffer: &mut [u8], until_ns: Option<u64>) -> io::Result<usize> {
        let read = || rustix::io::read(self.as_fd(), &mut *buffer);
        moved(self.as_fd(), PollFlags::IN, until_ns, read)?.ok_or_else(|| io::ErrorKind::TimedOut.into())
    }
}

/// Bytes that are all there.
#[derive(Debug)]
pub struct InMemory<'a>(pub &'a [u8]);

impl ReadUntil for InMemory<'_> {
    fn read_until(&mut self, buffer: &mut [u8], _until_ns: Option<u64>) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

/// The writing end of a pipe that does not block. A write that makes no progress for 2 s fails.
#[derive(Debug)]
pub struct TimedWriter {
    fd: OwnedFd,
    within_ns: u64,
}

impl TimedWriter {
    pub(super) fn new(fd: OwnedFd) -> io::Result<Self> {
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(Self { fd, within_ns: WRITE_WITHIN_NS })
    }
}

impl Write for TimedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let until_ns = monotonic_ns().saturating_add(self.within_ns);
        let write = || rustix::io::write(&self.fd, bytes);
        moved(self.fd.as_fd(), PollFlags::OUT, Some(until_ns), write)?.ok_or_else(|| {
            let why = format!("the other side read nothing for {} ms", self.within_ns / 1_000_000);
            io::Error::new(io::ErrorKind::TimedOut, why)
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What `call` moves once `fd` is ready for it; `None` when `deadline_ns` came first.
fn moved(
    fd: BorrowedFd<'_>,
    events: PollFlags,
    deadline_ns: Option<u64>,
    mut call: impl FnMut() -> rustix::io::Result<usize>,
) -> io::Result<Option<usize>> {
    while ready(fd, events, deadline_ns)? {
        match call() {
            Err(Errno::INTR | Errno::AGAIN) => {}
            moved => return Ok(Some(moved?)),
        }
    }
    Ok(None)
}

/// Waits until `fd` is ready for `events` (or was closed by the other side); false when `deadline_ns` came first.
pub(super) fn ready(fd: BorrowedFd<'_>, events: PollFlags, deadline_ns: Option<u64>) -> io::Result<bool> {
    loop {
        let left = deadline_ns.map(|d| timespec(d.saturating_sub(monotonic_ns())));
        match poll(&mut [PollFd::from_borrowed_fd(fd, events)], left.as_ref()) {
            Ok(0) | Err(Errno::INTR) => {}
            Ok(_) => return Ok(true),
            Err(e) => return Err(e.into()),
        }
        if deadline_ns.is_some_and(|d| monotonic_ns() >= d) {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pipe(within_ns: u64) -> (OwnedFd, TimedWriter) {
        let (r, w) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
        (r, TimedWriter { within_ns, ..TimedWriter::new(w).unwrap() })
    }

    #[test]
    fn a_reader_waits_until_its_deadline_and_sees_the_end() {
        let (mut r, mut w) = pipe(0);
        let mut buffer = [0; 8];
        let begin_ns = monotonic_ns();
        let e = r.read_until(&mut buffer, Some(begin_ns + 5_000_000)).unwrap_err();
        assert!(e.kind() == io::ErrorKind::TimedOut && monotonic_ns() >= begin_ns + 5_000_000);
        w.write_all(b"one").unwrap();
        assert_eq!(r.read_until(&mut buffer, Some(0)).unwrap(), 3);
        drop(w);
        assert_eq!(r.read_until(&mut buffer, None).unwrap(), 0);
    }

    #[test]
    fn a_reader_that_does_not_read_blocks_no_writer_and_much_passes_when_it_does() {
        let long = vec![b'x'; 1 << 20];
        let (r, mut w) = pipe(50_000_000);
        let begin_ns = monotonic_ns();
        assert_eq!(w.write_all(&long).unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!(monotonic_ns() - begin_ns >= 50_000_000);
        drop(r);
        // The test harness ignores SIGPIPE, as the program does.
        assert_eq!(w.write_all(b"nobody").unwrap_err().kind(), io::ErrorKind::BrokenPipe);

        let (mut r, mut w) = pipe(20_000_000_000);
        std::thread::scope(|s| {
            s.spawn(move || w.write_all(&long).unwrap());
            let (mut buffer, mut bytes) = (vec![0; 1 << 16], 0);
            while let n @ 1.. = r.read_until(&mut buffer, None).unwrap() {
                bytes += n;
            }
            assert_eq!(bytes, 1 << 20);
        });
    }
}
