//! The table of parameters by size, and what it predicts.

use super::observed::Measured;

/// A line over the bytes after the first: `at_first + per_byte * (s - 1)`. Neither is ever negative.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Value at one byte.
    pub at_first: Measured,
    /// Slope, ns per byte.
    pub per_byte: Measured,
    /// Weighted mean of the bytes after the first of the sizes behind it, where level and slope err independently.
    pub center: f64,
}

impl Line {
    /// Value at a size with its error, which grows away from the sizes behind the line.
    pub fn measured_at(&self, size_bytes: u64) -> Measured {
        let slope_ns = |bytes: f64| self.per_byte.sigma_ns * bytes;
        let level = self.at_first.sigma_ns.powi(2) - slope_ns(self.center).powi(2);
        let away = slope_ns(size_bytes.saturating_sub(1) as f64 - self.center);
        Measured { ns: self.at(size_bytes), sigma_ns: (level.max(0.0) + away.powi(2)).sqrt() }
    }

    /// Value at a size, ns.
    pub fn at(&self, size_bytes: u64) -> f64 {
        self.at_first.ns + self.per_byte.ns * size_bytes.saturating_sub(1) as f64
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Begins {
    /// With the smallest size.
    First,
    /// By another protocol: the time per message jumps.
    Jump,
    /// Where the link overtakes the CPUs: the line bends upwards and does not jump.
    Kink,
    /// Where a byte more gets cheaper: one line for both sides would miss a size by 5 % or more.
    Bend,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// The link: gap and gap per byte are its own.
    Link,
    /// The CPUs: the link's gap is at most what was measured.
    Overhead,
    /// The overheads were not measured.
    Unknown,
}

/// Latency of the first byte.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Latency {
    /// Apart from the overheads.
    Known(Measured),
    /// The overheads take as long as the way itself, or were not measured: no more than this, ns.
    AtMost(f64),
}

/// Parameters of messages from one size to another, both included.
#[derive(Debug, Clone, PartialEq)]
pub struct Segment {
    pub first_bytes: u64,
    pub last_bytes: u64,
    pub begins: Begins,
    /// y(s): g at one byte, and G.
    pub gap: Line,
    /// PRTT(1, 0, s) / 2.
    pub one_way: Line,
    /// `o_s`, where it was measured at a size of the segment or above it in the same protocol.
    pub overhead_send: Option<Line>,
    /// `o_r`, likewise.
    pub overhead_recv: Option<Line>,
    pub pace: Pace,
    /// L.
    pub latency: Latency,
}

/// Segments in the order of their sizes, without a hole.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// At least one.
    pub segments: Vec<Segment>,
}

impl Table {
    /// The segment of a size; sizes beyond the last belong to it.
    pub fn segment(&self, size_bytes: u64) -> &Segment {
        let found = self.segments.iter().find(|s| size_bytes <= s.last_bytes);
        found.unwrap_or(&self.segments[self.segments.len() - 1])
    }

    /// PRTT(n, 0, s), ns.
    pub fn train_ns(&self, messages: u32, size_bytes: u64) -> f64 {
        let s = self.segment(size_bytes);
        2.0 * s.one_way.at(size_bytes) + f64::from(messages.saturating_sub(1)) * s.gap.at(size_bytes)
    }

    /// First sizes of the segments that begin with a jump, bytes.
    pub fn jumps(&self) -> impl Iterator<Item = u64> {
        self.segments.iter().filter(|s| s.begins == Begins::Jump).map(|s| s.first_bytes)
    }
}
