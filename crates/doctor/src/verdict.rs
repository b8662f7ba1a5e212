//! What the checks together say the machine is fit for.

use std::fmt;

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

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    pub pass: usize,
    pub warn: usize,
    pub fail: usize,
    /// Not seen.
    pub unknown: usize,
    pub not_applicable: usize,
}

/// What the machine is fit for; prints as one sentence per part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Nothing speaks against these, and everything that decides them was seen.
    pub fit_for: Vec<Purpose>,
    pub not_fit_for: Vec<Purpose>,
    /// Nothing speaks against these, but something that decides them could not be seen.
    pub undecided: Vec<Purpose>,
    /// How many checks are in which state.
    pub counts: Counts,
}

/// Judges the outcome of all checks. A purpose is spoiled by the states its checks name, and undecided while a check
/// that decides it is unknown, or missing from `checks`.
pub fn verdict(checks: &[Check]) -> Verdict {
    let mut counts = Counts::default();
    for check in checks {
        *match check.state {
            CheckState::Pass => &mut counts.pass,
            CheckState::Warn => &mut counts.warn,
            CheckState::Fail => &mut counts.fail,
            CheckState::Unknown => &mut counts.unknown,
            CheckState::NotApplicable => &mut counts.not_applicable,
        } += 1;
    }
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
    Verdict { fit_for, not_fit_for, undecided, counts }
}

impl fmt::Display for Verdict {
    /// `1 fail, 1 warning, 1 unknown, 1 n/a, 24 pass. Not fit for: tail latency. Fit for: throughput.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.counts;
        let plural = |n: usize| if n == 1 { "" } else { "s" };
        let parts = [
            (c.fail, format!("{} fail", c.fail)),
            (c.warn, format!("{} warning{}", c.warn, plural(c.warn))),
            (c.unknown, format!("{} unknown", c.unknown)),
            (c.not_applicable, format!("{} n/a", c.not_applicable)),
            (c.pass, format!("{} pass", c.pass)),
        ];
        let shown: Vec<String> = parts.into_iter().filter(|(n, _)| *n > 0).map(|(_, text)| text).collect();
        write!(f, "{}.", if shown.is_empty() { "no checks".to_owned() } else { shown.join(", ") })?;
        for (title, purposes) in [
            ("Not fit for", &self.not_fit_for),
            ("Fit for", &self.fit_for),
            ("Not decided (see unknown)", &self.undecided),
        ] {
            if !purposes.is_empty() {
                let names: Vec<&str> = purposes.iter().map(|p| p.name()).collect();
                write!(f, " {title}: {}.", names.join(", "))?;
            }
        }
        Ok(())
    }
}
