//! A ring: what each rank has goes once around.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "ring",
    aliases: &["allgather"],
    description: "allgather: in each of P - 1 steps each rank sends to the next and receives from the one before",
    make: |shape| Box::new(Ring { ranks: shape.ranks, bytes: shape.bytes }),
};

struct Ring {
    ranks: u32,
    bytes: u64,
}

impl Pattern for Ring {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, _: u32) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(Peer { rank: if rank + 1 == self.ranks { 0 } else { rank + 1 }, bytes: self.bytes, tag: step })
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(Peer { rank: rank.checked_sub(1).unwrap_or(self.ranks - 1), bytes: self.bytes, tag: step })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) * (u64::from(self.ranks) - 1)
    }
}
