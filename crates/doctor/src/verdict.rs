//! Combines the checks into a verdict for each purpose of the machine.
//!
//! A purpose is a use of the machine, such as low latency or throughput. For each purpose, a table names three sets of checks: a failure in the first makes
//! the machine unfit, a warning in the second is a reservation, and an unknown result in the third leaves the purpose undecided. The verdicts of a measured
//! page use the failures of the same table. A machine whose CPUs are taken is not fit for throughput, even if a run measured in a quiet moment.

use machmeter_data::summary::{Fit, Fitness, Purpose};
use machmeter_data::{Check, CheckState};

/// The codes of the checks that decide one purpose.
struct Row {
    purpose: Purpose,
    /// A failure of one of these makes the machine unfit.
    fails: &'static str,
    /// A warning of one of these is a reservation; so is a failure of a check that is not among `fails`.
    warns: &'static str,
    /// If one of these is unknown, the purpose stays undecided.
    needs: &'static str,
}

/// The table. For purposes that a page also judges by measurement, `fails` covers the resource that the purpose uses: CPU time, and memory that the
/// kernel reclaims.
const TABLE: [Row; 7] = [
    Row {
        purpose: Purpose::Latency,
        fails: "E104 E105 E106 E107 E110 E113 E205 E401 E402",
        warns: "E104 E105 E106 E107 E110 E113 E205 E402",
        needs: "E104 E106 E113",
    },
    Row {
        purpose: Purpose::Audio,
        fails: "E104 E105 E106 E107 E110 E113 E205 E401 E402",
        warns: "E104 E105 E106 E107 E110 E113 E205 E402",
        needs: "E104 E106 E113",
    },
    Row {
        purpose: Purpose::Throughput,
        fails: "E104 E105 E110 E113 E205 E401 E402",
        warns: "E104 E105 E106 E110 E113 E114 E205",
        needs: "E106 E113",
    },
    Row {
        purpose: Purpose::Messages,
        fails: "E104 E105 E106 E107 E110 E113 E205 E401 E402",
        warns: "E104 E105 E106 E107 E110 E113 E205",
        needs: "E104 E106 E113",
    },
    Row {
        purpose: Purpose::ShortOperations,
        fails: "E101 E102 E103 E105 E106 E205 E206 E307",
        warns: "E101 E102 E307",
        needs: "E101 E102 E206",
    },
    Row {
        purpose: Purpose::RealTime,
        fails: "E104 E105 E107 E110 E111 E113 E307 E309 E401 E402",
        warns: "E104 E107 E110 E111 E114 E201 E202 E204 E301 E302 E306 E309 E401 E402 E501",
        needs: "E104 E107 E111 E301 E501",
    },
    Row { purpose: Purpose::Causes, fails: "", warns: "E112 E504", needs: "E504" },
];

/// The purposes that pages also judge by measurement.
const MEASURED: [Purpose; 4] = [Purpose::Latency, Purpose::Audio, Purpose::Throughput, Purpose::Messages];

/// Judges all checks, purpose by purpose. A missing check counts as unknown.
pub fn verdict(checks: &[Check]) -> Vec<Fitness> {
    TABLE.iter().map(|row| row.judge(checks)).collect()
}

/// The measured purposes for which a failed check makes the machine unfit.
pub fn spoiled(checks: &[Check]) -> Vec<Fitness> {
    let measured = TABLE.iter().filter(|row| MEASURED.contains(&row.purpose));
    measured.map(|row| row.judge(checks)).filter(|f| f.fit == Fit::No).collect()
}

/// All codes that decide a purpose; a code can occur several times.
#[cfg(test)]
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| [row.fails, row.warns, row.needs]).flat_map(str::split_whitespace)
}

impl Row {
    /// Judges by the worst check, among equals the first; its observation is the reason. If programs wait for CPUs, the reason is E106, the largest consumers.
    fn judge(&self, checks: &[Check]) -> Fitness {
        let names =
            |codes: &str, check: &Check| codes.split_whitespace().any(|c| check.id.eq_ignore_ascii_case(c));
        let first =
            |state: CheckState, codes: &str| checks.iter().find(|c| c.state == state && names(codes, c));
        let said = |c: &Check| {
            let is_bad = |k: &&Check| matches!(k.state, CheckState::Warn | CheckState::Fail);
            let who = checks.iter().find(|k| k.id == "E106").filter(is_bad);
            let is_load = ["E104", "E105", "E106"].contains(&c.id.as_str());
            format!("{} ({})", who.filter(|_| is_load).unwrap_or(c).in_brief(), c.id)
        };
        let (fit, reason) = if let Some(c) = first(CheckState::Fail, self.fails) {
            (Fit::No, said(c))
        } else if let Some(c) =
            first(CheckState::Fail, self.warns).or_else(|| first(CheckState::Warn, self.warns))
        {
            (Fit::Partly, said(c))
        } else {
            let is_unseen = |code: &&str| {
                let state = checks.iter().find(|c| c.id == *code).map(|c| c.state);
                matches!(state, None | Some(CheckState::Unknown))
            };
            let unseen: Vec<&str> = self.needs.split_whitespace().filter(is_unseen).collect();
            if unseen.is_empty() {
                (Fit::Yes, "no check found a problem".to_owned())
            } else {
                (Fit::Unknown, format!("not visible from here: {}", unseen.join(", ")))
            }
        };
        Fitness { purpose: self.purpose.name().to_owned(), fit, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::facts::Facts;

    /// Puts every check in every state. Unknown never praises; a failure of a purpose's own resource always makes it unfit, on the page as well.
    #[test]
    fn each_state_of_each_check_moves_the_verdict_one_way() {
        let facts = Facts::default();
        let cpus = machmeter_sys::topology::CpuSet::default();
        let nothing = crate::Inputs { facts: &facts, later: None, clock: None, live: None, for_cpus: &cpus };
        let mut passed: Vec<Check> = crate::CHECKS.iter().map(|def| def.check(&nothing)).collect();
        for check in &mut passed {
            check.state = CheckState::Pass;
        }
        assert!(verdict(&passed).iter().all(|f| f.fit == Fit::Yes) && spoiled(&passed).is_empty());
        for at in 0..passed.len() {
            let mut last = vec![Fit::Yes; TABLE.len()];
            for state in [CheckState::NotApplicable, CheckState::Unknown, CheckState::Warn, CheckState::Fail]
            {
                let mut checks = passed.clone();
                checks[at].state = state;
                let code = checks[at].id.clone();
                let judged = verdict(&checks);
                for ((row, f), before) in TABLE.iter().zip(&judged).zip(&mut last) {
                    let is_in = |codes: &str| codes.split_whitespace().any(|c| c == code);
                    let expected = match state {
                        CheckState::Fail if is_in(row.fails) => Fit::No,
                        CheckState::Fail | CheckState::Warn if is_in(row.warns) => Fit::Partly,
                        CheckState::Unknown if is_in(row.needs) => Fit::Unknown,
                        _ => Fit::Yes,
                    };
                    assert_eq!(f.fit, expected, "{} {code} {state:?}", f.purpose);
                    let is_worse = f.fit >= *before || state == CheckState::Warn;
                    assert!(is_worse, "{} {code}: {state:?} is better than {before:?}", f.purpose);
                    *before = f.fit;
                }
                let own = |f: &&Fitness| f.fit == Fit::No && MEASURED.iter().any(|p| p.name() == f.purpose);
                assert_eq!(spoiled(&checks), judged.iter().filter(own).cloned().collect::<Vec<_>>());
            }
        }
        assert!(verdict(&[]).iter().all(|f| f.fit == Fit::Unknown));
    }
}
