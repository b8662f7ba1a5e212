//! A pattern backward: who received sends, who sent receives, the last step first.

use super::{Pattern, PatternInfo, Peer, binomial, scatter};

pub(super) const REDUCE: PatternInfo = PatternInfo {
    name: "reduce",
    aliases: &[],
    description: "reduction to rank 0 along a binomial tree: the reversed broadcast",
    make: |shape| Box::new(Reversed((binomial::INFO.make)(shape))),
};

pub(super) const GATHER: PatternInfo = PatternInfo {
    name: "gather",
    aliases: &[],
    description: "rank 0 receives from each other rank, one after the other: the reversed scatter",
    make: |shape| Box::new(Reversed((scatter::INFO.make)(shape))),
};

struct Reversed(Box<dyn Pattern>);

impl Reversed {
    /// The step of the pattern itself.
    fn forward(&self, rank: u32, step: u32) -> Option<u32> {
        self.0.steps(rank).checked_sub(step + 1)
    }
}

impl Pattern for Reversed {
    fn steps(&self, rank: u32) -> u32 {
        self.0.steps(rank) - self.0.idle_steps(rank)
    }

    fn lanes(&self) -> u32 {
        self.0.lanes()
    }

    fn send(&self, rank: u32, step: u32, lane: u32) -> Option<Peer> {
        self.0.receive(rank, self.forward(rank, step)?, lane)
    }

    fn receive(&self, rank: u32, step: u32, lane: u32) -> Option<Peer> {
        self.0.send(rank, self.forward(rank, step)?, lane)
    }

    fn messages(&self) -> u64 {
        self.0.messages()
    }
}
