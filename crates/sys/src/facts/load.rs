//! What else runs: load averages and pressure.

use machmeter_data::facts::Facts;

use super::{from_file, in_unit};
use crate::fs_root::FsRoot;
use crate::pressure::{Pressure, Resource, Stall};

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let word =
        |n: usize| move |t: &str| t.split_whitespace().nth(n)?.parse::<f64>().ok().filter(|v| v.is_finite());
    for (n, key) in [(0, "average_1min"), (1, "average_5min"), (2, "average_15min")] {
        facts.set(format!("load.{key}"), in_unit(from_file(tree, "proc/loadavg", word(n)), "1"));
    }
    let running = |t: &str| t.split_whitespace().nth(3)?.split_once('/')?.0.parse::<i64>().ok();
    facts.set("load.running", in_unit(from_file(tree, "proc/loadavg", running), "1"));
    // The share of time in which some task waited.
    for resource in Resource::ALL.map(Resource::name) {
        let mut add = |key: &str, share: fn(Stall) -> f64| {
            let percent = |text: &str| Pressure::parse(text).map(|p| share(p.some));
            let fact = from_file(tree, &format!("proc/pressure/{resource}"), percent);
            facts.set(format!("load.psi_{resource}_{key}"), in_unit(fact, "%"));
        };
        add("10s", |stall| stall.average_10s_percent);
        add("60s", |stall| stall.average_60s_percent);
    }
}
