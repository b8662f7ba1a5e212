//! Processes of our own: this program started again in a role, tied to its starter, and never left behind.
//!
//! A worker gets a process group of its own if it asks for one, so that everything below it can be killed at once. It is
//! never given a session of its own: a new session would be a new autogroup, and nice values would then mean nothing
//! between it and the rest (sched(7), "The autogroup feature").

mod child;
pub mod fork;
mod group;
mod parent_death;
mod spawn;
pub mod start_gate;
mod stat;
mod streams;
#[cfg(test)]
mod tests;

pub use child::Child;
pub use group::{
    commands_with, continue_process, kill_group_of, kill_process, kill_rest_of_group, pid_is_alive,
    processes_of_group, reap_orphans, state_of, stop_process, terminate_group_of, terminate_process,
};
pub use parent_death::{become_subreaper, die_with_parent, take_stdout};
pub use spawn::Spawn;
pub(crate) use spawn::keep_passed;
pub use stat::Stat;
pub use streams::{InMemory, ReadUntil, TimedWriter};

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// First argument of this program when it is started as a worker; the role follows.
pub const WORKER_ARGUMENT: &str = "__worker";

static LOST: AtomicBool = AtomicBool::new(false);

/// Whether a worker was ended by a signal that this program did not send: what was measured may miss its part.
pub fn lost_any() -> bool {
    LOST.load(Ordering::Relaxed)
}

pub fn note_lost() {
    LOST.store(true, Ordering::Relaxed);
}

static PROGRAM: Mutex<Option<PathBuf>> = Mutex::new(None);

/// The program that is started for workers: this one (`/proc/self/exe`, which stays right when the file has been replaced
/// or removed), or what [`set_program`] said.
pub fn program() -> PathBuf {
    let said = PROGRAM.lock().unwrap_or_else(PoisonError::into_inner);
    said.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"))
}

/// Workers are started from `path` from now on; for tests whose own executable does not answer [`WORKER_ARGUMENT`].
pub fn set_program(path: impl Into<PathBuf>) {
    *PROGRAM.lock().unwrap_or_else(PoisonError::into_inner) = Some(path.into());
}
