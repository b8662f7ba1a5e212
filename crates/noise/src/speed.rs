//! Samples the effective speed of CPUs, alone and together, for the verdict on constant interference.

use std::sync::{PoisonError, RwLock};

use machmeter_engine::clock::Clock;
use machmeter_stats::quantile::median_of;
use machmeter_sys::clock::{SourceId, TickRate, TickSource, WithSource, dispatch};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{ScopedPlacedThread, spawn_placed_scoped};

use super::kernel::{DEPENDENT_ADDS, dependent_adds};
use super::samples::{SpeedPhase, SpeedSample};

/// CPUs that are sampled alone at most: each takes its own time.
const MAX_ALONE: usize = 16;

/// Times chains of dependent additions for `duration_ns`; ticks per chain.
struct Chains {
    duration_ns: f64,
    rate: TickRate,
}

impl WithSource for Chains {
    type Output = Vec<u64>;

    fn run<S: TickSource>(self) -> Vec<u64> {
        chains(&mut SourceClock::<S>(std::marker::PhantomData), self.rate.ticks(self.duration_ns))
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

fn chains<C: Clock>(clock: &mut C, duration_ticks: u64) -> Vec<u64> {
    let begin = clock.now();
    let mut out = Vec::with_capacity(4096);
    while out.len() < out.capacity() {
        let start = clock.now();
        std::hint::black_box(dependent_adds());
        let end = clock.now();
        out.push(end.saturating_sub(start));
        if end.saturating_sub(begin) > duration_ticks {
            break;
        }
    }
    out
}

fn sample(
    cpu: usize,
    phase: SpeedPhase,
    source: SourceId,
    rate: TickRate,
    duration_ns: f64,
) -> Option<SpeedSample> {
    let ticks = dispatch(source, Chains { duration_ns, rate }).ok()?;
    let ns: Vec<f64> = ticks.iter().map(|t| rate.ns(*t) / DEPENDENT_ADDS as f64).collect();
    let best_ns = ns.iter().copied().filter(|n| *n > 0.0).min_by(f64::total_cmp)?;
    Some(SpeedSample { cpu, phase, best_ns, median_ns: median_of(&ns)?, n: ns.len() })
}

/// Each CPU in turn, the others left idle by us.
pub(super) fn alone(cpus: &[usize], source: SourceId, rate: TickRate, each_ns: f64) -> Vec<SpeedSample> {
    let one = |cpu: usize| {
        std::thread::scope(|scope| {
            let work = move || sample(cpu, SpeedPhase::Alone, source, rate, each_ns);
            spawn_placed_scoped(scope, "mm-speed", Some(cpu), Policy::ordinary(), work)
                .ok()
                .and_then(ScopedPlacedThread::join)
        })
    };
    cpus.iter().take(MAX_ALONE).filter_map(|cpu| one(*cpu)).collect()
}

pub(super) fn together(
    cpus: &[usize],
    phase: SpeedPhase,
    source: SourceId,
    rate: TickRate,
    each_ns: f64,
) -> Vec<SpeedSample> {
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
