//! Samples the effective speed of CPUs, alone and together, for the verdict on constant interference.

use std::sync::{PoisonError, RwLock};

use machmeter_engine::Host;
use machmeter_loops::noise::chains;
use machmeter_loops::noise::kernel::DEPENDENT_ADDS;
use machmeter_stats::quantile::median_of;
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{ScopedPlacedThread, spawn_placed_scoped};

use super::samples::{SpeedPhase, SpeedSample};

/// CPUs that are sampled alone at most: each takes its own time.
const MAX_ALONE: usize = 16;

fn sample(
    cpu: usize,
    phase: SpeedPhase,
    source: SourceId,
    rate: TickRate,
    duration_ns: f64,
) -> Option<SpeedSample> {
    let ticks = chains(source, rate.ticks(duration_ns)).ok()?;
    let ns: Vec<f64> = ticks.iter().map(|t| rate.ns(*t) / DEPENDENT_ADDS as f64).collect();
    let best_ns = ns.iter().copied().filter(|n| *n > 0.0).min_by(f64::total_cmp)?;
    Some(SpeedSample { cpu, phase, best_ns, median_ns: median_of(&ns)?, n: ns.len() })
}

/// Each CPU in turn, the others left idle by us.
pub(super) fn alone(host: &Host<'_>, cpus: &[usize], each_ns: f64) -> Vec<SpeedSample> {
    let one = |cpu| together(host, &[cpu], SpeedPhase::Alone, each_ns);
    cpus.iter().take(MAX_ALONE).flat_map(|cpu| one(*cpu)).collect()
}

pub(super) fn together(host: &Host<'_>, cpus: &[usize], phase: SpeedPhase, each_ns: f64) -> Vec<SpeedSample> {
    let (source, rate) = (host.source(), host.rate);
    // A CPU that cannot be had must not leave the others waiting: they wait for the gate, not for each other.
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let shut = gate.write().unwrap_or_else(PoisonError::into_inner);
        let gate = &gate;
        let start = |&cpu: &usize| {
            let work = move || {
                drop(gate.read().unwrap_or_else(PoisonError::into_inner));
                sample(cpu, phase, source, rate, each_ns)
            };
            spawn_placed_scoped(scope, "mm-speed", Some(cpu), Policy::ordinary(), work).ok()
        };
        let threads: Vec<_> = cpus.iter().filter_map(start).collect();
        drop(shut);
        threads.into_iter().filter_map(ScopedPlacedThread::join).collect()
    })
}
