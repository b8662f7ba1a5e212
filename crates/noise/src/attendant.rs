//! The main thread while the loops run: it looks after the witness and keeps out of the way.

use machmeter_engine::placement::Placement;
use machmeter_sys::affinity;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::{self, ScopedPlacedThread};

use super::attribute::Witness;

/// The main thread looks after the witness this often, ns.
const ATTEND_NS: u64 = 50_000_000;
/// A loop that is later than this is not getting to run, ns.
const GRACE_NS: u64 = 100_000_000;

/// Sleeps until the loops are over, looking after the witness. A thread that does not get to run is lifted, to end.
pub(super) fn attend<T>(until_ns: u64, witness: Option<&dyn Witness>, threads: &[ScopedPlacedThread<'_, T>]) {
    loop {
        let now = thread::monotonic_ns();
        if threads.iter().all(ScopedPlacedThread::is_finished) {
            return;
        }
        if now >= until_ns + GRACE_NS {
            for t in threads.iter().filter(|t| !t.is_finished() && !t.placed().policy.is_real_time()) {
                // Without the right to lift it, it ends when it gets to run.
                let _ = sched::apply_to(t.placed().tid, Policy::ordinary());
            }
            return;
        }
        let next_ns = if now < until_ns { until_ns } else { until_ns + GRACE_NS };
        thread::nanosleep_until((now + ATTEND_NS).min(next_ns));
        if let Some(w) = witness {
            w.drain();
        }
    }
}

/// Keeps the main thread off the measured CPUs and above real-time meters, so that signals are served. Undone on drop.
pub(super) struct Attendant {
    mask: Option<machmeter_sys::topology::CpuSet>,
    policy: Option<Policy>,
}

impl Attendant {
    pub(super) fn settle(placement: &Placement) -> Self {
        let mut home = Self { mask: None, policy: None };
        if !placement.housekeeping.is_empty()
            && let Ok(before) = affinity::mask()
            && affinity::set_mask(&placement.housekeeping).is_ok()
        {
            home.mask = Some(before);
        }
        if let Policy::Fifo(p) | Policy::Rr(p) = placement.policy
            && let Ok(before) = sched::current()
            && sched::apply(Policy::Fifo(p.saturating_add(1).min(99))).is_ok()
        {
            home.policy = Some(before);
        }
        home
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        if let Some(p) = self.policy.take() {
            let _ = sched::apply(p);
        }
        if let Some(m) = self.mask.take() {
            let _ = affinity::set_mask(&m);
        }
    }
}
