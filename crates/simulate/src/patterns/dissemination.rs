//! Dissemination (Hensgen, Finkel and Manber 1988): in step k every rank sends to the one 2^k further on.

use super::{Pattern, PatternInfo, Peer, Shape, doublings};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "dissemination",
    aliases: &["barrier"],
    description: "barrier: in step k, each rank r sends to rank r + 2^k",
    make: |shape| Box::new(Dissemination { shape, steps: doublings(shape.ranks) }),
};

struct Dissemination {
    shape: Shape,
    steps: u32,
}

impl Pattern for Dissemination {
    fn steps(&self, _: u32) -> u32 {
        self.steps
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(self.shape.peer(self.shape.after(rank, 1 << step), step))
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        Some(self.shape.peer(self.shape.before(rank, 1 << step), step))
    }

    fn messages(&self) -> u64 {
        u64::from(self.shape.ranks) * u64::from(self.steps)
    }
}
