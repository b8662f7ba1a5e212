//! What acts on CPUs besides threads: interrupts and where they go, tracers, latency requests; and the time of the
//! capture, so that two captures give rates.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};

use super::{absent, from_file, in_unit, unread};
use crate::counters::interrupts::InterruptCounts;
use crate::fs_root::FsRoot;
use crate::pseudofs::KernelMount;
use crate::sched::GroupBudget;

const IRQ: &str = "proc/irq";
const TRACERS: &str = "/sys/kernel/tracing {current_tracer,events/enable}";
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let uptime = from_file(tree, "proc/uptime", |t| {
        let seconds: f64 = t.split_whitespace().next()?.parse().ok()?;
        (seconds.is_finite() && seconds >= 0.0).then_some((seconds * 1e9) as i64)
    });
    facts.set("time.uptime", in_unit(uptime, "ns"));
    facts.set("irq.targets", targets(tree));
    facts.set("irq.counts", from_file(tree, "proc/interrupts", device_counts));
    facts.set("limits.user_namespace", from_file(tree, "proc/self/uid_map", user_namespace));
    facts.set("kernel.tracers", tracers(&tree.below("sys/kernel/tracing")));
}

pub(super) fn add_live(facts: &mut Facts) {
    facts.set("power.dma_latency", dma_latency());
    let budget = group_budget(&GroupBudget::read());
    facts.set("limits.rt_group", Fact::known(budget, "/proc/thread-self/cgroup cpu.rt_runtime_us"));
    if facts.get("kernel.tracers").is_none_or(|f| f.value.is_none()) {
        let fact = match KernelMount::of_tracefs() {
            Ok(mount) => tracers(&FsRoot::at(mount.path())),
            Err(e) => unread(&e, TRACERS),
        };
        facts.set("kernel.tracers", fact);
    }
}

/// Whether the process is in the initial user namespace: capabilities count for the machine only there.
pub(crate) fn user_namespace(uid_map: &str) -> Option<&'static str> {
    match uid_map.split_whitespace().collect::<Vec<_>>()[..] {
        [] => None,
        ["0", "0", "4294967295"] => Some("initial"),
        _ => Some("own"),
    }
}

/// Whether the real-time budget of the control group refuses real-time threads (`refuses`; missing if no file shows it), and `why`.
/// Groups with a budget of their own also have `group` and, if it is known, `runtime_ns`.
fn group_budget(budget: &GroupBudget) -> FactValue {
    let why = budget.refusal();
    let mut entries: Vec<(&str, FactValue)> = Vec::new();
    match budget {
        GroupBudget::NotConfigured => {}
        GroupBudget::Hidden { group } => entries.push(("group", group.as_str().into())),
        GroupBudget::Known { group, runtime_us } => {
            let is_limited = *runtime_us >= 0;
            let runtime =
                if is_limited { runtime_us.saturating_mul(1000).into() } else { "unlimited".into() };
            entries.extend([("group", group.as_str().into()), ("runtime_ns", runtime)]);
        }
    }
    if !matches!(budget, GroupBudget::Hidden { .. }) {
        entries.push(("refuses", why.is_some().into()));
    }
    entries.extend(why.map(|why| ("why", why.into())));
    FactValue::map(entries)
}

/// Device interrupts with their names and the CPUs that they are routed to.
fn targets(tree: &FsRoot) -> Fact {
    let source = format!("/{IRQ}/*/effective_affinity_list");
    let interrupts = tree.text("proc/interrupts").and_then(|t| InterruptCounts::parse(&t));
    let mut refused = None;
    let mut list = Vec::new();
    for irq in tree.numbered(IRQ, "") {
        let read = |leaf: &str| tree.read(&format!("{IRQ}/{irq}/{leaf}"));
        let cpus = read("effective_affinity_list")
            .and_then(|t| if t.is_empty() { read("smp_affinity_list") } else { Ok(t) })
            .or_else(|_| read("smp_affinity_list"));
        // Interrupts without a line in /proc/interrupts belong to no driver and never fire.
        let line = interrupts.as_ref().and_then(|i| i.line(&irq.to_string()));
        let Some(name) = line.and_then(|l| l.description.split_whitespace().last()) else { continue };
        match cpus {
            Ok(cpus) => list.push(FactValue::map([
                ("irq", FactValue::from(irq)),
                ("name", name.into()),
                ("cpus", cpus.into()),
            ])),
            Err(e) => refused = Some(e),
        }
    }
    match refused {
        // A list with holes would show CPUs as free of interrupts that are not.
        Some(e) => unread(&e, &source),
        None if !tree.exists(IRQ) || interrupts.is_none() => {
            absent(source, "no /proc/irq or no /proc/interrupts on this system")
        }
        None => Fact::known(list, source),
    }
}

/// Device interrupts (the numbered lines) since boot, by CPU number.
fn device_counts(interrupts: &str) -> Option<FactValue> {
    let counts = InterruptCounts::parse(interrupts)?;
    let devices = || counts.lines.iter().filter(|l| l.id.parse::<u32>().is_ok());
    let sum = |column: usize| devices().filter_map(|l| l.counts.get(column)).sum::<u64>();
    Some(FactValue::map(counts.cpus.iter().enumerate().map(|(i, cpu)| (cpu.to_string(), sum(i).into()))))
}

/// Tracers in use, and `events` if trace events are, by instance. The top of tracefs is `global`. Without any, the map is empty.
fn tracers(tracefs: &FsRoot) -> Fact {
    let mut active: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut instances = vec![(String::new(), "global".to_owned())];
    instances.extend(tracefs.names("instances").into_iter().map(|n| (format!("instances/{n}/"), n)));
    for (directory, name) in instances {
        match tracefs.read(&format!("{directory}current_tracer")) {
            Ok(tracer) if tracer != "nop" => active.entry(name.clone()).or_default().push(tracer),
            Ok(_) => {}
            Err(e) => return unread(&e, TRACERS),
        }
        match tracefs.read(&format!("{directory}events/enable")) {
            Ok(enabled) if enabled != "0" => active.entry(name).or_default().push("events".to_owned()),
            Ok(_) => {}
            // A kernel without trace events has no such file.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return unread(&e, TRACERS),
        }
    }
    Fact::known(active, TRACERS)
}

/// The longest wake-up latency that any process allows the idle states to have (PM `QoS`), in force now.
fn dma_latency() -> Fact {
    let read = || {
        let mut bytes = [0_u8; 4];
        File::open(Path::new(DMA_LATENCY))?.read_exact(&mut bytes)?;
        Ok(i32::from_ne_bytes(bytes))
    };
    match read() {
        Ok(us) if us >= 0 => Fact::known(i64::from(us) * 1000, DMA_LATENCY).with_unit("ns"),
        Ok(us) => Fact::missing(FactState::Unreadable, DMA_LATENCY, format!("a negative latency: {us}")),
        Err(e) => unread(&e, DMA_LATENCY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    /// As in a recording.
    const INTERRUPTS: &str = r"           CPU0       CPU2       \n 24:          1          5  IO-APIC   5-edge      ttyS0\n 36:          0     185921 PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\nLOC:     406916     454721   Local timer interrupts\nERR:          0";

    #[test]
    fn device_interrupts_are_counted_per_cpu_and_named_with_their_targets() {
        let recording = format!(
            "proc/interrupts\t{INTERRUPTS}\nproc/irq/24/effective_affinity_list\t2\n\
             proc/irq/36/effective_affinity_list\t\nproc/irq/36/smp_affinity_list\t0-2\n\
             proc/irq/99/smp_affinity_list\t0\nproc/uptime\t12.34 5.00\n"
        );
        let (_keep, tree) = tree_of(&recording);
        let mut facts = Facts::default();
        add(&mut facts, &tree);
        let value = |path: &str| facts.get(path).unwrap().value.clone().unwrap();
        let target = |irq: i64, name: &str, cpus: &str| {
            FactValue::map([("irq", irq.into()), ("name", name.into()), ("cpus", cpus.into())])
        };
        let targets = FactValue::List(vec![target(24, "ttyS0", "2"), target(36, "virtio1-req.0", "0-2")]);
        assert_eq!(value("irq.targets"), targets, "an interrupt without a driver is left out");
        assert_eq!(value("irq.counts"), FactValue::map([("0", 1_i64.into()), ("2", 185_926_i64.into())]));
        assert_eq!(facts.number("time.uptime"), Some(12_340_000_000.0));
        assert_eq!(device_counts("no header"), None);
    }

    #[test]
    fn tracers_of_every_instance_are_seen() {
        let of = |recording: &str| tracers(&tree_of(recording).1);
        let value = |recording: &str| of(recording).value.unwrap();
        assert_eq!(value("current_tracer\tnop\nevents/enable\t0\n"), FactValue::Map(BTreeMap::new()));
        let busy = "current_tracer\tfunction\nevents/enable\tX\ninstances/osnoise/current_tracer\tosnoise\n";
        let expected = [("global", vec!["function", "events"]), ("osnoise", vec!["osnoise"])];
        assert_eq!(value(busy), FactValue::map(expected.map(|(name, active)| (name, active.into()))));
        assert_eq!(of("").state, FactState::Absent);
    }

    #[test]
    fn a_budget_that_no_file_shows_neither_refuses_nor_allows() {
        let keys = |budget: &GroupBudget| {
            let value = group_budget(budget);
            let map = value.entries().unwrap();
            (map.keys().cloned().collect::<Vec<_>>().join(" "), map.get("refuses").and_then(FactValue::flag))
        };
        let known = |runtime_us| GroupBudget::Known { group: "/box".to_owned(), runtime_us };
        assert_eq!(keys(&GroupBudget::NotConfigured), ("refuses".to_owned(), Some(false)));
        assert_eq!(keys(&known(0)), ("group refuses runtime_ns why".to_owned(), Some(true)));
        assert_eq!(keys(&known(-1)), ("group refuses runtime_ns".to_owned(), Some(false)));
        let hidden = GroupBudget::Hidden { group: "/box".to_owned() };
        assert_eq!(keys(&hidden), ("group why".to_owned(), None));
    }

    #[test]
    fn only_the_whole_map_is_the_initial_namespace() {
        assert_eq!(user_namespace("0 0 4294967295"), Some("initial"));
        assert_eq!(user_namespace("0 1000 1"), Some("own"));
        assert_eq!(user_namespace(""), None);
    }
}
