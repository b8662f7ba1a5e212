//! Descriptors that carry events within one thread: pipe, eventfd, epoll, select, timerfd, and a futex that nobody waits on.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::AtomicU32;

use rustix::event::{EventfdFlags, epoll, eventfd};
use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};

use super::{expect, number, zero};

/// Writes `bytes` to a descriptor; fails if fewer were taken.
#[inline]
pub fn write_all_at_once(to: &impl AsRawFd, bytes: &[u8]) -> io::Result<()> {
    // SAFETY: the bytes are live for their length.
    let n = unsafe { libc::write(to.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    expect("bytes written", number(n as libc::c_long)? as i64, bytes.len() as i64)
}

/// Reads all of `bytes` from a descriptor in one call; fails if fewer came.
#[inline]
pub fn read_all_at_once(from: &impl AsRawFd, bytes: &mut [u8]) -> io::Result<()> {
    // SAFETY: the buffer is live and writable for its length.
    let n = unsafe { libc::read(from.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len()) };
    expect("bytes read", number(n as libc::c_long)? as i64, bytes.len() as i64)
}

/// A pipe, or a pair of stream sockets, whose both ends are here.
#[derive(Debug)]
pub struct Pipe {
    reader: OwnedFd,
    writer: OwnedFd,
}

impl Pipe {
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        Ok(Self { reader, writer })
    }

    /// A pair of Unix stream sockets.
    pub fn of_sockets() -> io::Result<Self> {
        let (reader, writer) = UnixStream::pair()?;
        Ok(Self { reader: reader.into(), writer: writer.into() })
    }

    /// Writes a message and reads it, one call each; fails if the kernel does not take all of it at once.
    #[inline]
    pub fn pass(&self, message: &[u8], into: &mut [u8]) -> io::Result<()> {
        write_all_at_once(&self.writer, message)?;
        read_all_at_once(&self.reader, into)
    }

    /// Puts one byte in; waits while the pipe is full.
    #[inline]
    pub fn put(&self, byte: u8) -> io::Result<()> {
        write_all_at_once(&self.writer, &[byte])
    }

    /// Takes one byte out; waits while there is none. `None` when all writers are gone.
    #[inline]
    pub fn take(&self) -> io::Result<Option<u8>> {
        let mut byte = [0_u8];
        // SAFETY: one writable byte.
        let n = unsafe { libc::read(self.reader.as_raw_fd(), byte.as_mut_ptr().cast(), 1) };
        Ok((number(n as libc::c_long)? == 1).then_some(byte[0]))
    }
}

/// An eventfd (eventfd(2)).
#[derive(Debug)]
pub struct Event(File);

impl Event {
    pub fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?.into()))
    }

    /// Adds `count` (at least 1).
    #[inline]
    pub fn add(&self, count: u64) -> io::Result<()> {
        write_all_at_once(&self.0, &count.to_ne_bytes())
    }

    #[inline]
    pub fn add_and_take(&self, count: u64) -> io::Result<()> {
        self.add(count)?;
        let mut bytes = [0_u8; 8];
        read_all_at_once(&self.0, &mut bytes)?;
        expect("count of the eventfd", u64::from_ne_bytes(bytes) as i64, count as i64)
    }
}

/// Descriptors of which some are ready, asked about by epoll, poll and select.
#[derive(Debug)]
pub struct Waiting {
    ready: i64,
    epoll: OwnedFd,
    events: Vec<Event>,
    polled: Vec<libc::pollfd>,
}

impl Waiting {
    /// Most descriptors that are ready.
    const MOST_READY: usize = 8;

    /// `count` eventfds (up to 512), of which the last `ready` (1 to 8) are. Errors: too many open files; other counts.
    pub fn new(count: usize, ready: usize) -> io::Result<Self> {
        if count > 512 || !(1..=count.min(Self::MOST_READY)).contains(&ready) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let events: Vec<Event> = (0..count).map(|_| Event::new()).collect::<io::Result<_>>()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for e in &events {
            epoll::add(&epoll, &e.0, epoll::EventData::new_u64(0), epoll::EventFlags::IN)?;
        }
        for e in &events[count - ready..] {
            e.add(1)?;
        }
        let polled = |e: &Event| libc::pollfd { fd: e.0.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        Ok(Self { ready: ready as i64, epoll, polled: events.iter().map(polled).collect(), events })
    }

    /// `epoll_wait` without waiting.
    #[inline]
    pub fn epoll(&self) -> io::Result<()> {
        let mut ready = [libc::epoll_event { events: 0, u64: 0 }; Self::MOST_READY];
        let most = ready.len() as libc::c_int;
        // SAFETY: room for as many events as is said.
        let n = unsafe { libc::epoll_wait(self.epoll.as_raw_fd(), ready.as_mut_ptr(), most, 0) };
        expect("ready descriptors", i64::from(n), self.ready)
    }

    /// `poll` without waiting.
    #[inline]
    pub fn poll(&mut self) -> io::Result<()> {
        // SAFETY: a live, writable slice of its length.
        let n = unsafe { libc::poll(self.polled.as_mut_ptr(), self.polled.len() as libc::nfds_t, 0) };
        expect("ready descriptors", i64::from(n), self.ready)
    }

    /// `select` for reading without waiting; its set is made anew each time, as select(2) demands.
    /// Errors: as [`Self::epoll`]; descriptors beyond what a set holds.
    #[inline]
    pub fn select(&self) -> io::Result<()> {
        // SAFETY: a set of integers, for which all zeros are valid.
        let mut set: libc::fd_set = unsafe { std::mem::zeroed() };
        let mut highest = 0;
        for e in &self.events {
            let fd = e.0.as_raw_fd();
            if fd as usize >= libc::FD_SETSIZE {
                return Err(io::Error::other("a descriptor beyond what select can take"));
            }
            highest = highest.max(fd);
            // SAFETY: the descriptor fits into the set, as was just seen.
            unsafe { libc::FD_SET(fd, &raw mut set) };
        }
        let mut no_wait = libc::timeval { tv_sec: 0, tv_usec: 0 };
        let none = std::ptr::null_mut();
        // SAFETY: a live set and timeout; null where nothing is asked.
        let n = unsafe { libc::select(highest + 1, &raw mut set, none, none, &raw mut no_wait) };
        expect("ready descriptors", i64::from(n), self.ready)
    }
}

#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// On `CLOCK_MONOTONIC`, not set.
    pub fn new() -> io::Result<Self> {
        Ok(Self(timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?))
    }

    /// Sets it to an hour from now; fails if it was not set to about that before (the first time: to nothing).
    #[inline]
    pub fn set(&self) -> io::Result<()> {
        let zero_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let hour = libc::timespec { tv_sec: 3_600, tv_nsec: 0 };
        let new = libc::itimerspec { it_interval: zero_time, it_value: hour };
        // SAFETY: integers, for which all zeros are valid.
        let mut old: libc::itimerspec = unsafe { std::mem::zeroed() };
        // SAFETY: live values of the right type.
        zero(unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &raw const new, &raw mut old) })?;
        let before_s = old.it_value.tv_sec;
        if before_s == 0 || (3_000..=3_600).contains(&before_s) {
            Ok(())
        } else {
            expect("timer's earlier setting, s", before_s, 3_600)
        }
    }
}

/// `FUTEX_WAKE` of one waiter where nobody waits.
#[inline]
pub fn wake_nobody(word: &AtomicU32) -> io::Result<()> {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is live; the operation reads nothing of it.
    let woken = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
    expect("woken", number(woken)? as i64, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_out_as_they_went_in() {
        let pipe = Pipe::new().unwrap();
        pipe.put(1).unwrap();
        assert_eq!(pipe.take().unwrap(), Some(1));
        for pipe in [Pipe::new().unwrap(), Pipe::of_sockets().unwrap()] {
            let mut into = [0_u8; 5];
            pipe.pass(b"hello", &mut into).unwrap();
            assert_eq!(&into, b"hello");
        }
        let event = Event::new().unwrap();
        (1..50).for_each(|n| event.add_and_take(n).unwrap());
        let timer = Timer::new().unwrap();
        timer.set().unwrap();
        timer.set().unwrap();
        wake_nobody(&AtomicU32::new(0)).unwrap();
    }

    #[test]
    fn some_of_many_are_ready_and_fewer_are_an_error() {
        for (count, ready) in [(1, 1), (2, 1), (64, 1), (200, 1), (8, 8)] {
            let mut waiting = Waiting::new(count, ready).unwrap();
            for _ in 0..3 {
                waiting.epoll().unwrap();
                waiting.poll().unwrap();
                waiting.select().unwrap();
            }
            let mut bytes = [0_u8; 8];
            read_all_at_once(&waiting.events[count - 1].0, &mut bytes).unwrap();
            for e in [waiting.epoll(), waiting.poll(), waiting.select()] {
                assert!(e.unwrap_err().to_string().contains(&format!("{} instead of {ready}", ready - 1)));
            }
        }
        for (count, ready) in [(0, 0), (0, 1), (513, 1), (8, 0), (8, 9), (64, 9)] {
            assert!(Waiting::new(count, ready).is_err(), "{ready} of {count}");
        }
    }
}
