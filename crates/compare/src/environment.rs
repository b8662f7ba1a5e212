//! What differs around two runs: facts, checks and load. Numbers that wander by themselves (free memory, temperatures) are
//! left out; what remains are the things a reader would blame for a change.

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

/// What differs, in words, and whether the load does.
pub(crate) struct Difference {
    pub(crate) lines: Vec<String>,
    /// Sentence on the load if it differs.
    pub(crate) load: Option<String>,
}

/// Compares facts before the runs, and checks.
pub(crate) fn difference(a: &Record, b: &Record) -> Difference {
    let (of_a, of_b) = (&a.machine.before, &b.machine.before);
    let both = |path: &String| format!("{path}: {} -> {}", shown(of_a.get(path)), shown(of_b.get(path)));
    let (loads, others): (Vec<String>, Vec<String>) =
        of_a.changed(of_b).into_iter().partition(|p| is_load(p));
    let of_pattern = |pattern| others.iter().filter(move |path| glob_matches(pattern, path));
    let mut lines = Vec::new();
    for line in REPORTED.split(' ').flat_map(of_pattern).map(both) {
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    let numbers = |path: &String| of_a.number(path).zip(of_b.number(path));
    let differs = |path: &&String| numbers(path).is_some_and(|(x, y)| loads_differ(x, y));
    let loads: Vec<String> = loads.iter().filter(differs).map(both).collect();
    let load = loads.first().cloned();
    lines.extend(loads);
    for check in &a.checks {
        let other = b.checks.iter().find(|c| c.id == check.id);
        if let Some(other) = other.filter(|o| o.state != check.state) {
            let states = format!("{} -> {}", state(check.state), state(other.state));
            lines.push(format!("check {} {}: {states}", check.id, check.name));
        }
    }
    Difference { lines, load }
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
        assert!(!loads_differ(0.02, 0.4));
        assert!(!loads_differ(8.0, 9.0));
        assert!(loads_differ(0.1, 0.9));
        assert!(loads_differ(8.0, 2.0));
    }
}
