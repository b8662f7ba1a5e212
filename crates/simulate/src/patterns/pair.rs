//! Messages of a pair of ranks, which have no name of their own among the patterns: rows of the table of operations.

use super::{Pattern, Peer};

/// What rank 0 does in each step; rank 1 does the opposite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    There,
    Back,
    Both,
}

pub(crate) struct Pair {
    pub(crate) steps: &'static [Way],
    pub(crate) bytes: u64,
}

impl Pair {
    fn peer(&self, rank: u32, step: u32, own: Way) -> Option<Peer> {
        let way = *self.steps.get(step as usize)?;
        (way == Way::Both || way == own).then_some(Peer { rank: rank ^ 1, bytes: self.bytes, tag: step })
    }
}

impl Pattern for Pair {
    fn steps(&self, _: u32) -> u32 {
        self.steps.len() as u32
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.peer(rank, step, if rank == 0 { Way::There } else { Way::Back })
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.peer(rank, step, if rank == 0 { Way::Back } else { Way::There })
    }

    fn messages(&self) -> u64 {
        self.steps.iter().map(|way| if *way == Way::Both { 2 } else { 1 }).sum()
    }
}
