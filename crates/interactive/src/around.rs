//! What counters and the load say before and after a segment.

use machmeter_engine::RunningLoad;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::pressure::{self, Resource};
use machmeter_sys::{counters, thread};

use super::samples::Segment;

pub(super) struct Around {
    at_ns: u64,
    work: u64,
    steal_ns: Option<u64>,
    cpu_waits_ns: Option<u64>,
}

impl Around {
    pub(super) fn look(load: &dyn RunningLoad) -> Self {
        Self {
            at_ns: thread::monotonic_ns(),
            work: load.work(),
            steal_ns: counters::cpu_times().ok().map(|t| t.steal_ns()),
            cpu_waits_ns: pressure::of_machine(&FsRoot::host(), Resource::Cpu).ok().map(|p| p.some.total_ns),
        }
    }

    /// Writes what came to pass until `after`.
    pub(super) fn until(&self, after: &Self, segment: &mut Segment) {
        segment.load_ns = after.at_ns - self.at_ns;
        segment.load_work = after.work.saturating_sub(self.work);
        segment.steal_ns = self.steal_ns.zip(after.steal_ns).map(|(a, b)| b.saturating_sub(a));
        let waits_ns = self.cpu_waits_ns.zip(after.cpu_waits_ns).map(|(a, b)| b.saturating_sub(a));
        segment.cpu_pressure = waits_ns.map(|ns| ns as f64 / segment.load_ns.max(1) as f64);
    }
}
