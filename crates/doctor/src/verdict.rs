//! What the checks together say the machine is fit for.
//!
//! A table names, for each purpose, the checks whose failure spoils it, those whose warning weakens it, and those that must be known to
//! praise it. The verdicts of a measured page use the failures of the same table: a machine whose CPUs are taken is not fit for throughput,
//! whatever was measured in a quiet moment.

use machmeter_data::summary::{Fit, Fitness, Purpose};
use machmeter_data::{Check, CheckState};

/// Checks of one purpose, by code.
struct Row {
    purpose: Purpose,
    /// A failure makes the machine unfit.
    fails: &'static str,
    /// A warning is a reservation; so is a failure of a check that is not among `fails`.
    warns: &'static str,
    /// Unknown, these leave the purpose undecided.
    needs: &'static str,
}

/// Purposes that a page judges by measurement, too; their checks are of the resource that the purpose uses: CPU time, and memory that the
/// kernel takes back.
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

/// The purposes that pages judge by measurement.
const MEASURED: [Purpose; 4] = [Purpose::Latency, Purpose::Audio, Purpose::Throughput, Purpose::Messages];

/// Judges the outcome of all checks, purpose by purpose. A check that is missing counts as unknown.
pub fn verdict(checks: &[Check]) -> Vec<Fitness> {
    TABLE.iter().map(|row| row.judge(checks)).collect()
}

/// The purposes of a page that failed checks spoil.
pub fn spoiled(checks: &[Check]) -> Vec<Fitness> {
    let measured = TABLE.iter().filter(|row| MEASURED.contains(&row.purpose));
    measured.map(|row| row.judge(checks)).filter(|f| f.fit == Fit::No).collect()
}

/// All codes that decide a purpose.
#[cfg(test)]
pub(crate) fn codes() -> impl Iterator<Item = &'static str> {
    TABLE.iter().flat_map(|row| [row.fails, row.warns, row.needs]).flat_map(str::split_whitespace)
}

impl Row {
    /// The worst check decides, of several the first; its observation is the reason. If programs wait for CPUs, the reason is who runs.
    fn judge(&self, checks: &[Check]) -> Fitness {
        let names =
            |codes: &str, check: &Check| codes.split_whitespace().any(|c| check.id.eq_ignore_ascii_case(c));
        let first =
            |state: CheckState, codes: &str| checks.iter().find(|c| c.state == state && names(codes, c));
        let said = |c: &Check| {
            let is_bad = |k: &&Check| matches!(k.state, CheckState::Warn | CheckState::Fail);
            let who = checks.iter().find(|k| k.id == "E106").filter(is_bad);
            let is_load = ["E104", "E105", "E106"].contains(&c.id.as_str());
            let observed = who.filter(|_| is_load).unwrap_or(c).observed.as_str();
            // The check's own row has the names behind the colon.
            let head = observed.split_once(": ").filter(|_| is_load).map_or(observed, |(head, _)| head);
            format!("{head} ({})", c.id)
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
                (Fit::Yes, "no check speaks against it".to_owned())
            } else {
                (Fit::Unknown, format!("could not be seen: {}", unseen.join(", ")))
            }
        };
        Fitness { purpose: self.purpose.name().to_owned(), fit, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::facts::Facts;

    /// Every check in every state: unknown never praises, a failure of a purpose's own resource always spoils it, on the page as well.
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
