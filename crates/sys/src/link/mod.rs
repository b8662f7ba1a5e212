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
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when the link took nothing for the limit; else the system's error.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Receives a whole message of this length.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] when nothing came for the limit, [`io::ErrorKind::UnexpectedEof`] when the other end is gone,
    /// [`io::ErrorKind::InvalidData`] when it does not keep to the form of the link; else the system's error.
    fn receive(&mut self, message: &mut [u8]) -> io::Result<()>;

    /// How long a call waits without progress from now on, ns; 2 s at first.
    ///
    /// # Errors
    /// The system's error.
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

/// A way to make links.
#[derive(Debug)]
pub struct Transport {
    /// As in `--transports` and in parameters of metrics.
    pub name: &'static str,
    /// One line for people.
    pub what: &'static str,
    /// Whether its ends may be on different machines.
    pub crosses_machines: bool,
    /// Whether its ends can sleep with a time limit.
    pub sleeps: bool,
    /// Whether messages may get lost.
    pub loses: bool,
    pair: fn() -> io::Result<[End; 2]>,
}

/// All transports.
pub const TRANSPORTS: &[Transport] = &[
    Transport {
        name: "shm",
        what: "two rings of 1 MiB in shared memory, in user space alone unless an end sleeps (futex)",
        crosses_machines: false,
        sleeps: true,
        loses: false,
        pair: ends::ring,
    },
    Transport {
        name: "unix",
        what: "a pair of Unix stream sockets",
        crosses_machines: false,
        sleeps: true,
        loses: false,
        pair: ends::unix,
    },
    Transport {
        name: "tcp",
        what: "TCP with TCP_NODELAY, over loopback or between machines",
        crosses_machines: true,
        sleeps: true,
        loses: false,
        pair: ends::tcp,
    },
    Transport {
        name: "tcp-nagle",
        what: "TCP without TCP_NODELAY: small messages wait for acknowledgments",
        crosses_machines: true,
        sleeps: true,
        loses: false,
        pair: ends::tcp_nagle,
    },
    Transport {
        name: "udp",
        what: "UDP; messages that get lost are counted",
        crosses_machines: true,
        sleeps: true,
        loses: true,
        pair: ends::udp,
    },
    Transport {
        name: "seqpacket",
        what: "a pair of Unix sockets that keep messages apart",
        crosses_machines: false,
        sleeps: true,
        loses: false,
        pair: ends::seqpacket,
    },
    Transport {
        name: "pipe",
        what: "two pipes; polling only, since a read of a pipe has no time limit",
        crosses_machines: false,
        sleeps: false,
        loses: false,
        pair: ends::pipe,
    },
];

impl Transport {
    /// The transport of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TRANSPORTS.iter().find(|t| t.name == name)
    }

    /// A fresh link on this machine: both ends.
    ///
    /// # Errors
    /// The system's error.
    pub fn pair(&self) -> io::Result<[End; 2]> {
        (self.pair)()
    }
}
