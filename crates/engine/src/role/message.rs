//! Messages over a stream of bytes: one JSON value a line, of limited length.

use std::io::{self, Write};
use std::marker::PhantomData;
use std::os::fd::OwnedFd;

use machmeter_sys::process::{InMemory, ReadUntil, TimedWriter};
use machmeter_sys::thread::spawn_plain;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Read at once. Small, because a role may have to be.
const CHUNK_BYTES: usize = 8 << 10;

/// Characters of the reason why a line is no message.
const MAX_REASON_CHARS: usize = 200;

/// Why there is no message, as what the other side did: "the leader of a load {error}". One line.
#[derive(Debug, thiserror::Error)]
pub enum RoleError {
    /// Nothing complete came in time. It may still come.
    #[error("did not answer in time")]
    Late,
    /// A line without end.
    #[error("sent a line of more than {0} bytes")]
    TooLong(usize),
    /// A line that is no message.
    #[error("sent an unreadable message: {0}")]
    Invalid(String),
    /// Nothing comes any more; how the process ended, where that is known.
    #[error("{}", .0.as_ref().map_or("closed its output".to_owned(), |how| format!("ended: {how}")))]
    Ended(Option<String>),
    /// The system's error.
    #[error("cannot be reached: {0}")]
    Os(#[from] io::Error),
}

/// Reads messages of the other side. After any error but [`RoleError::Late`] nothing more is believed or read.
#[derive(Debug)]
pub struct MessageReader<Message, R = OwnedFd> {
    from: R,
    max_bytes: usize,
    buffered: Vec<u8>,
    /// Bytes of `buffered` known to hold no line feed.
    searched: usize,
    over: bool,
    message: PhantomData<fn() -> Message>,
}

impl<Message: DeserializeOwned, R: ReadUntil> MessageReader<Message, R> {
    /// Messages of at most `max_bytes` bytes each.
    pub fn new(from: R, max_bytes: usize) -> Self {
        Self { from, max_bytes, buffered: Vec::new(), searched: 0, over: false, message: PhantomData }
    }

    /// The next message. `until_ns` (monotonic) of `None` waits for ever.
    pub fn next(&mut self, until_ns: Option<u64>) -> Result<Message, RoleError> {
        if self.over {
            return Err(RoleError::Ended(None));
        }
        let message =
            self.line(until_ns).and_then(|line| serde_json::from_slice(&line).map_err(|e| invalid(&e)));
        self.over = !matches!(message, Ok(_) | Err(RoleError::Late));
        message
    }

    /// The next line. What comes last without a line feed is none.
    fn line(&mut self, until_ns: Option<u64>) -> Result<Vec<u8>, RoleError> {
        let mut chunk = Vec::new();
        loop {
            let found = self.buffered[self.searched..].iter().position(|b| *b == b'\n');
            let end = found.map_or(self.buffered.len(), |n| self.searched + n);
            if end > self.max_bytes {
                return Err(RoleError::TooLong(self.max_bytes));
            }
            if found.is_some() {
                let rest = self.buffered.split_off(end + 1);
                self.searched = 0;
                return Ok(std::mem::replace(&mut self.buffered, rest));
            }
            self.searched = end;
            chunk.resize(CHUNK_BYTES, 0);
            match self.from.read_until(&mut chunk, until_ns) {
                Ok(0) => return Err(RoleError::Ended(None)),
                Ok(n) => self.buffered.extend_from_slice(&chunk[..n]),
                Err(e) if e.kind() == io::ErrorKind::TimedOut => return Err(RoleError::Late),
                Err(e) => return Err(e.into()),
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.over = true;
    }
}

impl<Message: DeserializeOwned + 'static, R: ReadUntil + Send + 'static> MessageReader<Message, R> {
    /// A thread (with the caller's policy) calls `hear` with each message, and last with the error that ends them.
    pub fn listen(
        mut self,
        mut hear: impl FnMut(Result<Message, RoleError>) + Send + 'static,
    ) -> io::Result<()> {
        spawn_plain("machmeter-role", move || {
            loop {
                let message = self.next(None);
                let is_last = message.is_err();
                hear(message);
                if is_last {
                    return;
                }
            }
        })
        .map(drop)
    }
}

/// Messages in bytes of somebody else up to the first that is none, each of at most `max_bytes`.
pub fn count<Message: DeserializeOwned>(bytes: &[u8], max_bytes: usize) -> usize {
    let mut reader: MessageReader<Message, _> = MessageReader::new(InMemory(bytes), max_bytes);
    std::iter::from_fn(|| reader.next(None).ok()).count()
}

/// The reason may hold anything that the other side sent.
fn invalid(reason: &serde_json::Error) -> RoleError {
    RoleError::Invalid(printable(&reason.to_string()))
}

/// What the other side says, for people: the beginning of it, without control characters.
pub fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_REASON_CHARS).collect()
}

#[derive(Debug)]
pub struct MessageWriter<Message, W = TimedWriter> {
    to: W,
    message: PhantomData<fn(Message)>,
}

impl<Message: Serialize, W: Write> MessageWriter<Message, W> {
    pub fn new(to: W) -> Self {
        Self { to, message: PhantomData }
    }

    pub fn send(&mut self, message: &Message) -> io::Result<()> {
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        self.to.write_all(&line)?;
        self.to.flush()
    }
}
