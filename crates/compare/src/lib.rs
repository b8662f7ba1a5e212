//! Verdicts between records: effect, interval, test, smallest detectable change, family-wise error.
//!
//! [`compare`] joins two records by metric key and says for each metric whether it changed between these two runs, and how
//! large a change it would have seen. It is pure: no I/O, no clock, no randomness.
//!
//! How it judges stands in `docs/compare.md`, with what it says of machines compared with themselves; `tests/honesty.rs` prints
//! those tables. The reasons stand where it is done: `level` (what is compared), `drift` (within runs), `allowance` (between
//! runs), `judge` (verdicts).
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

pub use allowance::MIN_HISTORY;
pub use between::include_earlier;
pub use comparison::{ChangeScale, Comparison, Counts, FailOn, Row, RunName, Side, Verdict, exit_code};
pub use join::compare;
pub use options::{Options, glob_matches};
pub use view::{csv, markdown, text};
