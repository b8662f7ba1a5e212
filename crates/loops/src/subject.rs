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
