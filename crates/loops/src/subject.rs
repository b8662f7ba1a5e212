//! Operations that one thread repeats, and the proof that they took place.

use serde::{Deserialize, Serialize};

/// An operation that can be repeated.
pub trait Subject {
    /// Makes ready for the next visit (builds a chain, opens a file); not timed. An error refuses the row.
    fn prepare(&mut self) -> Result<(), String> {
        Ok(())
    }

    /// Executes `turns` turns; timed. False when the thing did not happen.
    fn run(&mut self, turns: u64) -> bool;

    /// Replaces what a pair used up; whether partners did their share since the last call. Asked after each pair.
    fn partners_moved(&mut self) -> bool {
        true
    }

    /// Undoes `prepare`; not timed.
    fn leave(&mut self) {}

    /// Proof that it happened, over all visits; asked once at the end.
    fn proof(&mut self) -> Option<Proof> {
        None
    }
}

/// Turns that are timed one by one between two looks at the core: few, so that a neighbor hardly comes and goes meanwhile.
pub const GROUP_TURNS: usize = 8;

/// That the thing happened: counted by another witness than the loop (faults, children's exit codes, bytes in a file).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    pub what: String,
    pub expected: u64,
    pub seen: u64,
}

impl Proof {
    pub fn new(what: &str, expected: u64, seen: u64) -> Self {
        Self { what: what.to_owned(), expected, seen }
    }

    /// `None` where nothing was to be seen.
    pub fn of(what: &str, expected: u64, seen: u64) -> Option<Self> {
        (expected > 0).then(|| Self::new(what, expected, seen))
    }
}

machmeter_data::named! {
/// Which question the time of a turn answers.
#[derive(PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Each turn needs the one before: how long one takes.
    Latency = "latency",
    /// Turns overlap as the machine likes: how many per time.
    Throughput = "throughput",
} }

machmeter_data::named! {
/// How pairs of batches become the cost of an operation. It belongs to the row, by what the operation is, never by what it turns out to cost.
#[derive(Serialize, Deserialize)]
pub enum Estimator {
    /// The difference of both batches: what is constant in both cancels. For operations of a few cycles whose constant would show, and
    /// for rows that ask what further turns add.
    Differences = "lower quartile of differences",
    /// Both batches over all their turns: less noise, and a disturbed batch moves it in one direction only. The call and the readings of
    /// the clock are 0.1 % of batches of 50 us. A batch without a short one counts alone, less the meter's own time.
    Batches = "lower quartile of batches",
    /// Operations timed one by one whose time varies by itself: a partner sleeps or spins. Their middle is what a program waits.
    Trips = "median of trips",
    /// As [`Self::Differences`], of messages: they vary by themselves, and laws are fitted to their middle.
    MiddleDifferences = "median of differences",
    /// As [`Self::Batches`], of messages.
    MiddleBatches = "median of batches",
} }

impl Estimator {
    /// Quantile of the pairs that is the figure. What disturbs a batch lengthens it: lower quartiles of undisturbed pairs differed by 0.27 %
    /// from run to run where medians differed by 1.03 % (31 runs of `ops` on one machine).
    pub const fn quantile(self) -> f64 {
        match self {
            Self::Differences | Self::Batches => 0.25,
            Self::Trips | Self::MiddleDifferences | Self::MiddleBatches => 0.5,
        }
    }

    /// Whether what is constant in both batches cancels.
    pub const fn is_difference(self) -> bool {
        matches!(self, Self::Differences | Self::MiddleDifferences)
    }
}
