//! The only operating-system and assembly code of machmeter: clocks, topology, affinity, scheduling, memory, tracing,
//! machine facts, and guards that put everything back. All crates above this one are free of `unsafe` and of paths
//! into /proc and /sys.

pub mod abandoned;
pub mod affinity;
pub mod buffer;
pub mod call;
pub mod cgroup;
pub mod clock;
pub mod counters;
pub mod disk;
pub mod facts;
pub mod file_system;
pub mod fs_root;
pub mod guard;
pub mod kernel;
pub mod link;
pub mod memory;
pub mod mirror;
pub mod mpi;
pub mod oom;
pub mod pages;
pub mod perf;
pub mod preload;
pub mod pressure;
pub mod process;
pub mod pseudofs;
pub mod region;
pub mod sched;
pub mod shared;
pub mod stdio;
pub mod sync;
pub mod task_headroom;
pub mod terminal;
#[cfg(test)]
mod testing;
pub mod thread;
pub mod topology;
pub mod trace;
#[cfg(feature = "user-threads")]
pub mod user_threads;

/// Why something cannot be had, in one line for people: nobody tells these reasons apart.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(String);
