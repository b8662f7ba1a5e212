//! A broadcast along a binomial tree.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "binomial",
    aliases: &["bcast", "broadcast"],
    description: "broadcast from rank 0 along a binomial tree: log2 P steps",
    make: |shape| Box::new(Binomial { ranks: shape.ranks, bytes: shape.bytes }),
};

struct Binomial {
    ranks: u32,
    bytes: u64,
}

/// In step k, rank r below 2^k sends to r + 2^k.
impl Pattern for Binomial {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, rank: u32) -> u32 {
        let after = self.ranks - 1 - rank;
        self.idle_steps(rank).max(after.checked_ilog2().unwrap_or(0)) + 1
    }

    /// A rank has its message in the step of its highest bit.
    fn idle_steps(&self, rank: u32) -> u32 {
        rank.checked_ilog2().unwrap_or(0)
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let (reach, last) = (1 << step, self.ranks - 1);
        (rank < reach && reach <= last - rank).then_some(Peer {
            rank: rank + reach,
            bytes: self.bytes,
            tag: step,
        })
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        (rank >> step == 1).then(|| Peer { rank: rank ^ (1 << step), bytes: self.bytes, tag: step })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) - 1
    }
}
