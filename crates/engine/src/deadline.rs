//! The wall time of a run: `--time` is a contract.

use std::sync::atomic::Ordering;

use machmeter_sys::{guard, thread};

/// An end on `CLOCK_MONOTONIC`, and when its time began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadline {
    start_ns: u64,
    until_ns: u64,
}

impl Deadline {
    /// `total_ns` from now.
    pub fn start(total_ns: u64) -> Self {
        Self::until(thread::monotonic_ns().saturating_add(total_ns))
    }

    /// At `until_ns`, begun now.
    pub fn until(until_ns: u64) -> Self {
        Self { start_ns: thread::monotonic_ns(), until_ns }
    }

    pub fn until_ns(&self) -> u64 {
        self.until_ns
    }

    pub fn total_ns(&self) -> u64 {
        self.until_ns.saturating_sub(self.start_ns)
    }

    pub fn spent_ns(&self) -> u64 {
        thread::monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Time left, ns; 0 when over.
    pub fn left_ns(&self) -> u64 {
        self.until_ns.saturating_sub(thread::monotonic_ns())
    }

    /// A part of the time left, from now.
    #[must_use]
    pub fn share(&self, share: f64) -> Self {
        Self::start((self.left_ns() as f64 * share) as u64)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_end_no_later() {
        let whole = Deadline::start(1_000_000_000);
        assert!(whole.total_ns() <= 1_000_000_000);
        assert!(whole.share(0.5).until_ns() <= whole.until_ns());
        assert!(Deadline::start(0).over() && Deadline::start(u64::MAX).left_ns() > 1 << 60);
        assert_eq!(Deadline::until(0).total_ns(), 0);
    }
}
