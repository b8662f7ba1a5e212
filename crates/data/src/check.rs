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
    /// Metric ids (with `*`) that it weakens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hurts: Vec<String>,
    /// What to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// How to undo what `next` says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}
