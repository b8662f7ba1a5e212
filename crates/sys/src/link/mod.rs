//! Links: what carries messages of a known size between two processes or machines.
//!
//! Sender and receiver agree on the size of the next message, so that nothing but messages crosses. A transport is a line of
//! [`TRANSPORTS`].

mod descriptor;
mod ends;
mod ring;
#[cfg(test)]
mod tests;

use std::io;

pub use ends::End;

use crate::thread::monotonic_ns;

/// How an end waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// It asks again and again, and keeps its CPU.
    Polling,
    /// It sleeps in the kernel.
    Sleeping,
}

/// One end of a link that carries messages both ways.
pub trait Link {
    /// Sends a whole message, and waits until the link has taken it.
    /// Errors: [`io::ErrorKind::TimedOut`] when the link took nothing for the limit; else the system's error.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Receives a whole message of this length.
    /// Errors: [`io::ErrorKind::TimedOut`] when nothing came for the limit, [`io::ErrorKind::UnexpectedEof`] when the other end is gone,
    /// [`io::ErrorKind::InvalidData`] when it does not keep to the form of the link; else the system's error.
    fn receive(&mut self, message: &mut [u8]) -> io::Result<()>;

    /// How long a call waits without progress from now on, ns; 2 s at first.
    fn set_limit(&mut self, limit_ns: u64) -> io::Result<()>;

    /// What it is, in words: options, congestion control, sizes of buffers.
    fn describe(&self) -> String;

    /// Bytes of a segment where the transport cuts messages, so that sizes in between are padded by packets of their own.
    fn segment_bytes(&self) -> Option<u64> {
        None
    }
}

/// What a call waits without progress, ns.
pub const LIMIT_NS: u64 = 2_000_000_000;

#[derive(Debug)]
pub struct Transport {
    /// As in `--transports` and in parameters of metrics.
    pub name: &'static str,
    pub what: &'static str,
    /// Whether its ends may be on different machines.
    pub crosses_machines: bool,
    /// Whether its ends can sleep with a time limit.
    pub sleeps: bool,
    /// Whether messages may get lost.
    pub loses: bool,
    /// Of a transport of this name.
    pair: fn(&'static str) -> io::Result<[End; 2]>,
}

/// A transport of one machine that loses nothing and sleeps.
const fn local(
    name: &'static str,
    what: &'static str,
    pair: fn(&'static str) -> io::Result<[End; 2]>,
) -> Transport {
    Transport { name, what, crosses_machines: false, sleeps: true, loses: false, pair }
}

pub const TRANSPORTS: &[Transport] = &[
    local(
        "shm",
        "two rings of 1 MiB in shared memory, in user space alone unless an end sleeps (futex)",
        ends::ring,
    ),
    local("unix", "a pair of Unix stream sockets", ends::unix),
    Transport {
        crosses_machines: true,
        ..local("tcp", "TCP with TCP_NODELAY, over loopback or between machines", ends::tcp)
    },
    Transport {
        crosses_machines: true,
        ..local("tcp-nagle", "TCP without TCP_NODELAY: small messages wait for acknowledgments", ends::tcp)
    },
    Transport {
        crosses_machines: true,
        loses: true,
        ..local("udp", "UDP; messages that get lost are counted", ends::udp)
    },
    local("seqpacket", "a pair of Unix sockets that keep messages apart", ends::seqpacket),
    Transport {
        sleeps: false,
        ..local("pipe", "two pipes; polling only, since a read of a pipe has no time limit", ends::pipe)
    },
];

/// A wait without progress: it begins at the first look at the clock.
struct Patience {
    limit_ns: u64,
    until_ns: Option<u64>,
}

impl Patience {
    fn new(limit_ns: u64) -> Self {
        Self { limit_ns, until_ns: None }
    }

    /// Errors: [`io::ErrorKind::TimedOut`] when the limit is over.
    fn look(&mut self) -> io::Result<()> {
        let now_ns = monotonic_ns();
        let until_ns = self.until_ns.get_or_insert(now_ns.saturating_add(self.limit_ns));
        if now_ns > *until_ns { Err(late(self.limit_ns)) } else { Ok(()) }
    }
}

fn late(limit_ns: u64) -> io::Error {
    let why = format!("nothing moved for {} ms", limit_ns / 1_000_000);
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl Transport {
    pub fn named(name: &str) -> Option<&'static Self> {
        TRANSPORTS.iter().find(|t| t.name == name)
    }

    /// A fresh link on this machine: both ends.
    pub fn pair(&self) -> io::Result<[End; 2]> {
        (self.pair)(self.name)
    }
}
