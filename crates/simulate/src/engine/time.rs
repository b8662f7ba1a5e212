//! Time of the engine: whole picoseconds, alone or with what they are made of.

/// What a span of simulated time is spent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// o: messages that a CPU handles.
    Overhead,
    /// O: bytes after the first that a CPU handles.
    OverheadBytes,
    /// L: messages under way.
    Latency,
    /// g: gaps between messages.
    Gap,
    /// G: bytes after the first on the link.
    GapBytes,
    /// Calculation, ps.
    Compute,
    /// Time that noise took from a CPU, ps.
    Noise,
    /// Collective operations of a known cost, ps.
    Collective,
}

pub const PARTS: usize = 8;

/// A point of simulated time.
pub trait Time: Copy + Default {
    fn ps(self) -> u64;
    /// So much later: `ps` picoseconds for `count` units of a part. Saturates at `u64::MAX`.
    #[must_use]
    fn after(self, part: Part, count: u64, ps: u64) -> Self;
    /// The later of two; `self` where they are equal.
    #[must_use]
    fn later(self, other: Self) -> Self {
        if other.ps() > self.ps() { other } else { self }
    }
    /// So much earlier in units of a part, not below zero: only where a dialect needs it.
    #[must_use]
    fn before(self, part: Part, count: u64, ps: u64) -> Self;
    /// The same time as the begin of a work of a CPU, by the number that an observer gave it.
    #[must_use]
    fn of_work(self, _work: u32) -> Self {
        self
    }
    /// The work that set the time: the last one on the critical path to it; 0 where none did, or nobody observes.
    fn work(self) -> u32 {
        0
    }
}

impl Time for u64 {
    fn ps(self) -> u64 {
        self
    }

    fn after(self, _: Part, _: u64, ps: u64) -> Self {
        self.saturating_add(ps)
    }

    fn before(self, _: Part, _: u64, ps: u64) -> Self {
        self.saturating_sub(ps)
    }
}

/// A point of time with its gradient: how many units of each part lie on the critical path to it, and how long they take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traced {
    ps: u64,
    /// Units by part: the derivative of the time by the cost of one unit. Messages, bytes or ps.
    pub counts: [i64; PARTS],
    /// Picoseconds by part; their sum is the time.
    pub spent_ps: [i64; PARTS],
    work: u32,
}

impl Traced {
    /// Units of a part on the critical path.
    pub fn count(&self, part: Part) -> i64 {
        self.counts[part as usize]
    }
}

impl Time for Traced {
    fn ps(self) -> u64 {
        self.ps
    }

    fn after(mut self, part: Part, count: u64, ps: u64) -> Self {
        self.ps = self.ps.saturating_add(ps);
        self.counts[part as usize] += count as i64;
        self.spent_ps[part as usize] += ps as i64;
        self
    }

    fn before(mut self, part: Part, count: u64, ps: u64) -> Self {
        self.ps = self.ps.saturating_sub(ps);
        self.counts[part as usize] -= count as i64;
        self.spent_ps[part as usize] -= ps as i64;
        self
    }

    fn of_work(mut self, work: u32) -> Self {
        self.work = work;
        self
    }

    fn work(self) -> u32 {
        self.work
    }
}
