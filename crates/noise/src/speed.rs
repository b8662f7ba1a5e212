//! Samples the effective speed of CPUs, alone and together, for the verdict on constant interference.

use std::sync::{PoisonError, RwLock};

use machmeter_engine::{Clock, Host};
use machmeter_stats::quantile::median_of;
use machmeter_sys::clock::{SourceId, TickRate, TickSource, WithSource, dispatch};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{ScopedPlacedThread, spawn_placed_scoped};

use super::kernel::{DEPENDENT_ADDS, dependent_adds};
use super::samples::{SpeedPhase, SpeedSample};

/// CPUs that are sampled alone at most: each takes its own time.
const MAX_ALONE: usize = 16;

/// Times chains of dependent additions for so many ticks; ticks per chain.
struct Chains {
    duration_ticks: u64,
}

impl WithSource for Chains {
    type Output = Vec<u64>;

    fn run<S: TickSource>(self) -> Vec<u64> {
        let begin = S::now();
        let mut out = Vec::with_capacity(4096);
        while out.len() < out.capacity() {
            let start = S::now();
            std::hint::black_box(dependent_adds());
            let end = S::now();
            out.push(end.saturating_sub(start));
            if end.saturating_sub(begin) > self.duration_ticks {
                break;
            }
        }
        out
    }
}

/// A tick source as a clock value.
pub(super) struct SourceClock<S>(pub(super) std::marker::PhantomData<S>);

impl<S: TickSource> Clock for SourceClock<S> {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        S::now()
    }
}

fn sample(
    cpu: usize,
    phase: SpeedPhase,
    source: SourceId,
    rate: TickRate,
    duration_ns: f64,
) -> Option<SpeedSample> {
    let ticks = dispatch(source, Chains { duration_ticks: rate.ticks(duration_ns) }).ok()?;
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
