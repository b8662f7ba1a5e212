//! Each rank sends to all others: around a ring, or every message at once.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const RING: PatternInfo = PatternInfo {
    name: "ring",
    aliases: &["allgather"],
    description: "allgather: in each of P - 1 steps, each rank sends to the next rank and receives from the previous one",
    make: |shape| Box::new(Around { shape, steps: shape.ranks - 1, lanes: 1 }),
};

pub(super) const LINEAR: PatternInfo = PatternInfo {
    name: "linear",
    aliases: &["alltoall"],
    description: "all-to-all: each rank posts all receives and sends at once, starting with the next rank",
    make: |shape| Box::new(Around { shape, steps: 1, lanes: shape.ranks - 1 }),
};

struct Around {
    shape: Shape,
    steps: u32,
    lanes: u32,
}

impl Pattern for Around {
    fn steps(&self, _: u32) -> u32 {
        self.steps
    }

    fn lanes(&self) -> u32 {
        self.lanes
    }

    fn send(&self, rank: u32, step: u32, lane: u32) -> Option<Peer> {
        Some(self.shape.peer(self.shape.after(rank, lane + 1), step))
    }

    fn receive(&self, rank: u32, step: u32, lane: u32) -> Option<Peer> {
        Some(self.shape.peer(self.shape.before(rank, lane + 1), step))
    }

    fn messages(&self) -> u64 {
        u64::from(self.shape.ranks) * (u64::from(self.shape.ranks) - 1)
    }
}
