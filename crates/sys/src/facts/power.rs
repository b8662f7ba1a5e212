//! Frequency and idle states: what makes a core slower than it was a moment ago.

use std::collections::BTreeMap;

use machmeter_data::facts::{Fact, FactValue, Facts};

use super::{flag, from_file, in_unit, known_or, list_or, text};
use crate::fs_root::FsRoot;
use crate::topology::CpuSet;

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let cpus = tree.numbered(CPU, "cpu");
    facts.set("power.freq_driver", cpus_by_text(tree, &cpus, "scaling_driver"));
    facts.set("power.governor", cpus_by_text(tree, &cpus, "scaling_governor"));
    facts.set("power.epp", cpus_by_text(tree, &cpus, "energy_performance_preference"));
    let first = cpus.iter().find(|c| tree.exists(&format!("{CPU}/cpu{c}/cpufreq"))).copied().unwrap_or(0);
    for (key, file) in [
        ("hardware_min", "cpuinfo_min_freq"),
        ("hardware_max", "cpuinfo_max_freq"),
        ("allowed_min", "scaling_min_freq"),
        ("allowed_max", "scaling_max_freq"),
        ("base", "base_frequency"),
    ] {
        let file = format!("{CPU}/cpu{first}/cpufreq/{file}");
        let hz = from_file(tree, &file, |khz| Some(khz.parse::<f64>().ok()? * 1e3));
        facts.set(format!("power.{key}"), in_unit(hz, "Hz"));
    }
    facts.set("power.turbo", turbo(tree));
    facts.set("power.idle_driver", text(tree, &format!("{CPU}/cpuidle/current_driver")));
    facts.set("power.idle_governor", idle_governor(tree));
    facts.set("power.idle_states", idle_states(tree));
    facts.set("power.throttle_count", throttle_count(tree, &cpus));
}

/// Each text that the file of some CPU holds, with the list of these CPUs.
fn cpus_by_text(tree: &FsRoot, cpus: &[usize], file: &str) -> Fact {
    let mut by_text: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for cpu in cpus {
        if let Some(text) = tree.text(&format!("{CPU}/cpu{cpu}/cpufreq/{file}")) {
            by_text.entry(text).or_default().push(*cpu);
        }
    }
    let list =
        |(text, cpus): (String, Vec<usize>)| (text, cpus.into_iter().collect::<CpuSet>().to_string().into());
    let value = (!by_text.is_empty()).then(|| FactValue::map(by_text.into_iter().map(list)));
    let why = "no cpufreq: the machine or its hypervisor sets the frequency";
    known_or(value, &format!("/{CPU}/cpu*/cpufreq/{file}"), why)
}

/// Whether the cores may run above their base frequency.
fn turbo(tree: &FsRoot) -> Fact {
    let intel = format!("{CPU}/intel_pstate/no_turbo");
    if tree.exists(&intel) {
        return from_file(tree, &intel, |t| t.parse::<u8>().ok().map(|off| off == 0));
    }
    flag(tree, &format!("{CPU}/cpufreq/boost"))
}

fn idle_governor(tree: &FsRoot) -> Fact {
    let new = format!("{CPU}/cpuidle/current_governor");
    let old = format!("{CPU}/cpuidle/current_governor_ro");
    text(tree, if tree.exists(&new) { &new } else { &old })
}

/// The idle states of the first CPU: name, exit latency, and whether the state is disabled.
fn idle_states(tree: &FsRoot) -> Fact {
    let directory = format!("{CPU}/cpu0/cpuidle");
    let state = |i: usize| {
        let name = tree.text(&format!("{directory}/state{i}/name"))?;
        let exit_us: u64 = tree.number(&format!("{directory}/state{i}/latency"))?;
        let disabled = tree.text(&format!("{directory}/state{i}/disable")).is_some_and(|d| d != "0");
        let exit_ns = FactValue::from(exit_us.saturating_mul(1000));
        Some(FactValue::map([("name", name.into()), ("exit_ns", exit_ns), ("disabled", disabled.into())]))
    };
    let states: Vec<FactValue> = tree.numbered(&directory, "state").into_iter().filter_map(state).collect();
    list_or(states, &format!("/{directory}"), "no idle states are managed here")
}

/// Times a core was slowed down for heat since boot, over all CPUs.
fn throttle_count(tree: &FsRoot, cpus: &[usize]) -> Fact {
    let source = format!("/{CPU}/cpu*/thermal_throttle/core_throttle_count");
    let count = |cpu| tree.number::<u64>(&format!("{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"));
    let total = cpus.iter().filter_map(count).reduce(|a, b| a + b);
    in_unit(known_or(total, &source, "no throttle counters on this machine"), "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    #[test]
    fn idle_states_have_their_exit_latency_in_ns() {
        let at = |state: usize, leaf: &str| format!("{CPU}/cpu0/cpuidle/state{state}/{leaf}");
        let (name, latency) = (at(0, "name"), at(0, "latency"));
        let (deep, deep_latency, disable) = (at(1, "name"), at(1, "latency"), at(1, "disable"));
        let recording =
            format!("{name}\tPOLL\n{latency}\t0\n{deep}\tC6\n{deep_latency}\t133\n{disable}\t1\n");
        let state = |name: &str, exit_ns: i64, disabled: bool| {
            FactValue::map([
                ("name", name.into()),
                ("exit_ns", exit_ns.into()),
                ("disabled", disabled.into()),
            ])
        };
        let expected = FactValue::List(vec![state("POLL", 0, false), state("C6", 133_000, true)]);
        assert_eq!(idle_states(&tree_of(&recording).1).value, Some(expected));
        assert!(idle_states(&tree_of("").1).value.is_none());
    }
}
