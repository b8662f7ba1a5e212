//! Where the self-test runs: one CPU of this machine, and short runs of the probe on it.

use std::cell::RefCell;

use machmeter_engine::selftest::machine::{self, Machine};
use machmeter_sys::clock::{SourceId, WithSource, dispatch};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::spawn_placed_scoped;

use crate::attribute::Attribution;
use crate::samples::Samples;
use crate::{Noise, Params, Quantum};

/// Self-tests run under the policy that most programs have.
pub(super) const OTHER: Policy = Policy::Other { nice: 0 };

pub(super) struct Lab {
    pub(super) machine: Machine,
    /// What was run, its budget and the time it took, ns.
    pub(super) runs: RefCell<Vec<(String, u64, u64)>>,
}

impl Lab {
    /// Looks at the machine; `cpu` is the last allowed one when not given.
    pub(super) fn open(cpu: Option<usize>, seed: u64) -> Result<Self, String> {
        Ok(Self { machine: Machine::open(cpu, seed)?, runs: RefCell::new(Vec::new()) })
    }

    /// Runs the probe as a user would and notes how long that took.
    pub(super) fn noise(
        &self,
        what: &str,
        run: machine::Order,
        attribution: Attribution,
    ) -> Result<Samples, String> {
        let budget_ns = run.budget_ns;
        let (measured, spent_ns) =
            self.machine.measure::<Noise>(run, &Params::of(Quantum::One, attribution, None));
        self.runs.borrow_mut().push((what.to_owned(), budget_ns, spent_ns));
        measured.map(|m| m.samples).map_err(|e| e.to_string())
    }
    pub(super) fn here(&self, policy: Option<Policy>, budget_ns: u64) -> machine::Order {
        machine::Order { cpus: self.machine.here(), policy, budget_ns }
    }

    /// Runs `work` on the CPU, in a thread called `name`; it gets the source of the loop's clock.
    pub(super) fn alone<T: Send>(
        &self,
        name: &str,
        work: impl FnOnce(SourceId) -> Result<T, String> + Send,
    ) -> Result<T, String> {
        self.placed(name, OTHER, work, || ()).map(|done| done.0)
    }

    /// Runs `work` with the loop's clock on the CPU, in a thread called `name`, and `meanwhile` here.
    pub(super) fn beside<W, R>(
        &self,
        name: &str,
        policy: Policy,
        work: W,
        meanwhile: impl FnOnce() -> R,
    ) -> Result<(W::Output, R), String>
    where
        W: WithSource + Send,
        W::Output: Send,
    {
        self.placed(name, policy, |source| dispatch(source, work).map_err(|e| e.to_string()), meanwhile)
    }

    fn placed<T: Send, R>(
        &self,
        name: &str,
        policy: Policy,
        work: impl FnOnce(SourceId) -> Result<T, String> + Send,
        meanwhile: impl FnOnce() -> R,
    ) -> Result<(T, R), String> {
        let (source, cpu) = (self.machine.clock.source(), Some(self.machine.cpu));
        std::thread::scope(|scope| {
            let thread = spawn_placed_scoped(scope, name, cpu, policy, move || work(source));
            let thread = thread.map_err(|e| e.to_string())?;
            let done = meanwhile();
            Ok((thread.join()?, done))
        })
    }
}
