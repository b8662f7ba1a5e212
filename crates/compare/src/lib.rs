//! Verdicts between records: effect, interval, test, smallest detectable change, family-wise error.
//!
//! [`compare`] joins two records by metric key and says for each metric whether it changed between these two runs, and how
//! large a change it would have seen. It is pure: no I/O, no clock, no randomness.
//!
//! # What is compared
//! Not the recorded values but the location of the time-ordered `blocks` of each run: the mean of the blocks after pulling
//! outliers in to 2.5 robust standard deviations of the median, on a logarithmic scale where all blocks are positive (a change
//! is then a ratio), else as recorded. A burst in one block moves it by a tenth of a standard deviation at most. Without
//! blocks the value and its interval stand in. Maxima get no verdict unless every block has one; figures computed differently,
//! in different units or rejected are [`Verdict::Inconclusive`].
//!
//! # The law of no change
//! The difference of two runs of an unchanged machine has two parts.
//!
//! 1. *Within runs*: how far a run's location lies from the level of the machine. Blocks drift, and twenty of them do not tell
//!    how slowly, so sixteen models of the drift (independent; autoregression with phi 0.3 to 0.95 under 0, 50 or 75 % white
//!    noise) each give a t law, weighed by the likelihood of all runs at hand. This extrapolates from the run to the process.
//! 2. *Between runs*: an offset that no block shows. In this order: what the caller declares ([`Options::run_to_run`]); the
//!    spread of [`MIN_HISTORY`] or more earlier runs ([`Options::history`]) with Welch's degrees of freedom; or a default
//!    standard deviation per run of [`DEFAULT_SD`] of the level plus [`DEFAULT_SD_PER_BLOCK_SD`] of the standard deviation of
//!    the blocks (in quadrature, 10 degrees of freedom), doubled ([`WEAKENED_FACTOR`]) when a side is suspect, the load
//!    differs or blocks are missing.
//!
//! A verdict needs all of: the difference improbable under that law (twice the model's probability, Holm-adjusted over the
//! rows, at most [`Options::family_error`]), the Mann-Whitney test on the blocks agreeing at the same bound, and a change of
//! [`Options::min_effect`] or more. A pair that would miss a doubling is inconclusive rather than the same.
//!
//! What two single runs cannot tell, and how the comparison does on machines compared with themselves, stands in
//! `docs/compare.md`; `tests/honesty.rs` prints those tables.
#![forbid(unsafe_code)]

mod allowance;
mod between;
mod comparison;
mod drift;
mod environment;
mod evidence;
mod join;
mod judge;
mod law;
mod level;
mod options;
mod view;

pub use allowance::{DEFAULT_SD, DEFAULT_SD_PER_BLOCK_SD, MIN_HISTORY, WEAKENED_FACTOR};
pub use between::include_earlier;
pub use comparison::{ChangeScale, Comparison, Counts, FailOn, Row, RunName, Side, Verdict, exit_code};
pub use join::compare;
pub use options::{Options, glob_matches};
pub use view::{csv, markdown, text};
