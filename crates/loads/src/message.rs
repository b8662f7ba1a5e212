//! What the processes of a load say to each other: one JSON value a line.

use std::io::{self, Write};
use std::path::PathBuf;

use machmeter_engine::load::{LoadError, LoadRequest};
use machmeter_sys::shared::SharedCounters;
use serde::{Deserialize, Serialize};

/// Lanes in which work is counted. More threads than that share lanes.
pub(crate) const LANES: usize = 64;

/// What the starter writes to the leader to have it end; the end of the pipe means the same.
pub(crate) const STOP: &str = "stop";

/// The first line to a leader, and from it to its worker.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) request: LoadRequest,
    /// The directory the worker makes if it needs one. It is chosen beforehand, so that everybody knows what to remove.
    pub(crate) directory: PathBuf,
    /// Number of the descriptor of the counters.
    pub(crate) counters_fd: i32,
}

impl Order {
    pub(crate) fn line(&self) -> io::Result<String> {
        serde_json::to_string(self).map_err(io::Error::other)
    }

    /// Reads the line and opens the counters.
    pub(crate) fn from_line(line: &str) -> io::Result<(Self, SharedCounters)> {
        let order: Self = serde_json::from_str(line).map_err(io::Error::other)?;
        let counters = SharedCounters::open_fd(order.counters_fd, LANES)?;
        Ok((order, counters))
    }
}

/// What the worker says to the leader, and the leader to the starter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Message {
    /// The load works.
    Ready,
    /// What weakens it.
    Caveat(String),
    /// What it did to the machine and undoes.
    SideEffect(String),
    /// An empty control group to remove when all is over.
    Group(PathBuf),
    /// It cannot work, or not any more.
    Failure {
        /// The request is to blame.
        usage: bool,
        /// One line.
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

    /// Writes itself as a line. A reader that is gone is noticed elsewhere.
    pub(crate) fn send(&self, to: &mut impl Write) {
        if let Ok(line) = serde_json::to_string(self) {
            let _ = to.write_all(format!("{line}\n").as_bytes());
        }
    }

    pub(crate) fn read(line: &str) -> Option<Self> {
        serde_json::from_str(line).ok()
    }
}
