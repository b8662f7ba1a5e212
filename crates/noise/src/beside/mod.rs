//! Noise beside a program: `machmeter noise -- CMD` and `noise --pid P`.
//!
//! The probe's own loop shows what a CPU loses. This part follows a program instead: how long its threads waited for a CPU, and who had it meanwhile.
//!
//! Sources of error: a trace that lost events (W331); a wait that began before the trace; the name of a process that ended before it was read.

pub mod account;
pub mod caught;
mod info;
mod show;
pub mod taken;
pub mod wait;
pub mod watch;

#[cfg(test)]
mod tests;

pub use info::INFO;
pub use show::{analyze, tables};
pub use watch::{Seen, Watch};
