//! What else runs: load averages and pressure.

use machmeter_data::facts::Facts;

use super::{from_file, in_unit};
use crate::tree::Tree;

pub(super) fn add(facts: &mut Facts, tree: &Tree) {
    let word =
        |n: usize| move |t: &str| t.split_whitespace().nth(n)?.parse::<f64>().ok().filter(|v| v.is_finite());
    for (n, key) in [(0, "average_1min"), (1, "average_5min"), (2, "average_15min")] {
        facts.set(format!("load.{key}"), in_unit(from_file(tree, "proc/loadavg", word(n)), "1"));
    }
    let running = |t: &str| t.split_whitespace().nth(3)?.split_once('/')?.0.parse::<i64>().ok();
    facts.set("load.running", in_unit(from_file(tree, "proc/loadavg", running), "1"));
    for resource in ["cpu", "memory", "io"] {
        for (window, key) in [("avg10", "10s"), ("avg60", "60s")] {
            let fact = from_file(tree, &format!("proc/pressure/{resource}"), |t| pressure(t, window));
            facts.set(format!("load.psi_{resource}_{key}"), in_unit(fact, "%"));
        }
    }
}

/// The share of time in which some task waited, percent: line `some avg10=0.75 avg60=5.46 ...`.
fn pressure(text: &str, window: &str) -> Option<f64> {
    let some = text.lines().find_map(|l| l.strip_prefix("some "))?;
    let value = some.split_whitespace().find_map(|w| w.strip_prefix(window)?.strip_prefix('='))?;
    value.parse().ok().filter(|v: &f64| v.is_finite())
}
