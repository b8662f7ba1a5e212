//! A broadcast along a binomial tree.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "binomial",
    aliases: &["bcast", "broadcast"],
    description: "broadcast from rank 0 along a binomial tree: log2 P steps",
    make: |shape| Box::new(Binomial(shape)),
};

struct Binomial(Shape);

/// In step k, rank r below 2^k sends to r + 2^k.
impl Pattern for Binomial {
    fn steps(&self, rank: u32) -> u32 {
        let after = self.0.ranks - 1 - rank;
        self.idle_steps(rank).max(after.checked_ilog2().unwrap_or(0)) + 1
    }

    /// A rank has its message in the step of its highest bit.
    fn idle_steps(&self, rank: u32) -> u32 {
        rank.checked_ilog2().unwrap_or(0)
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let (reach, last) = (1 << step, self.0.ranks - 1);
        (rank < reach && reach <= last - rank).then_some(self.0.peer(rank + reach, step))
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        (rank >> step == 1).then(|| self.0.peer(rank ^ (1 << step), step))
    }

    fn messages(&self) -> u64 {
        u64::from(self.0.ranks) - 1
    }
}
