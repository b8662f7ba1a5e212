//! Typed roles: this program started again, or another side over a socket, that takes requests of one type and gives
//! replies of another.
//!
//! ```text
//! starter                          worker (machmeter __worker NAME)
//! Role::start, send, receive <---> starter() or answer()
//! ```
//!
//! A worker ends when its stdin does. The types of messages are the only thing both sides share.

mod message;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;

use machmeter_sys::process::{self, Child, ReadUntil, Spawn, TimedWriter};
use machmeter_sys::thread::monotonic_ns;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub use message::{MessageReader, MessageWriter, RoleError, count, printable};

/// Bytes of a message between processes of this program: the 100,000 jobs of a long segment take about 8 MB.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;

/// How long an ended process may take to have an exit status.
const STATUS_WITHIN_NS: u64 = 300_000_000;

pub trait Peer {
    /// How it ended, in one phrase, where that can be known.
    fn ending(&mut self) -> Option<String>;

    fn kill(&mut self);
}

impl Peer for Child {
    fn ending(&mut self) -> Option<String> {
        let status = self.wait(STATUS_WITHIN_NS)?;
        if status.signal().is_some() {
            process::note_lost();
        }
        Some(status.to_string())
    }

    fn kill(&mut self) {
        self.kill_group();
    }
}

/// The other side of a socket: nothing to kill.
impl Peer for () {
    fn ending(&mut self) -> Option<String> {
        None
    }

    fn kill(&mut self) {}
}

/// A role that somebody else plays. Dropping a process kills it with its group.
#[derive(Debug)]
pub struct Role<Request, Reply, P = Child, W = TimedWriter, R = OwnedFd> {
    requests: Option<MessageWriter<Request, W>>,
    replies: Option<MessageReader<Reply, R>>,
    peer: P,
}

impl<Request: Serialize, Reply: DeserializeOwned> Role<Request, Reply> {
    /// Starts a process of this program.
    pub fn start(spawn: Spawn<'_>) -> io::Result<Self> {
        let mut peer = spawn.piped().start()?;
        let (to, from) = peer.take_pipes().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Self::over(to, from, MAX_MESSAGE_BYTES, peer))
    }
}

impl<Request, Reply, P, W, R> Role<Request, Reply, P, W, R>
where
    Request: Serialize,
    Reply: DeserializeOwned,
    P: Peer,
    W: Write,
    R: ReadUntil,
{
    /// A role over any two streams; a reply has at most `max_bytes` bytes.
    pub fn over(to: W, from: R, max_bytes: usize, peer: P) -> Self {
        let replies = Some(MessageReader::new(from, max_bytes));
        Self { requests: Some(MessageWriter::new(to)), replies, peer }
    }

    pub fn peer(&self) -> &P {
        &self.peer
    }

    /// The process of the role, to wait for.
    pub fn peer_mut(&mut self) -> &mut P {
        &mut self.peer
    }

    pub fn send(&mut self, request: &Request) -> Result<(), RoleError> {
        let requests = self.requests.as_mut().ok_or(RoleError::Ended(None))?;
        requests.send(request).map_err(|e| match e.kind() {
            io::ErrorKind::BrokenPipe => RoleError::Ended(self.peer.ending()),
            _ => e.into(),
        })
    }

    /// The next reply, at `until_ns` (monotonic) at the latest.
    pub fn receive(&mut self, until_ns: u64) -> Result<Reply, RoleError> {
        let replies = self.replies.as_mut().ok_or(RoleError::Ended(None))?;
        replies.next(Some(until_ns)).map_err(|e| match e {
            RoleError::Ended(_) => RoleError::Ended(self.peer.ending()),
            e => e,
        })
    }

    pub fn ask(&mut self, request: &Request, within_ns: u64) -> Result<Reply, RoleError> {
        self.send(request)?;
        self.receive(monotonic_ns().saturating_add(within_ns))
    }

    /// The replies, for a thread of its own to wait for; [`Role::receive`] then fails.
    pub fn take_replies(&mut self) -> Option<MessageReader<Reply, R>> {
        self.replies.take()
    }

    pub fn close(&mut self) {
        self.requests = None;
    }

    /// Ends it at once. A reply that comes later is not believed.
    pub fn kill(&mut self) {
        self.close();
        if let Some(replies) = &mut self.replies {
            replies.close();
        }
        self.peer.kill();
    }
}

/// Requests from stdin, and what takes replies, which no child inherits; stdout is `/dev/null` then. To be called once.
pub fn starter<Request, Reply>() -> io::Result<(MessageReader<Request>, MessageWriter<Reply, File>)>
where
    Request: DeserializeOwned,
    Reply: Serialize,
{
    let requests = io::stdin().as_fd().try_clone_to_owned()?;
    Ok((MessageReader::new(requests, MAX_MESSAGE_BYTES), MessageWriter::new(process::take_stdout()?)))
}

/// Answers requests until the role is closed; starts no thread. Exit code: 0, or 1 for no starter or no request.
pub fn answer<Request: DeserializeOwned, Reply: Serialize>(mut reply: impl FnMut(Request) -> Reply) -> u8 {
    let Ok((mut requests, mut replies)) = starter() else { return 1 };
    loop {
        match requests.next(None) {
            // A starter that does not read is gone: the end of its requests follows.
            Ok(request) => _ = replies.send(&reply(request)),
            Err(e) => return u8::from(!matches!(e, RoleError::Ended(_))),
        }
    }
}
