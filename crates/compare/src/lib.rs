//! Verdicts between groups of runs: effect, interval, test, smallest detectable change, bound on false changes.
//!
//! [`compare`] joins two sides of one or more records by metric and population. For each metric it decides that it changed, that it is the same within the
//! change that matters, or that these runs do not decide. [`paired`] judges settings measured in turn. Both are pure: no I/O, no clock, no randomness.
//!
//! `docs/compare.md` describes the method. Modules: `figures` (from records to the figures of a side), `pair` (comparable figures), `variation` (the spread
//! between runs), `evidence` (the change and its error), `judge` (verdicts), `calibration` (results of comparisons on this machine).
#![forbid(unsafe_code)]

mod absent;
mod advice;
mod assumed;
mod between;
mod calibration;
mod comparison;
mod environment;
mod evidence;
mod figures;
mod follows;
mod history;
mod join;
mod judge;
mod options;
mod pair;
pub mod paired;
mod plan;
mod trend;
mod variation;
mod view;
mod weights;

pub use between::include_earlier;
pub use calibration::{Calibration, Found, Planted, calibrate, calibrate_one};
pub use comparison::{
    Comparison, Counts, FailOn, Family, Group, Row, RunName, Scale, Side, Spread, SpreadFrom, Verdict,
    exit_code,
};
pub use history::{History, Series, history};
pub use join::compare;
pub use options::{Options, glob_matches};
pub use plan::is_alike;
pub use trend::{Level, levels};
pub use view::{Reports, calibration, csv, html, markdown, text};
