//! All to all, every message at once.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "linear",
    aliases: &["alltoall"],
    description: "all to all: each rank posts all its receives and sends at once, the next rank's first",
    make: |shape| Box::new(Linear { ranks: shape.ranks, bytes: shape.bytes }),
};

struct Linear {
    ranks: u32,
    bytes: u64,
}

impl Pattern for Linear {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, _: u32) -> u32 {
        1
    }

    fn lanes(&self) -> u32 {
        self.ranks - 1
    }

    fn send(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        let to = u64::from(rank) + u64::from(lane) + 1;
        let ranks = u64::from(self.ranks);
        Some(Peer { rank: if to < ranks { to } else { to - ranks } as u32, bytes: self.bytes, tag: 0 })
    }

    fn receive(&self, rank: u32, _: u32, lane: u32) -> Option<Peer> {
        let from = rank.checked_sub(lane + 1).unwrap_or_else(|| rank + (self.ranks - lane - 1));
        Some(Peer { rank: from, bytes: self.bytes, tag: 0 })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) * (u64::from(self.ranks) - 1)
    }
}
