//! The doctor: is this machine fit to be measured? One row of [`CHECKS`] per check; every check is a pure function of
//! [`Inputs`], so that recorded machines can be judged like the running one.
//!
//! Unknown is never pass: a check passes only on evidence that was read, and what could not be read is unknown with its
//! reason, or n/a where the machine cannot have it.
#![forbid(unsafe_code)]

mod clock;
mod housekeeping;
mod inputs;
mod kernel;
pub mod live;
mod load;
mod memory;
mod outcome;
mod power;
mod procfs;
mod rights;
mod verdict;
mod virt;

#[cfg(test)]
mod situations;
#[cfg(test)]
mod tests;

use machmeter_data::{Check, CheckState, Code, Hazard};

pub use inputs::{ClockInput, Inputs};
pub use live::{Consumer, Live, RealTimeTask};
pub use outcome::{Judged, Outcome};
pub use verdict::{spoiled, verdict};

/// One check: its texts, what it reads, what it can say. Which purposes it decides is in [`verdict`].
#[derive(Debug, Clone, Copy)]
pub struct CheckDef {
    /// Stable code with all texts of `machmeter explain`.
    pub code: Code,
    /// What a warning or failure weakens: the metrics that declare one of these.
    pub hazards: &'static [Hazard],
    /// Whether it tells what the machine is (a guest, a container, rights): then it flags no figure.
    pub of_machine: bool,
    /// Facts without which the check is unknown (or, where the machine cannot have them, n/a).
    pub needs: &'static [&'static str],
    /// The judgment; `Err` holds the outcome of a fact that could not be had.
    pub judge: fn(&Inputs) -> Judged,
}

/// All checks, by ascending code.
pub static CHECKS: &[CheckDef] = &[
    clock::SOURCE,
    clock::STEP,
    clock::CROSS_CPU,
    load::PRESSURE,
    load::RUN_QUEUE,
    load::CONSUMERS,
    load::REAL_TIME,
    virt::STEAL,
    virt::HYPERVISOR,
    virt::CONTAINER,
    virt::CGROUP,
    virt::BURST,
    power::GOVERNOR,
    power::SMT,
    power::TURBO,
    power::IDLE,
    power::THROTTLE,
    power::DRIFT,
    kernel::PREEMPTION,
    kernel::ISOLATION,
    kernel::MITIGATIONS,
    housekeeping::HUGE_PAGES,
    housekeeping::NUMA_BALANCING,
    kernel::REAL_TIME_SHARE,
    housekeeping::TRACERS,
    housekeeping::WATCHDOG,
    housekeeping::INTERRUPTS,
    memory::FREE,
    memory::SWAP,
    memory::CHANGED,
    rights::REAL_TIME,
    rights::LOCKED_MEMORY,
    rights::PERF,
    rights::TRACEFS,
];

impl CheckDef {
    /// Reads and weakens nothing: what the others are made from.
    const OF_NOTHING: Self = Self {
        code: Code { id: "", name: "", what: "", why: "", how: "", next: "", undo: None },
        hazards: &[],
        of_machine: false,
        needs: &[],
        judge: |_| Err(Outcome::unknown("nothing is judged")),
    };

    pub fn check(&self, inputs: &Inputs) -> Check {
        let outcome = (self.judge)(inputs).unwrap_or_else(|missing| missing);
        let weakens = matches!(outcome.state, CheckState::Warn | CheckState::Fail | CheckState::Unknown);
        Check {
            id: self.code.id.to_owned(),
            name: self.code.name.to_owned(),
            state: outcome.state,
            observed: outcome.observed,
            limit: outcome.limit.map(String::from),
            source: outcome.source.map_or_else(|| inputs.sources(self.needs), String::from),
            of_machine: self.of_machine,
            hazards: if weakens { self.hazards.to_vec() } else { Vec::new() },
            next: outcome.next.map(String::from),
            undo: outcome.undo.map(String::from),
        }
    }
}

pub fn run(inputs: &Inputs) -> Vec<Check> {
    CHECKS.iter().map(|def| def.check(inputs)).collect()
}

pub fn codes() -> impl Iterator<Item = &'static Code> {
    CHECKS.iter().map(|def| &def.code)
}

/// The check with this code, in upper or lower case.
pub fn find(id: &str) -> Option<&'static CheckDef> {
    CHECKS.iter().find(|def| def.code.id.eq_ignore_ascii_case(id))
}
