//! Two settings of a machine against each other: `interactive --ab 'CMD_A' 'CMD_B'`.
//!
//! [`Plan`] says in which order segments are measured, [`Settings`] puts a setting in force, [`may_stop`] decides after each
//! round whether more are needed, [`analyze`] says what came out. Everything but the switching is pure.
//!
//! # The law of no change
//! The unit is the round of a cell: four segments ABBA or BAAB, by a coin. Its difference is the mean of B less the mean of
//! A: of logarithms for lateness (mean, p95 or p99), of shares for misses and desired CPU. Student's t over rounds tests it.
//! The standard error of a figure borrows strength from the other cells (`evidence`). Looks are few and spend the
//! error bound (`spending`), and Holm's procedure over all cells and figures bounds the probability of any false verdict by 5 %.
//! Equivalence is two one-sided tests within delta.
//!
//! # Evidence
//! `tests` has what this comes to on simulated machines with memory, bursts and drift.

mod analyze;
mod evidence;
mod figures;
mod plan;
#[cfg(test)]
mod recorded;
mod spending;
mod switch;
#[cfg(test)]
mod tests;
mod verdict;

pub use analyze::{Outcome, analyze};
pub use evidence::Evidence;
pub use figures::{Figure, Round, Scale, Series, series};
pub use plan::{Plan, SEGMENTS_PER_ROUND, Step};
pub use spending::{LEAST_ROUNDS, Looks, MOST_LOOKS};
pub use switch::Settings;
pub use verdict::{FAMILY_ERROR, Judgement, POINTS_PER_RATIO, Row, Verdict, judge, margin, may_stop};
