//! Roles that this program plays when it starts itself: the leader of a load, the process of a task.

use std::ffi::OsString;

pub use machmeter_sys::process::WORKER_ARGUMENT as ARGUMENT;

/// A role. The program is started as `machmeter __worker NAME ARGUMENTS...`; nothing else of the command line applies.
#[derive(Debug, Clone, Copy)]
pub struct Worker {
    pub name: &'static str,
    /// Does the work with the arguments after the name; returns the exit code.
    pub run: fn(&[OsString]) -> u8,
}

/// A role that does nothing and ends: what a launch starts.
pub const NOTHING: Worker = Worker { name: "nothing", run: |_| 0 };
