//! A broadcast along a binomial tree.

use super::{Pattern, PatternInfo, Peer, doublings};

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

impl Binomial {
    /// Rank r has its message from r less its highest bit, and sends to r + 2^k for all higher k, the nearest first: in step k
    /// ranks below 2^k send.
    fn child(&self, rank: u32, step: u32) -> Option<Peer> {
        let reach = 1u32.checked_shl(step)?;
        let child = rank.checked_add(reach)?;
        (rank < reach && child < self.ranks).then_some(Peer { rank: child, bytes: self.bytes })
    }
}

impl Pattern for Binomial {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, _: u32) -> u32 {
        doublings(self.ranks)
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.child(rank, step)
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        let reach = 1u32.checked_shl(step)?;
        (rank >= reach && rank < reach.saturating_mul(2))
            .then(|| Peer { rank: rank - reach, bytes: self.bytes })
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks) - 1
    }
}
