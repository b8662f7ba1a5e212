//! The outcome of one check of the environment, and the hazards that checks and metrics share.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// State of a check. Unknown is separate from pass and never shown as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CheckState {
    /// Observed, and within its limit.
    Pass,
    /// Observed, and doubtful.
    Warn,
    /// Observed, and outside its limit.
    Fail,
    /// Not observable; `observed` holds the reason.
    Unknown,
    /// Does not apply to this machine.
    NotApplicable,
}

named! {
    /// A way in which a figure goes wrong. A check declares the hazards that it detects, a metric those that weaken it.
    #[derive(PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    pub enum Hazard {
        /// The speed of the core changes.
        Frequency = "frequency",
        /// Something else takes the CPU: a thread, an interrupt, the kernel, the hypervisor.
        Preemption = "preemption",
        /// An idle CPU needs time to wake.
        WakeUp = "late wake-up",
        /// Another hardware thread uses the core's units or its caches.
        SharedCore = "shared core",
        /// Pages are cleared, moved or reclaimed while they are used, or differ in size.
        MemoryPlacement = "memory placement",
        /// The clock is slow, coarse or wrong.
        Clock = "clock",
        /// The clocks of two CPUs differ.
        ClockOffset = "clock offset",
        /// The process lacks a right that the figure needs.
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
    /// Observation in words with units, or the reason why there is none.
    pub observed: String,
    /// The observation in a few words, for verdicts and for lines about several checks; if missing, `observed` is short enough.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<String>,
    /// The limit in words, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<String>,
    /// Files or calls that it was read from.
    pub source: String,
    /// True if the check describes the kind of machine rather than this run. Such a check flags no figure.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub of_machine: bool,
    /// Hazards of a check that did not pass. A metric is flagged if it declares one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hazards: Vec<Hazard>,
    /// Advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How to undo the advice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

impl Check {
    /// The observation in a few words.
    pub fn in_brief(&self) -> &str {
        self.brief.as_deref().unwrap_or(&self.observed)
    }
}
