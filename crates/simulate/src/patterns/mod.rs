//! Patterns of communication: programs that need a few bytes per rank and no list of operations.

mod around;
mod binomial;
mod bisection;
mod dissemination;
mod pair;
mod pipelined;
mod recursive_doubling;
mod reversed;
mod scatter;
mod stencil;
mod stepped;
#[cfg(test)]
mod tests;

pub(crate) use pair::{BACK, BOTH, Pair, THERE, Way};
pub use stepped::{Pattern, Peer, Stepped};

/// What a pattern is made of beside its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Ranks, at least 2.
    pub ranks: u32,
    /// Bytes of a message; of the whole in a pipeline.
    pub bytes: u64,
    /// Bytes of a segment of a pipeline.
    pub segment_bytes: u64,
    pub seed: u64,
}

impl Shape {
    /// Of messages of so many bytes, with segments of 4 KiB.
    pub fn of(ranks: u32, bytes: u64) -> Self {
        Self { ranks, bytes, segment_bytes: 4096, seed: 1 }
    }

    #[inline]
    fn peer(&self, rank: u32, tag: u32) -> Peer {
        Peer { rank, bytes: self.bytes, tag }
    }

    /// The rank so many further on around all, and so many back; fewer than all.
    #[inline]
    fn after(&self, rank: u32, by: u32) -> u32 {
        let (to, ranks) = (u64::from(rank) + u64::from(by), u64::from(self.ranks));
        if to < ranks { to as u32 } else { (to - ranks) as u32 }
    }

    #[inline]
    fn before(&self, rank: u32, by: u32) -> u32 {
        if rank >= by { rank - by } else { rank + (self.ranks - by) }
    }
}

/// A row of the list of patterns.
#[derive(Debug, Clone, Copy)]
pub struct PatternInfo {
    pub name: &'static str,
    /// Other names, of the operation that is often done so.
    pub aliases: &'static [&'static str],
    /// One sentence.
    pub description: &'static str,
    pub make: fn(Shape) -> Box<dyn Pattern>,
}

/// All patterns, by name.
pub const PATTERNS: &[PatternInfo] = &[
    binomial::INFO,
    bisection::INFO,
    dissemination::INFO,
    reversed::GATHER,
    around::LINEAR,
    pipelined::INFO,
    recursive_doubling::INFO,
    reversed::REDUCE,
    around::RING,
    scatter::INFO,
    stencil::ONE,
    stencil::TWO,
    stencil::THREE,
];

/// The pattern of a name or of another name.
pub fn find(name: &str) -> Option<&'static PatternInfo> {
    PATTERNS.iter().find(|p| p.name == name || p.aliases.contains(&name))
}

/// The pattern that stands for an operation of MPI, by the name that the mpi probe has for it.
pub(crate) fn of_operation(name: &str) -> Option<&'static PatternInfo> {
    find(match name {
        // Its parts go to all at once.
        "reduce_scatter" => "linear",
        "scan" => "pipelined",
        other => other,
    })
}

/// Rounds that double a reach of 1 until it covers all ranks.
fn doublings(ranks: u32) -> u32 {
    ranks.next_power_of_two().trailing_zeros()
}
