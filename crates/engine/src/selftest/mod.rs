//! What a self-test says: checks of a probe against what was injected.
//!
//! A check that the machine or the rights do not permit is "not shown", with the reason; never "pass".

pub mod late;
pub mod machine;

use crate::part::Verb;
use crate::probe::parameters;
use crate::{Progress, deadline};
use machmeter_sys::sched::Policy;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    Pass,
    Fail,
    /// The machine was not quiet enough, or a right is missing; the reason stands in `found`.
    NotShown,
    Info,
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotShown => "not shown",
            Self::Info => "info",
        }
    }

    pub fn of(met: bool) -> Self {
        Self::if_sure(met, true)
    }

    /// As [`State::of`]; what was not met is not shown unless it is `sure`.
    pub fn if_sure(met: bool, sure: bool) -> Self {
        match (met, sure) {
            (true, _) => Self::Pass,
            (false, true) => Self::Fail,
            (false, false) => Self::NotShown,
        }
    }
}

/// One check: what was injected, what is true, what the probe found, and the bar between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Stable name, `stalls.100ns`.
    pub id: String,
    pub what: String,
    /// What is true, by the injector's own log or by another witness.
    pub truth: String,
    /// What the probe said; the reason when nothing could be shown.
    pub found: String,
    pub bar: String,
    pub state: State,
}

impl SelfCheck {
    pub fn new(id: &str, what: &str, bar: &str, truth: String, found: String, state: State) -> Self {
        let (id, what, bar) = (id.to_owned(), what.to_owned(), bar.to_owned());
        Self { id, what, truth, found, bar, state }
    }

    /// Not shown instead of failed, where something else than the probe may be to blame.
    #[must_use]
    pub fn excused(mut self, why: Option<&str>) -> Self {
        if let (State::Fail, Some(why)) = (self.state, why) {
            self.state = State::NotShown;
            self.found.push_str(&format!("; {why}"));
        }
        self
    }

    pub fn not_shown(id: &str, what: &str, bar: &str, why: impl std::fmt::Display) -> Self {
        Self::new(id, what, bar, "-".to_owned(), why.to_string(), State::NotShown)
    }
}

/// What is true, what the probe found, and the state; or why nothing can be shown.
pub type Shown = Result<(String, String, State), String>;

/// A check of what was shown.
pub fn check(id: &str, what: &str, bar: &str, shown: Shown) -> SelfCheck {
    match shown {
        Ok((truth, found, state)) => SelfCheck::new(id, what, bar, truth, found, state),
        Err(why) => SelfCheck::not_shown(id, what, bar, why),
    }
}

/// A share as text.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Options {
    /// Shorter runs: less than half the time.
    pub quick: bool,
    /// The CPU to test on; the last allowed one when not given.
    pub cpu: Option<usize>,
    pub seed: u64,
    /// Until when what needs a quiet machine is tried again, monotonic ns; everything is tried once, however late.
    pub until_ns: u64,
}

#[derive(Debug, Clone, Copy)]
pub struct SelfTest {
    /// Time that the whole takes at most, quick and full, s.
    pub within_s: [u64; 2],
    /// Whether it tries again within a time that is given.
    pub tries_again: bool,
    /// Runs all checks in order. Ends early, with what was done so far, when a signal asks to stop.
    pub run: fn(&Options, &dyn Progress) -> Result<Vec<SelfCheck>, String>,
}

/// Something that is injected or done: its name, and the checks of what the probe says of it.
pub type Injection = (&'static str, fn(&machine::Machine, &Options) -> Vec<SelfCheck>);

/// Self-test of a probe of parts: theirs in order, then its time under real-time threads. A signal ends it early.
pub fn run<V: Verb>(options: &Options, progress: &dyn Progress) -> Result<Vec<SelfCheck>, String> {
    let machine = machine::Machine::open(options.cpu, options.seed)?;
    let mut checks = Vec::new();
    let bounds: Injection = ("real-time on all CPUs", ends_in_time::<V>);
    for (name, inject) in V::PARTS.iter().flat_map(|p| p.selftest).chain([&bounds]) {
        if deadline::stop_requested() {
            break;
        }
        progress.step(&format!("selftest {}: {name}", V::INFO.name));
        checks.extend(inject(&machine, options));
    }
    Ok(checks)
}

/// Whether a run with real-time threads on all CPUs ends in its time and a second.
fn ends_in_time<V: Verb>(machine: &machine::Machine, options: &Options) -> Vec<SelfCheck> {
    const LATE_NS: u64 = 1_000_000_000;
    let budget_ns = if options.quick { 2_000_000_000 } else { 5_000_000_000 };
    // The lowest that leaves one for helpers below the probe's threads.
    let policy = Policy::Fifo(2);
    let what = format!("a run with default parameters under {policy} on CPUs {}", machine.allowed);
    let bar = "its time and 1 s";
    let order = machine::Order { cpus: machine.allowed.clone(), policy: Some(policy), budget_ns };
    let measured = parameters::<V>(&serde_json::json!({})).and_then(|p| {
        let (measured, spent_ns) = machine.measure::<V>(order, &p);
        measured.map(|_| spent_ns)
    });
    let shown = measured.map_err(|e| e.to_string()).map(|spent_ns| {
        let truth = format!("{:.1} s were given", budget_ns as f64 / 1e9);
        let found = format!("it took {:.2} s", spent_ns as f64 / 1e9);
        (truth, found, State::of(spent_ns < budget_ns + LATE_NS))
    });
    vec![check("bounds.fifo", &what, bar, shown)]
}
