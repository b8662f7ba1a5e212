//! Links over descriptors: pipes, streams, sockets that keep messages apart, datagrams. One code for all.

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt;

use super::{LIMIT_NS, Link, Patience, Wait, late};

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
        let (mut refusals, mut patience) = (0_u32, Patience::new(self.limit_ns));
        loop {
            match call() {
                Ok(n) => return Ok(n),
                // A sleeping socket says so when its time is over.
                Err(Errno::AGAIN) if self.wait == Wait::Sleeping => return Err(late(self.limit_ns)),
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
            refusals = refusals.wrapping_add(1);
            if refusals.is_multiple_of(LOOK_EVERY) {
                patience.look()?;
            }
            std::hint::spin_loop();
        }
    }

    /// A message whose parts come one by one ends in time, too: each call of a sleeping socket has the whole limit.
    fn keep_limit(&self, patience: &mut Patience) -> io::Result<()> {
        if self.wait == Wait::Sleeping { patience.look() } else { Ok(()) }
    }
}

impl Link for Descriptors {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let (mut rest, mut patience) = (message, Patience::new(self.limit_ns));
        while !rest.is_empty() {
            if rest.len() < message.len() {
                self.keep_limit(&mut patience)?;
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
        let (mut at, mut patience) = (0, Patience::new(self.limit_ns));
        while at < message.len() {
            if at > 0 {
                self.keep_limit(&mut patience)?;
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
        // 0 would be no limit.
        let time = Some(Duration::from_nanos(limit_ns.max(1_000)));
        sockopt::set_socket_timeout(&self.from, sockopt::Timeout::Recv, time)?;
        Ok(sockopt::set_socket_timeout(&self.from, sockopt::Timeout::Send, time)?)
    }

    fn describe(&self) -> String {
        let mut words = Vec::new();
        if let Ok(name) = sockopt::tcp_congestion(&self.from) {
            let delays = sockopt::tcp_nodelay(&self.from) == Ok(false);
            words.push(if delays { "Nagle" } else { "TCP_NODELAY" }.to_owned());
            words.push(name);
            words.extend(self.segment_bytes().map(|b| format!("segments of {b} B")));
        }
        let buffers =
            (sockopt::socket_send_buffer_size(&self.from), sockopt::socket_recv_buffer_size(&self.from));
        if let (Ok(send), Ok(receive)) = buffers {
            words.push(format!("buffers of {send} and {receive} B"));
        }
        words.join(", ")
    }

    fn segment_bytes(&self) -> Option<u64> {
        let (mut bytes, mut room) = (0_i32, size_of::<i32>() as libc::socklen_t);
        let (socket, into) = (self.from.as_raw_fd(), (&raw mut bytes).cast());
        // SAFETY: a live descriptor, and as much room as is said.
        let told =
            unsafe { libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, into, &raw mut room) };
        u64::try_from(bytes).ok().filter(|b| told == 0 && *b > 0)
    }
}
