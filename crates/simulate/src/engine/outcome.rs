//! What a simulation ends with.

use super::matching::Entry;
use super::time::Time;

/// Waiting receives and messages that a deadlock lists.
const MAX_LISTED: usize = 4;

/// A finished simulation.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<T> {
    /// When each rank ended.
    pub ends: Vec<T>,
    /// Operations and messages.
    pub events: u64,
    /// Messages that no receive took.
    pub unreceived: usize,
}

impl<T: Time> Finished<T> {
    /// The last rank, and when it ended.
    pub fn last(&self) -> (usize, T) {
        let mut last = (0, T::default());
        for (rank, end) in self.ends.iter().enumerate() {
            if end.ps() > last.1.ps() {
                last = (rank, *end);
            }
        }
        last
    }
}

/// Why a program does not end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deadlock {
    /// Operations that never ended.
    pub unfinished: u64,
    /// Receives that no message came for: the first in the order of ranks.
    pub receives: Vec<Entry>,
    /// All of them.
    pub receives_total: usize,
    /// Messages that no receive took, likewise.
    pub messages: Vec<Entry>,
    /// All of them.
    pub messages_total: usize,
}

impl Deadlock {
    /// Of what still waits.
    pub(super) fn new<'a>(unfinished: u64, entries: impl Iterator<Item = &'a Entry>) -> Self {
        let (mut receives, mut messages): (Vec<Entry>, Vec<Entry>) = entries.partition(|e| e.posted);
        let (receives_total, messages_total) = (receives.len(), messages.len());
        for all in [&mut receives, &mut messages] {
            all.sort_by_key(|e| (e.receiver, e.sender, e.tag, e.op));
            all.truncate(MAX_LISTED);
        }
        Self { unfinished, receives, receives_total, messages, messages_total }
    }
}

impl std::fmt::Display for Deadlock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = |x: u32| if x == crate::ANY { "any".to_owned() } else { x.to_string() };
        let receive =
            |e: &Entry| format!("rank {} waits for rank {}, tag {}", e.receiver, name(e.sender), name(e.tag));
        let message =
            |e: &Entry| format!("rank {} sent to rank {}, tag {}", e.sender, e.receiver, name(e.tag));
        write!(f, "deadlock: {} operations never end", self.unfinished)?;
        for (what, total, all) in [
            (
                "receives without a message",
                self.receives_total,
                self.receives.iter().map(receive).collect::<Vec<_>>(),
            ),
            ("messages without a receive", self.messages_total, self.messages.iter().map(message).collect()),
        ] {
            if total > 0 {
                let more = if total > all.len() { "; ..." } else { "" };
                write!(f, "; {total} {what}: {}{more}", all.join("; "))?;
            }
        }
        Ok(())
    }
}

/// Why a simulation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// Ranks wait for each other.
    #[error("{0}")]
    Deadlock(Box<Deadlock>),
    /// The clock ran over.
    #[error("simulated time exceeds 213 days, which the clock of 2^64 ps cannot hold: shorten calculations")]
    TooLong,
    /// `stop` said so.
    #[error("stopped")]
    Stopped,
}
