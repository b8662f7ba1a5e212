//! Recursive doubling (Thakur, Rabenseifner and Gropp 2005): pairs at distance 2^k exchange all they have.

use super::{Pattern, PatternInfo, Peer, Shape};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "recursive-doubling",
    aliases: &["allreduce"],
    description: "allreduce: pairs at distance 2^k exchange; ranks beyond a power of 2 first send their part to another rank",
    make: |shape| {
        let doublings = shape.ranks.ilog2();
        Box::new(RecursiveDoubling { shape, doublings, rest: shape.ranks - (1 << doublings) })
    },
};

/// Where the number of ranks is 2^k + rest, the first `rest` even ranks hand theirs to the next odd one in step 0, sit the
/// doubling out, and get the result in the last step.
struct RecursiveDoubling {
    shape: Shape,
    doublings: u32,
    rest: u32,
}

impl RecursiveDoubling {
    /// Number among those that double; `None` for a rank that sits out.
    fn number(&self, rank: u32) -> Option<u32> {
        if rank >= 2 * self.rest { Some(rank - self.rest) } else { (rank % 2 == 1).then_some(rank / 2) }
    }

    fn rank(&self, number: u32) -> u32 {
        if number < self.rest { 2 * number + 1 } else { number + self.rest }
    }

    fn fold(&self, rank: u32, by_even: bool, tag: u32) -> Option<Peer> {
        let takes_part = rank < 2 * self.rest && rank.is_multiple_of(2) == by_even;
        takes_part.then(|| self.shape.peer(rank ^ 1, tag))
    }

    /// The partner of a rank that sends, or receives.
    fn partner(&self, rank: u32, step: u32, sends: bool) -> Option<Peer> {
        match step.checked_sub(u32::from(self.rest > 0)) {
            None => self.fold(rank, sends, 0),
            Some(k) if k < self.doublings => {
                Some(self.shape.peer(self.rank(self.number(rank)? ^ (1 << k)), k + 2))
            }
            Some(_) => self.fold(rank, !sends, 1),
        }
    }
}

impl Pattern for RecursiveDoubling {
    fn steps(&self, _: u32) -> u32 {
        if self.rest == 0 { self.doublings } else { self.doublings + 2 }
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.partner(rank, step, true)
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        self.partner(rank, step, false)
    }

    fn messages(&self) -> u64 {
        u64::from(self.shape.ranks - self.rest) * u64::from(self.doublings) + 2 * u64::from(self.rest)
    }
}
