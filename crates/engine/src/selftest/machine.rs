//! Where a self-test runs: this machine, its clock, short runs of a probe on it, and busy neighbors.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::host::{Silent, nothing_stored};
use crate::placement::Priority;
use crate::probe::Measured;
use crate::sampling::{HostTiming, Sampler};
use crate::{Deadline, Host, Level, NoLoads, Probe, ProbeError, cpu_work};
use machmeter_sys::clock::{Qualification, TickRate, qualify};
use machmeter_sys::counters;
use machmeter_sys::counters::stat::CpuTimes;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{self, spawn_plain};
use machmeter_sys::topology::{Allowed, CpuSet, Topology};

use super::percent;

/// More steal than this share is not quiet.
pub const STEAL: f64 = 0.005;

pub struct Machine {
    /// CPU on which one thing at a time is tested.
    pub cpu: usize,
    pub allowed: CpuSet,
    pub topology: Topology,
    pub clock: Qualification,
    pub rate: TickRate,
    pub seed: u64,
}

pub struct Order {
    pub cpus: CpuSet,
    pub policy: Option<Policy>,
    pub budget_ns: u64,
}

impl Machine {
    /// Looks at the machine; `cpu` is the last allowed one when not given.
    pub fn open(cpu: Option<usize>, seed: u64) -> Result<Self, String> {
        let topology = Topology::host().map_err(|e| e.to_string())?;
        let (allowed, cpu) = cpus(&topology, cpu)?;
        let clock = qualify(&[cpu]).map_err(|e| e.to_string())?;
        let rate = clock.tick_rate();
        Ok(Self { cpu, allowed, topology, clock, rate, seed })
    }

    pub fn here(&self) -> CpuSet {
        CpuSet::single(self.cpu)
    }

    /// Runs a probe as a user would; what it measured, and the time it took, ns.
    pub fn measure<P: Probe>(
        &self,
        order: Order,
        params: &P::Params,
    ) -> (Result<Measured<P::Samples>, ProbeError>, u64) {
        let budget = Deadline::start(order.budget_ns);
        let host = Host {
            cpus: order.cpus,
            allowed: self.allowed.clone(),
            topology: self.topology.clone(),
            clock: self.clock.clone(),
            rate: self.rate,
            level: Level::Quick,
            priority: order.policy.map_or(Priority::Auto, Priority::Asked),
            seed: self.seed,
            dry_run: false,
            budget,
            fills_time: false,
            best_ever: &|_| None,
            open_record: &nothing_stored,
            loads: &NoLoads,
            // Its steps and figures are no result of the self-test.
            progress: &Silent,
        };
        let measured = P::measure(&host, params);
        (measured, host.budget.spent_ns())
    }

    /// Lets `work` sample on the CPU, on a thread of its own under the ordinary policy.
    pub fn sample<T: Send>(&self, work: impl FnOnce(&mut Sampler) -> T + Send) -> Result<T, String> {
        let (source, rate, seed) = (self.clock.source(), self.rate, self.seed);
        let here = move || work(&mut Sampler::new(HostTiming::new(source), rate, seed));
        std::thread::scope(|scope| {
            thread::spawn_placed_scoped(scope, "mm-selftest", Some(self.cpu), Policy::ordinary(), here)
                .map_err(|e| e.to_string())
                .map(thread::ScopedPlacedThread::join)
        })
    }

    /// Ticks as ns of one tick, and the clock's step in ticks: what costs are estimated with.
    pub fn tick(&self) -> (f64, u64) {
        (self.rate.ns_per_tick(), self.clock.step_ticks())
    }
}

/// The CPUs that may be used, and that to test on: the last of them when not given.
pub fn cpus(topology: &Topology, cpu: Option<usize>) -> Result<(CpuSet, usize), String> {
    let allowed = Allowed::host(topology).map_err(|e| e.to_string())?.nameable();
    let cpu = cpu.or_else(|| allowed.iter().next_back()).ok_or("no CPU is allowed")?;
    if allowed.contains(cpu) {
        Ok((allowed, cpu))
    } else {
        Err(format!("CPU {cpu} is not one of those allowed: {allowed}"))
    }
}

/// Threads of no concern to the measurement that want all CPUs, until this is dropped.
pub struct Busy {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Busy {
    pub fn start(n: usize) -> Result<Self, String> {
        let mut busy = Self { stop: Arc::default(), threads: Vec::new() };
        for _ in 0..n {
            let stop = Arc::clone(&busy.stop);
            let work = move || {
                while !stop.load(Ordering::Relaxed) {
                    cpu_work::spin(100_000);
                }
            };
            busy.threads.push(spawn_plain("mm-busy", work).map_err(|e| e.to_string())?);
        }
        Ok(busy)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }
}

/// What the hypervisor took from all CPUs since a moment.
pub struct Steal {
    before: Option<CpuTimes>,
    since_ns: u64,
}

impl Steal {
    pub fn watch() -> Self {
        Self { before: counters::cpu_times().ok(), since_ns: thread::monotonic_ns() }
    }

    /// Why the machine was not quiet, if the hypervisor took more than [`STEAL`] of one of these CPUs.
    pub fn told(&self, cpus: &CpuSet) -> Option<String> {
        let wall_ns = thread::monotonic_ns().saturating_sub(self.since_ns).max(1) as f64;
        let spent = counters::cpu_times().ok()?.since(self.before.as_ref()?);
        let taken = |cpu| spent.on_cpu(cpu).map(|c| (cpu, c.steal_ns as f64 / wall_ns));
        let (cpu, share) = cpus.iter().filter_map(taken).max_by(|a, b| a.1.total_cmp(&b.1))?;
        (share > STEAL).then(|| {
            format!("the hypervisor took {} of CPU {cpu} (bound {})", percent(share), percent(STEAL))
        })
    }
}
