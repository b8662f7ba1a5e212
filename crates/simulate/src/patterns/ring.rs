//! A ring: what each rank has goes once around.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "ring",
    aliases: &["allgather"],
    description: "allgather: in each of P - 1 steps each rank sends to the next and receives from the one before",
    make: |shape| Box::new(Ring(shape)),
};

struct Ring(Shape);

impl Pattern for Ring {
    fn steps(&self, _: u32) -> u32 {
        self.0.ranks - 1
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(self.0.peer(self.0.after(rank, 1), step))
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(self.0.peer(self.0.before(rank, 1), step))
    }

    fn messages(&self) -> u64 {
        u64::from(self.0.ranks) * (u64::from(self.0.ranks) - 1)
    }
}
