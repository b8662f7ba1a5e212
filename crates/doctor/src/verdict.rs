//! What the checks together say the machine is fit for.

use machmeter_data::{Check, CheckState};

use super::find;

/// What a machine may be measured for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// How much work per time, over seconds.
    Throughput,
    /// The cost of operations of some nanoseconds.
    ShortOperations,
    TailLatency,
    RealTime,
    /// Which thread or interrupt caused a detour.
    Causes,
}

impl Purpose {
    pub const ALL: [Self; 5] =
        [Self::Throughput, Self::ShortOperations, Self::TailLatency, Self::RealTime, Self::Causes];

    /// As in the verdict's sentence.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::ShortOperations => "short operations",
            Self::TailLatency => "tail latency",
            Self::RealTime => "real-time worst cases",
            Self::Causes => "naming the causes of noise",
        }
    }
}

/// What the machine is fit for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Nothing speaks against these, and everything that decides them was seen.
    pub fit_for: Vec<Purpose>,
    pub not_fit_for: Vec<Purpose>,
    /// Nothing speaks against these, but something that decides them could not be seen.
    pub undecided: Vec<Purpose>,
}

/// Judges the outcome of all checks. A purpose is spoiled by the states its checks name, and undecided while a check
/// that decides it is unknown, or missing from `checks`.
pub fn verdict(checks: &[Check]) -> Verdict {
    let spoiled = |purpose: &Purpose| {
        checks.iter().any(|check| {
            let Some(def) = find(&check.id) else { return false };
            match check.state {
                CheckState::Warn => def.warning_spoils.contains(purpose),
                CheckState::Fail => def.failure_spoils.contains(purpose),
                _ => false,
            }
        })
    };
    let unseen = |purpose: &Purpose| {
        super::CHECKS.iter().filter(|def| def.decides.contains(purpose)).any(|def| {
            let state = checks.iter().find(|c| c.id == def.code.id).map(|c| c.state);
            matches!(state, None | Some(CheckState::Unknown))
        })
    };
    let (not_fit_for, rest): (Vec<_>, Vec<_>) = Purpose::ALL.into_iter().partition(spoiled);
    let (undecided, fit_for) = rest.into_iter().partition(unseen);
    Verdict { fit_for, not_fit_for, undecided }
}

impl Verdict {
    /// What is said of which purposes, where there are any: (`Fit for`, `throughput, short operations`).
    pub fn parts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let names = |all: &[Purpose]| all.iter().map(|p| p.name()).collect::<Vec<_>>().join(", ");
        [("Fit for", &self.fit_for), ("Not for", &self.not_fit_for), ("Undecided", &self.undecided)]
            .into_iter()
            .filter(|(_, purposes)| !purposes.is_empty())
            .map(move |(title, purposes)| (title, names(purposes)))
    }
}
