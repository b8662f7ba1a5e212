//! What the checks together say the machine is fit for.

use machmeter_data::{Check, CheckState};

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

    /// The codes of the checks whose warning spoils it, of those whose failure does, and of those that leave it undecided while
    /// they are unknown.
    pub(super) fn checks(self) -> [&'static str; 3] {
        match self {
            Self::Throughput => ["E114", "E101 E110 E113 E205 E206 E401 E402 E405", "E101 E113 E206"],
            Self::ShortOperations => ["E101 E102 E307", "E101 E102 E103 E205 E206 E307", "E101 E102 E206"],
            Self::TailLatency => [
                "E104 E105 E106 E110",
                "E101 E102 E103 E104 E105 E106 E107 E110 E113 E205 E307 E309 E401 E402",
                "E101 E104 E105 E106 E110 E113",
            ],
            Self::RealTime => [
                "E104 E107 E110 E111 E114 E201 E202 E204 E301 E302 E306 E309 E401 E402 E501",
                "E104 E105 E107 E110 E111 E113 E307 E309 E401 E402",
                "E104 E107 E111 E301 E501",
            ],
            Self::Causes => ["E112 E504", "", "E504"],
        }
    }

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
        let [warning, failure, _] = purpose.checks();
        checks.iter().any(|check| {
            let spoiling = match check.state {
                CheckState::Warn => warning,
                CheckState::Fail => failure,
                _ => "",
            };
            spoiling.split_whitespace().any(|code| check.id.eq_ignore_ascii_case(code))
        })
    };
    let unseen = |purpose: &Purpose| {
        purpose.checks()[2].split_whitespace().any(|code| {
            let state = checks.iter().find(|c| c.id == code).map(|c| c.state);
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
