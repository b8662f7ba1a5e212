//! Interactive: how late audio, video, X, games and custom tasks run under load.
//!
//! A task is a job stream (`engine::stream`) in a process of its own; a load is a process tree of its own; a cell is a task
//! under a load, recorded in segments. [`run`] orchestrates, [`worker`] is the task's process, [`analyze`] is a pure function
//! of what was recorded, [`oracle`] is an exact simulation of one task against known disturbances.
//!
//! Sources of error: a wake-up has a cost of its own (tens of microseconds in a virtual machine), which counts as lateness;
//! cells of a short run rest on few seconds, and neighbors in time are alike: their intervals are wide for that reason.

pub mod ab;
pub mod analyze;
pub mod info;
pub mod oracle;
pub mod params;
pub mod predict;
pub mod run;
pub mod samples;
pub mod selftest;
pub mod tables;
pub mod tasks;
pub mod worker;

use machmeter_engine::Worker;

/// The roles in which this probe starts the program.
pub const WORKERS: &[Worker] = &[worker::WORKER];
