//! Messages of a pair of ranks, which have no name of their own among the patterns: rows of the table of operations.

use super::{Pattern, Peer};

/// Which of both ranks send in a step: rank 0, rank 1.
pub(crate) type Way = [bool; 2];
pub(crate) const THERE: Way = [true, false];
pub(crate) const BACK: Way = [false, true];
pub(crate) const BOTH: Way = [true; 2];

pub(crate) struct Pair {
    pub(crate) steps: &'static [Way],
    pub(crate) bytes: u64,
}

impl Pair {
    /// The message of a rank in a step, where it is that of `sender`.
    fn peer(&self, rank: u32, step: u32, sender: u32) -> Option<Peer> {
        let sends = self.steps.get(step as usize)?[sender as usize];
        sends.then_some(Peer { rank: rank ^ 1, bytes: self.bytes, tag: step })
    }
}

impl Pattern for Pair {
    fn steps(&self, _: u32) -> u32 {
        self.steps.len() as u32
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.peer(rank, step, rank)
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.peer(rank, step, rank ^ 1)
    }

    fn messages(&self) -> u64 {
        self.steps.iter().flatten().filter(|sends| **sends).count() as u64
    }
}
