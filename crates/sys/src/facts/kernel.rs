//! The kernel: version, preemption, tick, isolation, real-time limits, watchdogs, mitigations.

use std::collections::BTreeSet;

use machmeter_data::facts::{Fact, Facts};

use super::{absent, chosen, flag, from_file, in_unit, int, known_or, text};
use crate::fs_root::FsRoot;

const SYSCTL: &str = "proc/sys/kernel";
const DEBUG: &str = "sys/kernel/debug";
const VULNERABILITIES: &str = "sys/devices/system/cpu/vulnerabilities";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let sysctl = |name: &str| format!("{SYSCTL}/{name}");
    facts.set("kernel.release", text(tree, &sysctl("osrelease")));
    facts.set("kernel.version", text(tree, &sysctl("version")));
    facts.set("kernel.cmdline", text(tree, "proc/cmdline"));
    facts.set("kernel.preempt", preempt(tree));
    facts.set("kernel.hz", hz(tree));
    for name in ["isolcpus", "rcu_nocbs", "nohz", "idle", "skew_tick", "tsc", "clocksource"] {
        facts.set(format!("kernel.boot.{name}"), boot_parameter(tree, name));
    }
    facts.set("kernel.isolated", cpu_list(tree, "sys/devices/system/cpu/isolated"));
    facts.set("kernel.nohz_full", cpu_list(tree, "sys/devices/system/cpu/nohz_full"));
    let clocksource = "sys/devices/system/clocksource/clocksource0";
    facts.set("kernel.clocksource", text(tree, &format!("{clocksource}/current_clocksource")));
    facts.set("kernel.clocksources", text(tree, &format!("{clocksource}/available_clocksource")));
    facts.set("kernel.timer_migration", flag(tree, &sysctl("timer_migration")));
    facts.set("kernel.rt_runtime", microseconds(tree, &sysctl("sched_rt_runtime_us")));
    facts.set("kernel.rt_period", microseconds(tree, &sysctl("sched_rt_period_us")));
    facts.set("kernel.autogroup", flag(tree, &sysctl("sched_autogroup_enabled")));
    facts.set("kernel.numa_balancing", int(tree, &sysctl("numa_balancing"), "1"));
    facts.set("kernel.watchdog", flag(tree, &sysctl("watchdog")));
    facts.set("kernel.nmi_watchdog", flag(tree, &sysctl("nmi_watchdog")));
    facts.set("kernel.tracer", text(tree, "sys/kernel/tracing/current_tracer"));
    facts.set("kernel.trace_clock", chosen(tree, "sys/kernel/tracing/trace_clock"));
    add_fair_server(facts, &tree.below(DEBUG));
    for name in tree.names(VULNERABILITIES) {
        facts.set(format!("mitigations.{name}"), text(tree, &format!("{VULNERABILITIES}/{name}")));
    }
}

/// The share the kernel keeps for ordinary threads when real-time threads fill a CPU (Linux 6.8 and later).
pub(super) fn add_fair_server(facts: &mut Facts, debug: &FsRoot) {
    let tree = debug.below("sched/fair_server");
    let source = "/sys/kernel/debug/sched/fair_server/cpu*";
    let cpus = tree.numbered("", "cpu");
    let missing = match cpus.first().map(|cpu| tree.read(&format!("cpu{cpu}/runtime"))) {
        Some(Err(e)) => super::unread(&e, source),
        _ => absent(source, "debugfs is not mounted or not readable here, or the kernel is older than 6.12"),
    };
    let of_cpu = |cpu: usize| {
        let number = |name: &str| tree.number::<u64>(&format!("cpu{cpu}/{name}"));
        Some((number("runtime")?, number("period")?))
    };
    let different: BTreeSet<(u64, u64)> = cpus.into_iter().filter_map(of_cpu).collect();
    let fact = |pick: fn(&(u64, u64)) -> u64| {
        let values: Vec<u64> = different.iter().map(pick).collect();
        match values[..] {
            [] => missing.clone(),
            [one] => Fact::known(one, source).with_unit("ns"),
            _ => Fact::known(values, source).with_unit("ns"),
        }
    };
    facts.set("kernel.fair_server_runtime", fact(|v| v.0));
    facts.set("kernel.fair_server_period", fact(|v| v.1));
}

/// The preemption model: what is chosen at run time if debugfs shows it, else what the version text says.
fn preempt(tree: &FsRoot) -> Fact {
    if let Some(model) = preempt_chosen(&tree.below(DEBUG)) {
        return model;
    }
    from_file(tree, &format!("{SYSCTL}/version"), |version| {
        let named = |name: &str| version.split_whitespace().any(|word| word == name);
        // Which model of a dynamic kernel is in force only debugfs or the boot parameter tells.
        let at_boot = || tree.text("proc/cmdline").and_then(|c| parameter(&c, "preempt"));
        let models = [("PREEMPT_RT", "rt"), ("PREEMPT_LAZY", "lazy"), ("PREEMPT", "full")];
        if named("PREEMPT_DYNAMIC") {
            return Some(at_boot().unwrap_or_else(|| "dynamic".to_owned()));
        }
        let model =
            models.iter().find(|(word, _)| named(word)).map_or("none or voluntary", |(_, model)| model);
        Some(model.to_owned())
    })
}

/// The model in parentheses of debugfs's `sched/preempt`.
pub(super) fn preempt_chosen(debug: &FsRoot) -> Option<Fact> {
    let text = debug.text("sched/preempt")?;
    let model = text.split_once('(')?.1.split_once(')')?.0.to_owned();
    Some(Fact::known(model, "/sys/kernel/debug/sched/preempt"))
}

/// The frequency of the periodic tick from the kernel's configuration. /proc/config.gz is compressed and left alone.
fn hz(tree: &FsRoot) -> Fact {
    let release = tree.text(&format!("{SYSCTL}/osrelease")).unwrap_or_default();
    let files = [format!("boot/config-{release}"), format!("lib/modules/{release}/config")];
    let file = files.iter().find(|f| tree.exists(f)).unwrap_or(&files[0]);
    let value = |config: &str| config.lines().find_map(|l| l.strip_prefix("CONFIG_HZ=")?.parse::<i64>().ok());
    in_unit(from_file(tree, file, value), "Hz")
}

/// A file in us as a fact in ns; -1 stands for "no limit".
fn microseconds(tree: &FsRoot, file: &str) -> Fact {
    let fact = from_file(tree, file, |t| t.parse::<i64>().ok());
    match fact.number() {
        Some(us) if us >= 0.0 => Fact::known((us * 1e3) as i64, fact.source).with_unit("ns"),
        Some(_) => Fact::known("unlimited", fact.source),
        None => fact,
    }
}

/// A CPU list; "(null)" is how some kernels write the empty one.
fn cpu_list(tree: &FsRoot, file: &str) -> Fact {
    from_file(tree, file, |t| Some(if t == "(null)" { String::new() } else { t.to_owned() }))
}

fn boot_parameter(tree: &FsRoot, name: &str) -> Fact {
    let source = "/proc/cmdline";
    match tree.read("proc/cmdline") {
        Err(e) => super::unread(&e, source),
        Ok(cmdline) => known_or(parameter(&cmdline, name), source, "not given at boot"),
    }
}

/// The last value of `name=value` on a kernel command line; quotes protect blanks.
fn parameter(cmdline: &str, name: &str) -> Option<String> {
    let mut quoted = false;
    let words = cmdline.split(|c: char| {
        quoted ^= c == '"';
        c.is_whitespace() && !quoted
    });
    let value = |word: &str| {
        let (key, value) = word.trim_matches('"').split_once('=')?;
        (key == name).then(|| value.trim_matches('"').to_owned())
    };
    words.filter_map(value).last()
}

#[cfg(test)]
mod tests {
    use super::parameter;

    #[test]
    fn parameters_are_found_whole_last_and_despite_quotes() {
        let line = r#"root=/dev/sda a="x isolcpus=9" isolcpus=1 "isolcpus=domain,2-3" xisolcpus=4 quiet"#;
        assert_eq!(parameter(line, "isolcpus").as_deref(), Some("domain,2-3"));
        assert_eq!(parameter(line, "a").as_deref(), Some("x isolcpus=9"));
        assert_eq!(parameter(line, "quiet"), None);
        assert_eq!(parameter("", "a"), None);
    }
}
