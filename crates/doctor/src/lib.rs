//! Judges whether the machine is fit to be measured.
//!
//! The doctor is a table of checks ([`CHECKS`]), by hazard class: clock, preemption, shared core, frequency, memory placement, rights. Every check is
//! a pure function of [`Inputs`], so recorded machines are judged like the running one. [`verdict()`] combines the checks into one answer per purpose.
//!
//! Unknown is never a pass. A check passes only on evidence that it read. Anything it cannot read is unknown, with the reason; if the machine cannot
//! have it, the check does not apply (n/a).
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

/// One check: its texts, the facts that it needs and its judgment. [`verdict()`] defines which purposes it decides.
#[derive(Debug, Clone, Copy)]
pub struct CheckDef {
    /// Stable code (`E104`) with all texts of `machmeter explain`.
    pub code: Code,
    /// Hazards that a warning or failure reports. A metric is weakened if it declares one of them.
    pub hazards: &'static [Hazard],
    /// True if the check describes the kind of machine (a guest, a container, rights). Such a check flags no figure.
    pub of_machine: bool,
    /// Paths of the facts that the check needs. If one is not readable, the check is unknown; if the machine cannot have it, n/a.
    pub needs: &'static [&'static str],
    /// The judgment; `Err` holds the outcome for a fact that is missing.
    pub judge: fn(&Inputs) -> Judged,
}

/// All checks, in ascending order of their codes.
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
    /// Base of struct updates: a check that reads nothing and weakens nothing.
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
            brief: outcome.brief.map(String::from),
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
