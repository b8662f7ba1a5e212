//! What was measured of one direction of a link, size by size.

use crate::breaks::APART;

pub const TRAIN: u32 = 16;

/// A figure with the standard deviation of its error, both ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measured {
    pub ns: f64,
    pub sigma_ns: f64,
}

impl Measured {
    /// One of `n` equal parts.
    #[must_use]
    pub fn over(self, n: f64) -> Self {
        Self { ns: self.ns / n, sigma_ns: self.sigma_ns / n }
    }

    /// Two standard deviations above it, ns: what its error lets it be at most.
    pub fn at_most_ns(self) -> f64 {
        self.ns + APART * self.sigma_ns
    }

    /// Difference of two that were measured apart.
    #[must_use]
    pub fn minus(self, other: Self) -> Self {
        Self { ns: self.ns - other.ns, sigma_ns: self.sigma_ns.hypot(other.sigma_ns) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SizePoint {
    /// Bytes of a message, at least 1.
    pub size_bytes: u64,
    /// PRTT(1, 0, s).
    pub round_trip: Measured,
    /// y(s), the time per message of a train.
    pub gap: Measured,
    /// Time that the sender's CPU is busy with a message, where it was measured.
    pub overhead_send: Option<Measured>,
    /// Time that the receiver's CPU is busy with a message that is there already, where it was measured.
    pub overhead_recv: Option<Measured>,
}

impl SizePoint {
    /// The point of PRTT(1, 0, s) and PRTT([`TRAIN`], 0, s).
    pub fn of_trains(size_bytes: u64, one: Measured, train: Measured) -> Self {
        let gap = train.minus(one).over(f64::from(TRAIN - 1));
        Self { size_bytes, round_trip: one, gap, overhead_send: None, overhead_recv: None }
    }

    /// Bytes after the first, which the first byte's gap does not hold.
    pub(crate) fn further_bytes(&self) -> f64 {
        self.size_bytes.saturating_sub(1) as f64
    }
}
