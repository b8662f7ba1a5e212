//! Where the self-test runs: one CPU of this machine, and short runs of the probe on it.

use std::cell::RefCell;

use machmeter_engine::{ProbeError, Progress};
use machmeter_sys::sched::Policy;
use machmeter_sys::topology::CpuSet;

use crate::attribute::Attribution;
use crate::samples::Samples;
use crate::{Noise, Params, Quantum};
use machmeter_engine::selftest::machine::{self, Machine};

/// Self-tests run under the policy that most programs have.
pub(super) const OTHER: Policy = Policy::Other { nice: 0 };

pub(super) struct Lab<'a> {
    pub(super) machine: Machine<'a>,
    /// What was run, its budget and the time it took, ns.
    pub(super) runs: RefCell<Vec<(String, u64, u64)>>,
}

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
        Ok(Self { machine: Machine::open(cpu, seed, progress)?, runs: RefCell::new(Vec::new()) })
    }

    /// Runs the probe as a user would and notes how long that took.
    pub(super) fn noise(&self, order: Order<'_>) -> Result<Samples, ProbeError> {
        let Order { what, cpus, policy, attribution, budget_ns } = order;
        let run = machine::Order { cpus, policy, budget_ns };
        let (measured, spent_ns) = self.machine.measure::<Noise>(run, &params(attribution));
        self.runs.borrow_mut().push((what.to_owned(), budget_ns, spent_ns));
        measured.map(|m| m.samples)
    }
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
