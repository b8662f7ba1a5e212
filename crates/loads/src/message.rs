//! What the processes of a load say to each other.

use std::fs::File;
use std::io;
use std::path::PathBuf;

use machmeter_engine::load::{LoadError, LoadRequest};
use machmeter_engine::role::{self, MessageWriter};
use machmeter_sys::shared::SharedCounters;
use serde::{Deserialize, Serialize};

/// Lanes in which work is counted. More threads than that share lanes.
pub(crate) const LANES: usize = 64;

/// What the starter asks of a leader. The end of its requests means the same as the second one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Request {
    Begin(Box<Order>),
    End,
}

/// Orders to a load in bytes of somebody else, and what it says.
pub fn orders(bytes: &[u8]) -> usize {
    role::count::<Request>(bytes, role::MAX_MESSAGE_BYTES)
        + role::count::<Order>(bytes, role::MAX_MESSAGE_BYTES)
        + role::count::<Message>(bytes, role::MAX_MESSAGE_BYTES)
}

/// What to do, for a leader and from it for its worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) request: LoadRequest,
    /// The directory the worker makes if it needs one. It is chosen beforehand, so that everybody knows what to remove.
    pub(crate) directory: PathBuf,
    pub(crate) counters_fd: i32,
}

impl Order {
    pub(crate) fn counters(&self) -> io::Result<SharedCounters> {
        SharedCounters::open_fd(self.counters_fd, LANES)
    }
}

/// What the worker says to the leader, and the leader to the starter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    Ready,
    Caveat(String),
    SideEffect(String),
    /// An empty control group to remove when all is over.
    Group(PathBuf),
    /// It cannot work, or not any more.
    Failure {
        usage: bool,
        text: String,
    },
    /// From the worker: it has ended as asked. From the leader: all is ended and removed.
    Ended,
}

impl Message {
    pub(crate) fn failure(e: &LoadError) -> Self {
        let one_line = |t: &str| t.replace('\n', " ");
        match e {
            LoadError::Usage(t) => Self::Failure { usage: true, text: one_line(t) },
            LoadError::Cannot(t) => Self::Failure { usage: false, text: one_line(t) },
        }
    }

    /// Sends itself. A reader that is gone is noticed elsewhere.
    pub(crate) fn send(&self, to: &mut Replies) {
        let _ = to.send(self);
    }
}

/// What takes the messages of a process to the one that started it.
pub(crate) type Replies = MessageWriter<Message, File>;
