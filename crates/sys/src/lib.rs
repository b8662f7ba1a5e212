//! machine facts, and guards that put everything back. All crates above this one are free of `unsafe` and of paths
//! into /proc and /sys.

pub mod affinity;
pub mod clock;
pub mod topology;
