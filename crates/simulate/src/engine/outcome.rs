//! What a simulation ends with.

use super::matching::Entry;
use super::time::Time;

/// Waiting receives and messages that a deadlock lists.
const MAX_LISTED: usize = 4;

#[derive(Debug, Clone, PartialEq)]
pub struct Finished<T> {
    pub ends: Vec<T>,
    /// Operations and messages.
    pub events: u64,
}

impl<T: Time> Finished<T> {
    /// The first of the ranks that end last, and when it ended.
    pub fn last(&self) -> (usize, T) {
        let later = |last: (usize, T), (rank, end): (usize, &T)| {
            if end.ps() > last.1.ps() { (rank, *end) } else { last }
        };
        self.ends.iter().enumerate().fold((0, T::default()), later)
    }
}

/// Why a program does not end: what still waits, the first in the order of ranks.
pub(super) fn deadlock<'a>(unfinished: u64, waiting: impl Iterator<Item = &'a Entry>) -> SimulateError {
    let name = |x: u32| if x == crate::ANY { "any".to_owned() } else { x.to_string() };
    let words = |e: &&Entry| {
        let Entry { receiver, sender, tag, .. } = **e;
        if e.posted {
            format!("rank {receiver} waits for rank {}, tag {}", name(sender), name(tag))
        } else {
            format!("rank {sender} sent to rank {receiver}, tag {}", name(tag))
        }
    };
    let (receives, messages): (Vec<&Entry>, Vec<&Entry>) = waiting.partition(|e| e.posted);
    let mut text = format!("deadlock: {unfinished} operations never end");
    for (what, mut all) in
        [("receives without a message", receives), ("messages without a receive", messages)]
    {
        all.sort_by_key(|e| (e.receiver, e.sender, e.tag, e.op));
        let listed: Vec<String> = all.iter().take(MAX_LISTED).map(words).collect();
        if !listed.is_empty() {
            let more = if all.len() > MAX_LISTED { "; ..." } else { "" };
            text += &format!("; {} {what}: {}{more}", all.len(), listed.join("; "));
        }
    }
    SimulateError::Deadlock(text)
}

/// Why a simulation has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SimulateError {
    /// Ranks wait for each other: which, and for what.
    #[error("{0}")]
    Deadlock(String),
    /// The clock ran over.
    #[error("simulated time exceeds 213 days, which the clock of 2^64 ps cannot hold: shorten calculations")]
    TooLong,
    /// `stop` said so.
    #[error("stopped")]
    Stopped,
}
