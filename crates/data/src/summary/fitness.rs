//! Verdicts: is the machine fit for a purpose?
//!
//! A verdict follows from evidence. Evidence is a quantity with its 95 % interval and two bounds: the machine is fit up to the first bound, and unfit
//! beyond the second. A verdict is never better or worse than the whole interval allows; otherwise it is unknown. The worst evidence decides, and its
//! sentence becomes the reason.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Metric;

named! {
    /// A purpose of a machine, in the order of the page.
    #[derive(PartialOrd, Ord)]
    pub enum Purpose {
        /// Reactions within a millisecond.
        Latency = "latency under 1 ms",
        /// Streams with periodic deadlines.
        Audio = "audio, video",
        /// Work per time over seconds.
        Throughput = "throughput",
        /// Parallel programs in which one late CPU delays all of them.
        Messages = "message passing",
        /// Measurement of operations of some nanoseconds.
        ShortOperations = "short operations",
        /// Guaranteed worst cases of real-time threads.
        RealTime = "real-time worst cases",
        /// Identification of the thread or interrupt behind a gap.
        Causes = "naming the causes of noise",
    }
}

/// Fitness of a machine for a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Fit.
    Yes,
    /// The evidence does not decide.
    Unknown,
    /// Fit with a reservation.
    Partly,
    /// Not fit.
    No,
}

/// The verdict on a purpose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitness {
    /// `latency under 1 ms`, ...
    pub purpose: String,
    /// The judgment.
    pub fit: Fit,
    /// Its reason, with figures.
    pub reason: String,
}

/// Limits of a quantity that is better when lower.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Fit up to this value.
    pub fit: f64,
    /// Unfit beyond; between the two, fit with a reservation.
    pub unfit: f64,
}

/// Share of CPU time lost to other programs. Up to 1 % is below the scatter of most programs between runs; 10 % is a tenth of the machine that its user
/// pays for and does not get.
pub const SHARE_TAKEN: Bounds = Bounds { fit: 0.01, unfit: 0.1 };

impl Bounds {
    /// One limit: fit up to it, unfit beyond.
    pub const fn at(limit: f64) -> Self {
        Self { fit: limit, unfit: limit }
    }

    /// Judges a quantity between `low` and `high`; an unknown end is NaN. A bad verdict needs the low end, a good one both. If `high` is below `low`, the
    /// result is unknown.
    pub fn judge(self, [low, high]: [f64; 2]) -> Fit {
        match () {
            () if high < low => Fit::Unknown,
            () if low > self.unfit => Fit::No,
            () if low > self.fit => Fit::Partly,
            () if low <= high && high <= self.fit => Fit::Yes,
            () => Fit::Unknown,
        }
    }
}

/// A quantity that decides about a purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The purpose.
    pub purpose: Purpose,
    /// Both ends of the 95 % interval of the quantity.
    pub range: [f64; 2],
    /// Its limits.
    pub bounds: Bounds,
    /// The quantity as a sentence, with its figure and its cause.
    pub reason: String,
}

impl Evidence {
    /// The interval of a metric as a range; NaN without an interval.
    pub fn range(metric: &Metric) -> [f64; 2] {
        metric.ci.as_ref().map_or([f64::NAN; 2], |ci| [ci.low, ci.high])
    }

    /// The verdict from this evidence alone.
    pub fn fitness(&self) -> Fitness {
        let (purpose, fit) = (self.purpose.name().to_owned(), self.bounds.judge(self.range));
        let hint =
            if fit == Fit::Unknown { "; too little was measured to decide: measure longer (-t)" } else { "" };
        Fitness { purpose, fit, reason: format!("{}{hint}", self.reason) }
    }
}

/// `both CPUs`, `the CPU`, `64 CPUs`: the CPUs of a share.
pub fn of_cpus(count: usize) -> String {
    match count {
        1 => "the CPU".to_owned(),
        2 => "both CPUs".to_owned(),
        n => format!("{n} CPUs"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All intervals from 0 to 100 %: a bad verdict only beyond a bound, a good one only within it.
    #[test]
    fn a_verdict_claims_no_more_than_the_whole_interval_allows() {
        let of = |low: f64, high: f64| SHARE_TAKEN.judge([low, high]);
        for low in 0..=200 {
            for high in low..=200 {
                let (low, high) = (f64::from(low) / 200.0, f64::from(high) / 200.0);
                let expected = match (low, high) {
                    (low, _) if low > 0.1 => Fit::No,
                    (low, _) if low > 0.01 => Fit::Partly,
                    (_, high) if high <= 0.01 => Fit::Yes,
                    _ => Fit::Unknown,
                };
                assert_eq!(of(low, high), expected, "{low} to {high}");
                // A larger share never gives a better verdict.
                let more = of((low + 0.005).min(1.0), (high + 0.005).min(1.0));
                assert!(more != Fit::Yes || of(low, high) == Fit::Yes, "{low} to {high}");
                assert!(of(low, high) != Fit::No || more == Fit::No, "{low} to {high}");
            }
        }
        let nothing = [[f64::NAN; 2], [0.0, f64::NAN], [f64::NAN, 0.0], [0.5, 0.1], [0.0, f64::INFINITY]];
        assert_eq!(nothing.map(|r| SHARE_TAKEN.judge(r)), [Fit::Unknown; 5]);
        assert_eq!(SHARE_TAKEN.judge([0.5, f64::NAN]), Fit::No);
        assert_eq!([0.5, 1.5].map(|x| Bounds::at(1.0).judge([x, x])), [Fit::Yes, Fit::No]);
    }
}
