//! Differences around two runs: facts, checks and load. Values that vary on their own (free memory, temperatures) are left out, so that the rest are
//! possible causes of a change.

use std::collections::BTreeSet;

use machmeter_data::{CheckState, Fact, FactState, Record};

use crate::options::glob_matches;

/// Reported facts, by pattern of their path, in the order of the report.
const REPORTED: &str = "\
    cpu.model* *microcode* *governor* *mitigation* *vulnerabilit* kernel.release kernel.version \
    kernel.cmdline *preempt* *isolated* *nohz* *smt* *turbo* *boost* *cpu.count* *cpus.allowed* \
    *hypervisor* *container* *clocksource* *thp* *hugepage* *memory.total* *mem.total* *cgroup*";
/// Facts about the load of the machine.
const LOAD: [&str; 4] = ["*load*", "*psi*", "*pressure*", "*steal*"];
/// Difference up to which two loads count as equal (runnable tasks or percent, as recorded).
const LOAD_STEP: f64 = 0.5;
/// Ratio up to which two loads count as equal.
const LOAD_RATIO: f64 = 1.5;

/// True if no reported fact differs, apart from load.
pub(crate) fn same_state(a: &Record, b: &Record) -> bool {
    let changed = a.machine.before.changed(&b.machine.before);
    reported(&changed).next().is_none()
}

/// The reported ones of `paths`, without load.
fn reported(paths: &[String]) -> impl Iterator<Item = &String> {
    let of_pattern = move |pattern| paths.iter().filter(move |p| !is_load(p) && glob_matches(pattern, p));
    REPORTED.split(' ').flat_map(of_pattern)
}

/// Differences in the facts before the runs, and in checks, in words.
pub(crate) fn difference(a: &Record, b: &Record) -> Vec<String> {
    let (of_a, of_b) = (&a.machine.before, &b.machine.before);
    let both = |path: &String| {
        let facts = [of_a, of_b].map(|facts| facts.get(path));
        let [mut x, mut y] = facts.map(shown);
        if x == y {
            // The difference is below the printed digits.
            [x, y] = facts.map(exact);
        }
        format!("{path}: {x} -> {y}")
    };
    let changed = of_a.changed(of_b);
    let mut told = BTreeSet::new();
    let mut lines: Vec<String> = reported(&changed).filter(|path| told.insert(*path)).map(both).collect();
    let numbers = |path: &String| of_a.number(path).zip(of_b.number(path));
    let differs = |path: &&String| is_load(path) && numbers(path).is_some_and(|(x, y)| loads_differ(x, y));
    lines.extend(changed.iter().filter(differs).map(both));
    for check in &a.checks {
        let other = b.checks.iter().find(|c| c.id == check.id);
        if let Some(other) = other.filter(|o| o.state != check.state) {
            let states = format!("{} -> {}", state(check.state), state(other.state));
            lines.push(format!("check {} {}: {states}", check.id, check.name));
        }
    }
    lines
}

fn is_load(path: &str) -> bool {
    LOAD.iter().any(|p| glob_matches(p, path))
}

fn loads_differ(x: f64, y: f64) -> bool {
    (x - y).abs() > LOAD_STEP && x.max(y) > LOAD_RATIO * x.min(y)
}

fn shown(fact: Option<&Fact>) -> String {
    let Some(fact) = fact else { return "not recorded".to_owned() };
    fact.human().unwrap_or_else(|| {
        let state = match fact.state {
            FactState::Denied => "unknown (denied)",
            FactState::Absent => "absent",
            FactState::Unsupported => "unsupported",
            FactState::Known | FactState::Unreadable => "unknown",
        };
        state.to_owned()
    })
}

/// A number with all its digits in its unit; any other fact as [`shown`].
fn exact(fact: Option<&Fact>) -> String {
    let number =
        fact.and_then(|f| Some(format!("{} {}", f.number()?, f.unit.as_deref().unwrap_or_default())));
    number.map_or_else(|| shown(fact), |text| text.trim_end().to_owned())
}

fn state(state: CheckState) -> &'static str {
    match state {
        CheckState::Pass => "pass",
        CheckState::Warn => "warn",
        CheckState::Fail => "fail",
        CheckState::Unknown => "unknown",
        CheckState::NotApplicable => "n/a",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_loads_and_equal_loads_do_not_differ() {
        assert!(!loads_differ(0.02, 0.4) && !loads_differ(8.0, 9.0));
        assert!(loads_differ(0.1, 0.9) && loads_differ(8.0, 2.0));
    }

    #[test]
    fn numbers_read_in_their_units_and_show_that_they_differ() {
        let lines = |a: i64, b: i64| {
            let record = |bytes: i64| {
                let mut record = Record::default();
                record.machine.before.set("memory.total", Fact::known(bytes, "test").with_unit("By"));
                record
            };
            difference(&record(a), &record(b))
        };
        assert_eq!(lines(16 << 30, 24 << 30), ["memory.total: 16.0 GiB -> 24.0 GiB"]);
        assert_eq!(lines(16 << 30, (16 << 30) + 4096), ["memory.total: 17179869184 By -> 17179873280 By"]);
        assert!(lines(1, 1).is_empty());
    }
}
