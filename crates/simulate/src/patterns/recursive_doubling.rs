//! Recursive doubling (Thakur, Rabenseifner and Gropp 2005): pairs at distance 2^k exchange all they have.

use super::{Pattern, PatternInfo, Peer};

pub(super) const INFO: PatternInfo = PatternInfo {
    name: "recursive-doubling",
    aliases: &["allreduce"],
    description: "allreduce: pairs at distance 2^k exchange; ranks beyond a power of 2 hand theirs over first",
    make: |shape| {
        let power = 1 << shape.ranks.ilog2();
        Box::new(RecursiveDoubling {
            ranks: shape.ranks,
            bytes: shape.bytes,
            doublings: shape.ranks.ilog2(),
            rest: shape.ranks - power,
        })
    },
};

/// Where the number of ranks is 2^k + rest, the first `rest` even ranks hand theirs to the next odd one in step 0, sit the
/// doubling out, and get the result in the last step.
struct RecursiveDoubling {
    ranks: u32,
    bytes: u64,
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

    fn fold(&self, rank: u32, from_even: bool, tag: u32) -> Option<Peer> {
        let takes_part = rank < 2 * self.rest && rank.is_multiple_of(2) == from_even;
        takes_part.then_some(Peer { rank: rank ^ 1, bytes: self.bytes, tag })
    }

    fn partner(&self, rank: u32, step: u32) -> Option<Peer> {
        let partner = self.rank(self.number(rank)? ^ (1 << step));
        Some(Peer { rank: partner, bytes: self.bytes, tag: step + 2 })
    }
}

impl Pattern for RecursiveDoubling {
    fn ranks(&self) -> u32 {
        self.ranks
    }

    fn steps(&self, _: u32) -> u32 {
        if self.rest == 0 { self.doublings } else { self.doublings + 2 }
    }

    fn send(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        if self.rest == 0 {
            return self.partner(rank, step);
        }
        match step.checked_sub(1) {
            None => self.fold(rank, true, 0),
            Some(k) if k < self.doublings => self.partner(rank, k),
            Some(_) => self.fold(rank, false, 1),
        }
    }

    fn receive(&self, rank: u32, step: u32, _: u32) -> Option<Peer> {
        if self.rest == 0 {
            return self.partner(rank, step);
        }
        match step.checked_sub(1) {
            None => self.fold(rank, false, 0),
            Some(k) if k < self.doublings => self.partner(rank, k),
            Some(_) => self.fold(rank, true, 1),
        }
    }

    fn messages(&self) -> u64 {
        u64::from(self.ranks - self.rest) * u64::from(self.doublings) + 2 * u64::from(self.rest)
    }
}
