//! An interval estimate.

/// An interval with its confidence level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Nominal confidence level, in `(0, 1)`.
    pub level: f64,
    /// Lower end, in the unit of the estimate.
    pub low: f64,
    /// Upper end, in the unit of the estimate.
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

    /// Whether `x` lies in the closed interval.
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// Upper minus lower end.
    pub fn width(&self) -> f64 {
        self.high - self.low
    }
}

/// A confidence level strictly between 0 and 1.
pub(crate) fn valid_level(level: f64) -> bool {
    level > 0.0 && level < 1.0
}
