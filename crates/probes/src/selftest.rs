//! What a self-test says: checks of a probe against what was injected.
//!
//! A check that the machine or the rights do not permit is "not shown", with the reason; never "pass".

use serde::{Deserialize, Serialize};

/// Outcome of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// The bar was met.
    Pass,
    /// The bar was missed.
    Fail,
    /// The machine was not quiet enough, or a right is missing; the reason stands in `found`.
    NotShown,
    /// A figure without a bar.
    Info,
}

impl State {
    /// As printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "FAIL",
            Self::NotShown => "not shown",
            Self::Info => "info",
        }
    }

    /// Pass if `met`, else fail.
    pub(crate) fn of(met: bool) -> Self {
        if met { Self::Pass } else { Self::Fail }
    }
}

/// One check: what was injected, what is true, what the probe found, and the bar between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SelfCheck {
    /// Stable name, `stalls.100ns`.
    pub id: String,
    /// What was injected or done.
    pub what: String,
    /// What is true, by the injector's own log or by another witness.
    pub truth: String,
    /// What the probe said; the reason when nothing could be shown.
    pub found: String,
    /// What would pass.
    pub bar: String,
    /// Outcome.
    pub state: State,
}

impl SelfCheck {
    pub(crate) fn not_shown(id: &str, what: &str, bar: &str, why: impl std::fmt::Display) -> Self {
        Self {
            id: id.to_owned(),
            what: what.to_owned(),
            truth: "-".to_owned(),
            found: why.to_string(),
            bar: bar.to_owned(),
            state: State::NotShown,
        }
    }
}

/// A share as text.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}
