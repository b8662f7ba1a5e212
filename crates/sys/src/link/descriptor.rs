//! Links over descriptors: pipes, streams, sockets that keep messages apart, datagrams. One code for all.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use super::{LIMIT_NS, Link, Wait};
use crate::thread::monotonic_ns;

/// Refusals between two looks at the clock: some 10 us.
const LOOK_EVERY: u32 = 64;

/// Descriptors to read from and to write to; of sockets they are one and the same.
pub(super) struct Descriptors {
    from: OwnedFd,
    to: Option<OwnedFd>,
    wait: Wait,
    limit_ns: u64,
    /// Whether a read gives one message, whole.
    keeps_messages: bool,
    /// Whether messages may get lost or come late.
    loses: bool,
}

impl Descriptors {
    /// Of a socket, or of two pipes.
    pub(super) fn new(
        from: OwnedFd,
        to: Option<OwnedFd>,
        wait: Wait,
        [keeps_messages, loses]: [bool; 2],
    ) -> io::Result<Self> {
        for fd in [Some(&from), to.as_ref()].into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, wait == Wait::Polling)?;
        }
        if wait == Wait::Sleeping && to.is_some() {
            let why = "a pipe cannot wait with a time limit: use polling ends";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        let mut made = Self { from, to, wait, limit_ns: LIMIT_NS, keeps_messages, loses };
        made.set_limit(LIMIT_NS)?;
        Ok(made)
    }

    fn to(&self) -> BorrowedFd<'_> {
        self.to.as_ref().unwrap_or(&self.from).as_fd()
    }

    /// Repeats a call until it moves bytes; the bytes.
    fn moved(&self, mut call: impl FnMut() -> Result<usize, Errno>) -> io::Result<usize> {
        let (mut refusals, mut until_ns) = (0_u32, None);
        loop {
            match call() {
                Ok(n) => return Ok(n),
                // A sleeping socket says so when its time is over.
                Err(Errno::AGAIN) if self.wait == Wait::Sleeping => return Err(self.late()),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            refusals = refusals.wrapping_add(1);
            if refusals.is_multiple_of(LOOK_EVERY) {
                let now_ns = monotonic_ns();
                if now_ns > *until_ns.get_or_insert(now_ns.saturating_add(self.limit_ns)) {
                    return Err(self.late());
                }
            }
            std::hint::spin_loop();
        }
    }

    /// A message whose parts come one by one ends in time, too: each call of a sleeping socket has the whole limit.
    fn keep_limit(&self, until_ns: &mut Option<u64>) -> io::Result<()> {
        if self.wait == Wait::Sleeping {
            let now_ns = monotonic_ns();
            if now_ns > *until_ns.get_or_insert(now_ns.saturating_add(self.limit_ns)) {
                return Err(self.late());
            }
        }
        Ok(())
    }

    fn late(&self) -> io::Error {
        let why = format!("nothing moved for {} ms", self.limit_ns / 1_000_000);
        io::Error::new(io::ErrorKind::TimedOut, why)
    }

    /// A socket option that is a number, where the socket has it.
    fn option(&self, level: i32, name: i32) -> Option<i32> {
        let (mut value, mut bytes) = (0_i32, 4 as libc::socklen_t);
        // SAFETY: a live descriptor, and room for the four bytes that `bytes` says.
        let done = unsafe {
            libc::getsockopt(self.from.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut bytes)
        };
        (done == 0).then_some(value)
    }

    fn congestion_control(&self) -> Option<String> {
        let (mut name, mut bytes) = ([0_u8; 16], 16 as libc::socklen_t);
        // SAFETY: a live descriptor, and room for the 16 bytes that `bytes` says.
        let done = unsafe {
            libc::getsockopt(
                self.from.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_CONGESTION,
                name.as_mut_ptr().cast(),
                &raw mut bytes,
            )
        };
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        (done == 0).then(|| String::from_utf8_lossy(&name[..end]).into_owned())
    }
}

impl Link for Descriptors {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let (mut rest, mut until_ns) = (message, None);
        while !rest.is_empty() {
            if rest.len() < message.len() {
                self.keep_limit(&mut until_ns)?;
            }
            let n = self.moved(|| rustix::io::write(self.to(), rest))?;
            if self.keeps_messages && n < message.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = &rest[n.min(rest.len())..];
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<()> {
        let (mut at, mut until_ns) = (0, None);
        while at < message.len() {
            if at > 0 {
                self.keep_limit(&mut until_ns)?;
            }
            let n = self.moved(|| rustix::io::read(&self.from, &mut message[at..]))?;
            if n == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            if self.keeps_messages && n < message.len() {
                // Of datagrams it is a late one of an earlier size.
                if self.loses {
                    continue;
                }
                let why = format!("a message of {n} bytes where {} were agreed on", message.len());
                return Err(io::Error::new(io::ErrorKind::InvalidData, why));
            }
            at += n;
        }
        Ok(())
    }

    fn set_limit(&mut self, limit_ns: u64) -> io::Result<()> {
        self.limit_ns = limit_ns;
        if self.wait == Wait::Polling {
            return Ok(());
        }
        let time = libc::timeval {
            tv_sec: (limit_ns / 1_000_000_000) as _,
            // 0 would be no limit.
            tv_usec: (limit_ns % 1_000_000_000 / 1_000).max(1) as _,
        };
        for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
            // SAFETY: a live descriptor and a timeval of the length given.
            let done = unsafe {
                libc::setsockopt(
                    self.from.as_raw_fd(),
                    libc::SOL_SOCKET,
                    option,
                    (&raw const time).cast(),
                    size_of::<libc::timeval>() as libc::socklen_t,
                )
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    fn describe(&self) -> String {
        let mut words = Vec::new();
        if let Some(name) = self.congestion_control() {
            let delays = self.option(libc::IPPROTO_TCP, libc::TCP_NODELAY) == Some(0);
            words.push(if delays { "Nagle" } else { "TCP_NODELAY" }.to_owned());
            words.push(name);
            words.extend(self.segment_bytes().map(|b| format!("segments of {b} B")));
        }
        let buffer = |name| self.option(libc::SOL_SOCKET, name);
        if let Some((send, receive)) = buffer(libc::SO_SNDBUF).zip(buffer(libc::SO_RCVBUF)) {
            words.push(format!("buffers of {send} and {receive} B"));
        }
        words.join(", ")
    }

    fn segment_bytes(&self) -> Option<u64> {
        let bytes = self.option(libc::IPPROTO_TCP, libc::TCP_MAXSEG)?;
        u64::try_from(bytes).ok().filter(|b| *b > 0)
    }
}
