//! What differs around two runs: facts, checks and load. Numbers that wander by themselves (free memory, temperatures) are
//! left out; what remains are the things a reader would blame for a change.

use std::collections::BTreeSet;

use machmeter_data::{CheckState, Fact, FactState, FactValue, Record};

use crate::options::glob_matches;

/// Facts worth reporting, by pattern of their path, in the order in which they are reported.
const REPORTED: &str = "\
    cpu.model* *microcode* *governor* *mitigation* *vulnerabilit* kernel.release kernel.version \
    kernel.cmdline *preempt* *isolated* *nohz* *smt* *turbo* *boost* *cpu.count* *cpus.allowed* \
    *hypervisor* *container* *clocksource* *thp* *hugepage* *memory.total* *mem.total* *cgroup*";
/// Facts that say how busy the machine was.
const LOAD: [&str; 4] = ["*load*", "*psi*", "*pressure*", "*steal*"];
/// Load that differs by less than this (runnable tasks, percent, as recorded) is the same load.
const LOAD_STEP: f64 = 0.5;
/// And so is load within this ratio.
const LOAD_RATIO: f64 = 1.5;

/// Whether nothing is different that a reader would blame, apart from load.
pub(crate) fn same_state(a: &Record, b: &Record) -> bool {
    let changed = a.machine.before.changed(&b.machine.before);
    reported(&changed).next().is_none()
}

/// Those of `paths` that are worth reporting, without load.
fn reported(paths: &[String]) -> impl Iterator<Item = &String> {
    let of_pattern = move |pattern| paths.iter().filter(move |p| !is_load(p) && glob_matches(pattern, p));
    REPORTED.split(' ').flat_map(of_pattern)
}

/// What differs in facts before the runs, and checks, in words.
pub(crate) fn difference(a: &Record, b: &Record) -> Vec<String> {
    let (of_a, of_b) = (&a.machine.before, &b.machine.before);
    let both = |path: &String| format!("{path}: {} -> {}", shown(of_a.get(path)), shown(of_b.get(path)));
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
    match (&fact.value, fact.state) {
        (Some(value), _) => match fact.unit.as_deref().filter(|u| *u != "1") {
            Some(unit) => format!("{} {unit}", text(value)),
            None => text(value),
        },
        (None, FactState::Denied) => "unknown (denied)".to_owned(),
        (None, FactState::Absent) => "absent".to_owned(),
        (None, FactState::Unsupported) => "unsupported".to_owned(),
        (None, _) => "unknown".to_owned(),
    }
}

fn text(value: &FactValue) -> String {
    match value {
        FactValue::Bool(b) => if *b { "yes" } else { "no" }.to_owned(),
        FactValue::Int(i) => i.to_string(),
        FactValue::Float(f) => machmeter_data::quantity::digits(*f),
        FactValue::Text(t) => t.clone(),
        FactValue::List(l) => l.iter().map(text).collect::<Vec<_>>().join(","),
    }
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
}
