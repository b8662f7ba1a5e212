//! Rank 0 sends to all others.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "scatter",
    aliases: &[],
    description: "rank 0 sends to each other rank, one after the other",
    make: |shape| Box::new(Scatter(shape)),
};

struct Scatter(Shape);

impl Pattern for Scatter {
    fn steps(&self, rank: u32) -> u32 {
        if rank == 0 { self.0.ranks - 1 } else { 1 }
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        (rank == 0).then(|| self.0.peer(step + 1, 0))
    }

    fn receive(&self, rank: u32, _: u32, _: u32) -> Option<Peer> {
        (rank > 0).then(|| self.0.peer(0, 0))
    }

    fn messages(&self) -> u64 {
        u64::from(self.0.ranks) - 1
    }
}
