//! Verdicts between groups of runs: effect, interval, test, smallest detectable change, bound on false changes.
//!
//! [`compare`] joins two sides of one or more records by metric and population and says for each metric whether it changed, whether it
//! is the same within what matters, or that these runs do not tell. [`paired`] judges settings that were measured in turn. Both are
//! pure: no I/O, no clock, no randomness.
//!
//! How it judges stands in `docs/compare.md`. The reasons stand where it is done: `pair` (what is of the same thing), `evidence` (what runs
//! differ by), `judge` (verdicts).
#![forbid(unsafe_code)]

mod absent;
mod advice;
mod assumed;
mod between;
mod comparison;
mod environment;
mod evidence;
mod figures;
mod join;
mod judge;
mod options;
mod pair;
pub mod paired;
mod trend;
mod view;

pub use between::include_earlier;
pub use comparison::{
    Comparison, Counts, FailOn, Family, Group, Row, RunName, Scale, Side, Spread, SpreadFrom, Verdict,
    exit_code,
};
pub use join::compare;
pub use options::{Options, glob_matches};
pub use trend::{Level, levels};
pub use view::{csv, html, markdown, text};
