//! An interval estimate.

/// An interval with its confidence level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Nominal confidence level, in `(0, 1)`.
    pub level: f64,
    pub low: f64,
    pub high: f64,
}

impl Interval {
    /// An interval, if both ends are finite and in order and the level is in `(0, 1)`.
    pub fn new(level: f64, low: f64, high: f64) -> Option<Self> {
        (valid_level(level) && low.is_finite() && high.is_finite() && low <= high).then_some(Self {
            level,
            low,
            high,
        })
    }

    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

pub(crate) fn valid_level(level: f64) -> bool {
    level > 0.0 && level < 1.0
}
