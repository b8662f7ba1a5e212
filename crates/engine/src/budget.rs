//! The wall-time budget of a run: `--time` is a contract.

use std::sync::atomic::Ordering;

use machmeter_sys::{guard, thread};

/// A deadline on `CLOCK_MONOTONIC`, shared by everything that a run does.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    start_ns: u64,
    total_ns: u64,
}

impl Budget {
    /// A budget of `total_ns` that starts now.
    pub fn start(total_ns: u64) -> Self {
        Self { start_ns: thread::monotonic_ns(), total_ns }
    }

    /// The whole budget, ns.
    pub fn total_ns(&self) -> u64 {
        self.total_ns
    }

    /// Time since its start, ns.
    pub fn spent_ns(&self) -> u64 {
        thread::monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Time left, ns; 0 when over.
    pub fn left_ns(&self) -> u64 {
        self.total_ns.saturating_sub(self.spent_ns())
    }

    /// True when the time is over or a signal asked to stop.
    pub fn over(&self) -> bool {
        self.left_ns() == 0 || stop_requested()
    }
}

/// True once a signal asked the run to stop.
pub fn stop_requested() -> bool {
    guard::stop_flag().load(Ordering::Relaxed)
}
