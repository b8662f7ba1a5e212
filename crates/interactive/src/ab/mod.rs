//! Two settings of a machine against each other: `interactive --ab 'CMD_A' 'CMD_B'`.
//!
//! [`fit`] shares the time out, [`record`] measures: [`order`] says in which order, [`Settings`] puts a setting in force,
//! [`may_stop`] decides after each round whether more are needed. [`analyze`] says what came out; it is pure.
//!
//! # The law of no change
//! The unit is the round: four segments of each cell, ABBA or BAAB by a coin. Its difference is the mean of B less the mean of
//! A: of logarithms for lateness (mean, p95 or p99), of shares for misses and desired CPU. Student's t over rounds tests it.
//! The standard error of a figure borrows strength from the other cells (`evidence`). Interim looks are few and spend the
//! error bound (`interim_looks`), and Holm's procedure over all cells and figures bounds the probability of any false verdict by 5 %.
//! Equivalence is two one-sided tests within delta.

mod analyze;
mod evidence;
mod figures;
mod guard;
mod interim_looks;
mod plan;
mod record;
#[cfg(test)]
mod recorded;
mod switch;
#[cfg(test)]
mod tests;
mod verdict;

pub use analyze::{Outcome, analyze};
pub use evidence::Evidence;
pub use figures::{Figure, Round, Scale, Series, series};
pub(super) use guard::GUARD;
pub use interim_looks::{InterimLooks, LEAST_ROUNDS, MOST_LOOKS};
pub use plan::{MOST_ROUNDS, SEGMENTS_PER_ROUND, order, rounds_for};
pub use record::{fit, record};
pub use switch::Settings;
pub use verdict::{FAMILY_ERROR, Judgment, POINTS_PER_RATIO, Row, Verdict, judge, margin, may_stop};
