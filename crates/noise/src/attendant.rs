//! The main thread while the loops run: it looks after the witness and keeps out of the way.

use std::convert::Infallible;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use machmeter_engine::placement::Placement;
use machmeter_sys::affinity;
use machmeter_sys::clock::{self, SourceId};
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::{self, ScopedPlacedThread};

use super::attribute::Witness;
use super::own::WakeUp;

/// The main thread looks after the witness this often, ns.
const ATTEND_NS: u64 = 50_000_000;
/// A loop that is later than this is not getting to run, ns.
const GRACE_NS: u64 = 100_000_000;

/// Sleeps until the loops are `over`, each of which holds a sender, looking after the witness. A thread that does not get to run is
/// lifted, to end. Returns when it was awake, by the clock `source`.
pub(super) fn attend<T>(
    until_ns: u64,
    source: SourceId,
    witness: Option<&dyn Witness>,
    threads: &[ScopedPlacedThread<'_, T>],
    over: &Receiver<Infallible>,
) -> Vec<WakeUp> {
    let mut wake_ups: Vec<WakeUp> = Vec::new();
    let mut woken: Option<(Option<usize>, u64)> = None;
    loop {
        let now = thread::monotonic_ns();
        if now >= until_ns + GRACE_NS {
            for t in threads.iter().filter(|t| !t.is_finished() && !t.placed().policy.is_real_time()) {
                // Without the right to lift it, it ends when it gets to run.
                let _ = sched::apply_to(t.placed().tid, Policy::ordinary());
            }
            return wake_ups;
        }
        if let Some(((cpu, start_ticks), end_ticks)) = woken.zip(clock::now(source).ok()) {
            let mut cpus = [cpu, affinity::current_cpu()].into_iter().flatten().collect::<Vec<_>>();
            cpus.dedup();
            wake_ups.extend(cpus.into_iter().map(|cpu| WakeUp { cpu, start_ticks, end_ticks }));
        }
        let next_ns = if now < until_ns { until_ns } else { until_ns + GRACE_NS };
        let wake_ns = if witness.is_some() { next_ns.min(now + ATTEND_NS) } else { next_ns };
        if over.recv_timeout(Duration::from_nanos(wake_ns - now)) == Err(RecvTimeoutError::Disconnected) {
            return wake_ups;
        }
        woken = clock::now(source).ok().map(|ticks| (affinity::current_cpu(), ticks));
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
