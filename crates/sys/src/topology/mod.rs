//! The CPUs of a machine.

mod cpu_set;

pub use cpu_set::{CpuListError, CpuSet};
