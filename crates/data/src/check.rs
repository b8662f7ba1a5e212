//! The outcome of one environment check.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a check found. Unknown is kept apart from pass, and never shown as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Seen, and within its limit.
    Pass,
    /// Seen, and doubtful.
    Warn,
    /// Seen, and outside its limit.
    Fail,
    /// Could not be seen; `observed` says why.
    Unknown,
    /// Cannot apply to this machine.
    NotApplicable,
}

named! {
    /// A way in which a figure goes wrong. A check names those it looks for, a metric those that weaken it.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Hazard {
        /// The speed of the core changes.
        Frequency = "frequency",
        /// Something else takes the CPU: a thread, an interrupt, the kernel, the hypervisor.
        Preemption = "preemption",
        /// An idle CPU needs time to wake.
        WakeUp = "late wake-up",
        /// Somebody else uses the core's units or its caches.
        SharedCore = "shared core",
        /// Pages are cleared, moved or taken while they are used, or differ in size.
        MemoryPlacement = "memory placement",
        /// The clock is slow, coarse or wrong.
        Clock = "clock",
        /// The clocks of two CPUs differ.
        ClockOffset = "clock offset",
        /// The process may not do what the figure needs.
        Rights = "rights",
    }
}

impl Hazard {
    /// `frequency, shared core`, or `nothing`.
    pub fn names(hazards: &[Self]) -> String {
        if hazards.is_empty() {
            return "nothing".to_owned();
        }
        hazards.iter().map(|h| h.name()).collect::<Vec<_>>().join(", ")
    }
}

/// One check of the environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Stable code, `E104`.
    pub id: String,
    /// Short name, `load`.
    pub name: String,
    /// Outcome.
    pub state: CheckState,
    /// What was seen, in words with units, or why nothing could be.
    pub observed: String,
    /// The limit in words, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Files or calls it was read from.
    pub source: String,
    /// Whether it tells what the machine is, and not what happened to this run: then it flags no figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_machine: bool,
    /// What it weakens: the metrics that declare one of these.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hazards: Vec<Hazard>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How to undo what `next` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}
