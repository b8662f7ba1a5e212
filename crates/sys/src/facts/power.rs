//! Frequency and idle states: what makes a core slower than it was a moment ago.

use std::collections::BTreeSet;

use machmeter_data::facts::{Fact, Facts};

use super::{absent, flag, from_file, in_unit, known_or, list_or, text};
use crate::fs_root::FsRoot;
use crate::topology::CpuSet;

const CPU: &str = "sys/devices/system/cpu";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let cpus = tree.numbered(CPU, "cpu");
    facts.set("power.freq_driver", text_of_all(tree, &cpus, "scaling_driver"));
    facts.set("power.governor", text_of_all(tree, &cpus, "scaling_governor"));
    facts.set("power.epp", text_of_all(tree, &cpus, "energy_performance_preference"));
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

/// One text where all CPUs agree, else each different one with a CPU that has it.
fn text_of_all(tree: &FsRoot, cpus: &[usize], file: &str) -> Fact {
    let source = format!("/{CPU}/cpu*/cpufreq/{file}");
    let read = |cpu: &usize| Some((tree.text(&format!("{CPU}/cpu{cpu}/cpufreq/{file}"))?, *cpu));
    let all: Vec<(String, usize)> = cpus.iter().filter_map(read).collect();
    let different: BTreeSet<&str> = all.iter().map(|(value, _)| value.as_str()).collect();
    match different.len() {
        0 => {
            let why = "no cpufreq: the machine or its hypervisor sets the frequency";
            absent(source, why)
        }
        1 => Fact::known(all[0].0.as_str(), source),
        _ => {
            let with_cpus = |value: &str| {
                let cpus: CpuSet = all.iter().filter(|(v, _)| v == value).map(|(_, cpu)| *cpu).collect();
                format!("{value} (CPU {cpus})")
            };
            Fact::known(different.into_iter().map(with_cpus).collect::<Vec<_>>(), source)
        }
    }
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

/// Name and exit latency of each idle state of the first CPU.
fn idle_states(tree: &FsRoot) -> Fact {
    let directory = format!("{CPU}/cpu0/cpuidle");
    let state = |i: usize| {
        let name = tree.text(&format!("{directory}/state{i}/name"))?;
        let exit_us: u64 = tree.number(&format!("{directory}/state{i}/latency"))?;
        let disabled = tree.text(&format!("{directory}/state{i}/disable")).is_some_and(|d| d != "0");
        Some(format!("{name} exit {} ns{}", exit_us * 1000, if disabled { ", disabled" } else { "" }))
    };
    let states = tree.numbered(&directory, "state").into_iter().filter_map(state).collect();
    list_or(states, &format!("/{directory}"), "no idle states are managed here")
}

/// Times a core was slowed down for heat since boot, over all CPUs.
fn throttle_count(tree: &FsRoot, cpus: &[usize]) -> Fact {
    let source = format!("/{CPU}/cpu*/thermal_throttle/core_throttle_count");
    let count = |cpu| tree.number::<u64>(&format!("{CPU}/cpu{cpu}/thermal_throttle/core_throttle_count"));
    let total = cpus.iter().filter_map(count).reduce(|a, b| a + b);
    in_unit(known_or(total, &source, "no throttle counters on this machine"), "1")
}
