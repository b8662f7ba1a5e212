//! Rank 0 sends to all others.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "scatter",
    aliases: &[],
    description: "rank 0 sends to each other rank, one after the other",
    make: |shape| Box::new(Scatter { ranks: shape.ranks, bytes: shape.bytes }),
};

struct Scatter {
    ranks: u32,
    bytes: u64,
}

impl Pattern for Scatter {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, rank: u32) -> u32 {
        if rank == 0 { self.ranks - 1 } else { 1 }
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        (rank == 0).then_some(Peer { rank: step + 1, bytes: self.bytes, tag: 0 })
    }

    fn receive(&self, rank: u32, _: u32, _: u32) -> Option<Peer> {
        (rank > 0).then_some(Peer { rank: 0, bytes: self.bytes, tag: 0 })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) - 1
    }
}
