//! All to all, every message at once.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "linear",
    aliases: &["alltoall"],
    description: "all to all: each rank posts all its receives and sends at once, the next rank's first",
    make: |shape| Box::new(Linear(shape)),
};

struct Linear(Shape);

impl Pattern for Linear {
    fn steps(&self, _: u32) -> u32 {
        1
    }

    fn lanes(&self) -> u32 {
        self.0.ranks - 1
    }

    fn send(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        Some(self.0.peer(self.0.after(rank, lane + 1), 0))
    }

    fn receive(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        Some(self.0.peer(self.0.before(rank, lane + 1), 0))
    }

    fn messages(&self) -> u64 {
        u64::from(self.0.ranks) * (u64::from(self.0.ranks) - 1)
    }
}
