//! Where the self-test runs: one CPU of this machine, its clock, and short runs of the probe on it.

use std::cell::RefCell;

use machmeter_engine::host::nothing_stored;
use machmeter_engine::placement::Priority;
use machmeter_engine::probe::Measured;
use machmeter_engine::{Budget, Host, Level, NoLoads, Probe, ProbeError, Progress};
use machmeter_sys::clock::{Qualification, TickRate, qualify};
use machmeter_sys::sched::Policy;
use machmeter_sys::topology::{Allowed, CpuSet, Topology};

use crate::noise::attribute::Attribution;
use crate::noise::samples::Samples;
use crate::noise::{Noise, Params, Quantum};

/// The ordinary policy.
pub(super) const OTHER: Policy = Policy::Other { nice: 0 };

/// The place and what is known of it.
pub(super) struct Lab<'a> {
    pub(super) cpu: usize,
    pub(super) allowed: CpuSet,
    pub(super) clock: Qualification,
    pub(super) rate: TickRate,
    pub(super) seed: u64,
    pub(super) progress: &'a dyn Progress,
    topology: Topology,
    /// What was run, its budget and the time it took, ns.
    pub(super) runs: RefCell<Vec<(String, u64, u64)>>,
}

/// A run of the probe.
pub(super) struct Order<'a> {
    pub(super) what: &'a str,
    pub(super) cpus: CpuSet,
    pub(super) policy: Option<Policy>,
    pub(super) attribution: Attribution,
    pub(super) budget_ns: u64,
}

impl<'a> Lab<'a> {
    /// Looks at the machine; `cpu` is the last allowed one when not given.
    pub(super) fn open(cpu: Option<usize>, seed: u64, progress: &'a dyn Progress) -> Result<Self, String> {
        let topology = Topology::host().map_err(|e| e.to_string())?;
        let allowed = Allowed::host(&topology).map_err(|e| e.to_string())?.nameable();
        let cpu = cpu.or_else(|| allowed.iter().next_back()).ok_or("no CPU is allowed")?;
        if !allowed.contains(cpu) {
            return Err(format!("CPU {cpu} is not one of those allowed: {allowed}"));
        }
        let clock = qualify(&[cpu]).map_err(|e| e.to_string())?;
        let rate = clock.tick_rate();
        Ok(Self { cpu, allowed, clock, rate, seed, progress, topology, runs: RefCell::new(Vec::new()) })
    }

    /// The CPU alone.
    pub(super) fn here(&self) -> CpuSet {
        CpuSet::single(self.cpu)
    }

    /// Runs the probe as a user would and notes how long that took.
    pub(super) fn noise(&self, order: Order<'_>) -> Result<Samples, ProbeError> {
        let budget = Budget::start(order.budget_ns);
        let host = Host {
            cpus: order.cpus,
            allowed: self.allowed.clone(),
            topology: self.topology.clone(),
            clock: self.clock.clone(),
            rate: self.rate,
            level: Level::Quick,
            priority: order.policy.map_or(Priority::Auto, Priority::Asked),
            seed: self.seed,
            budget,
            best_ever: &|_| None,
            open_record: &nothing_stored,
            loads: &NoLoads,
            progress: &Steps(self.progress),
        };
        let measured: Result<Measured<Samples>, ProbeError> =
            Noise::measure(&host, &params(order.attribution));
        self.runs.borrow_mut().push((order.what.to_owned(), order.budget_ns, budget.spent_ns()));
        measured.map(|m| m.samples)
    }
}

/// Passes on the steps of a run but not its first figures, which are no result of the self-test.
struct Steps<'a>(&'a dyn Progress);

impl Progress for Steps<'_> {
    fn step(&self, text: &str) {
        self.0.step(&format!("  {text}"));
    }

    fn figure(&self, _text: &str) {}
}

/// The probe's parameters as they are by default, with one witness.
pub(super) fn params(attribution: Attribution) -> Params {
    Params {
        quantum: Quantum::One,
        window: "100us".to_owned(),
        windows: None,
        threshold: None,
        attribution,
        sweep_bytes: 1 << 20,
        gap_capacity: None,
    }
}
