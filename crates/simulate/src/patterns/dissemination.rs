//! Dissemination (Hensgen, Finkel and Manber 1988): in step k every rank sends to the one 2^k further on.

use super::{Pattern, PatternInfo, Peer, doublings};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "dissemination",
    aliases: &["barrier"],
    description: "barrier: in step k each rank sends to the rank 2^k further on",
    make: |shape| {
        Box::new(Dissemination { ranks: shape.ranks, bytes: shape.bytes, steps: doublings(shape.ranks) })
    },
};

struct Dissemination {
    ranks: u32,
    bytes: u64,
    steps: u32,
}

impl Pattern for Dissemination {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, _: u32) -> u32 {
        self.steps
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let to = u64::from(rank) + (1 << step);
        let ranks = u64::from(self.ranks);
        Some(Peer { rank: if to < ranks { to } else { to - ranks } as u32, bytes: self.bytes, tag: step })
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let reach = 1u32 << step;
        let from = if rank >= reach { rank - reach } else { rank + (self.ranks - reach) };
        Some(Peer { rank: from, bytes: self.bytes, tag: step })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) * u64::from(self.steps)
    }
}
