//! Checks of the kernel's background work: huge pages, NUMA balancing, tracing, watchdogs, device interrupts.
//!
//! This work runs between the steps of a measurement: it moves pages, or interrupts the CPU. Its settings are read from sysfs, procfs and tracefs.

use std::fmt;

use machmeter_data::{FactValue, Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Entries, Inputs, Seen, look, texts_of, three_digits};
use super::outcome::{Judged, Outcome};
use super::rights::effective;

/// Device interrupts per second and measured CPU.
const INTERRUPTS_WARN_HZ: f64 = 10.0;
const INTERRUPTS_FAIL_HZ: f64 = 5000.0;

pub(super) const HUGE_PAGES: CheckDef = CheckDef {
    code: code! { "E304" "transparent huge pages",
        what: "Only programs that request huge pages get them.",
        why: "With `always` the kernel clears 2 MiB inside a single page fault and collects pages in the background. This costs latencies of some 100 \
              us and makes memory figures vary from run to run.",
        how: "The selected value in /sys/kernel/mm/transparent_hugepage/enabled.",
        next: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        undo: "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
    },
    hazards: &[Hazard::MemoryPlacement],
    needs: &["memory.thp"],
    judge: huge_pages,
    ..CheckDef::OF_NOTHING
};

/// Fails with the outcome `unknown` if `/sys` is not visible, as in some sandboxes. A file missing below `/sys` then says nothing about the kernel.
fn sysfs_is_seen(inputs: &Inputs) -> Result<(), Outcome> {
    inputs.text("cpu.online").map(|_| ()).map_err(|_| Outcome::unknown("/sys is not visible from here"))
}

fn huge_pages(inputs: &Inputs) -> Judged {
    if let Seen::Nothing(why) = inputs.look("memory.thp")? {
        sysfs_is_seen(inputs)?;
        return Ok(Outcome::not_applicable(format!("this kernel has none: {why}")));
    }
    Ok(match inputs.text("memory.thp")? {
        choice @ ("madvise" | "never") => Outcome::pass(choice),
        "always" => Outcome::warn("always")
            .next("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled")
            .undo("echo always > /sys/kernel/mm/transparent_hugepage/enabled"),
        other => Outcome::unknown(format!("not understood: `{other}`")),
    }
    .limit("madvise or never"))
}

pub(super) const NUMA_BALANCING: CheckDef = CheckDef {
    code: code! { "E305" "NUMA balancing",
        what: "The kernel does not move pages between memory nodes by itself.",
        why: "To find the users of a page, the kernel unmaps it. This causes page faults of some us in memory that was mapped long before, and moves \
              pages during a measurement.",
        how: "kernel.numa_balancing, on machines with more than one memory node.",
        next: "sysctl kernel.numa_balancing=0",
        undo: "sysctl kernel.numa_balancing=1",
    },
    hazards: &[Hazard::MemoryPlacement],
    needs: &["kernel.numa_balancing", "memory.nodes"],
    judge: numa_balancing,
    ..CheckDef::OF_NOTHING
};

fn numa_balancing(inputs: &Inputs) -> Judged {
    let balancing = inputs.look("kernel.numa_balancing")?;
    if let Seen::Nothing(why) = inputs.look("memory.nodes")? {
        sysfs_is_seen(inputs)?;
        return Ok(Outcome::not_applicable(format!("no memory nodes: {why}")));
    }
    let nodes = inputs.texts("memory.nodes")?.len();
    if nodes < 2 {
        return Ok(Outcome::not_applicable("one memory node"));
    }
    if let Seen::Nothing(why) = balancing {
        return Ok(Outcome::not_applicable(format!("this kernel cannot balance: {why}")));
    }
    let level = inputs.amount("kernel.numa_balancing")?;
    Ok(if level == 0.0 {
        Outcome::pass(format!("off on {nodes} nodes"))
    } else {
        Outcome::warn(format!("on (mode {level}) over {nodes} nodes"))
            .next("sysctl kernel.numa_balancing=0")
            .undo(format!("sysctl kernel.numa_balancing={level}"))
    }
    .limit("off"))
}

pub(super) const TRACERS: CheckDef = CheckDef {
    code: code! { "E307" "tracers",
        what: "No tracer is active in this kernel.",
        why: "A function tracer makes each kernel function several times slower. Each trace event costs some 100 ns.",
        how: "current_tracer and events/enable of the global buffer and of every instance in tracefs. Instances named machmeter-PID belong to runs of machmeter.",
        next: "Find the program that uses the tracer. Then: echo nop > /sys/kernel/tracing/current_tracer; echo 0 > /sys/kernel/tracing/events/enable",
        undo: "Write back the former tracer, which the text shows.",
    },
    hazards: &[Hazard::Preemption, Hazard::SharedCore],
    needs: &["kernel.tracers"],
    judge: tracers,
    ..CheckDef::OF_NOTHING
};

fn tracers(inputs: &Inputs) -> Judged {
    if let Seen::Nothing(why) = inputs.look("kernel.tracers")? {
        // Without the right to mount tracefs, a hidden tracefs and a kernel without tracefs look the same.
        return Ok(match effective(inputs, "limits.cap_sys_admin") {
            Ok(true) => Outcome::not_applicable(format!("this kernel cannot trace: {why}")),
            _ => Outcome::unknown(format!("tracefs is not visible: {why}")).next("run as root to see it"),
        });
    }
    // Pairs of a tracefs instance and its tracer; `events` stands for enabled trace events.
    let mut active: Vec<(&str, &str)> = Vec::new();
    for (instance, tracers) in inputs.entries("kernel.tracers")? {
        let Some(tracers) = texts_of(tracers) else {
            return Ok(Outcome::unknown(format!("kernel.tracers has no list of texts at `{instance}`")));
        };
        active.extend(tracers.into_iter().map(|tracer| (instance.as_str(), tracer)));
    }
    // The advice names the first pair; the top of tracefs comes first.
    active.sort_by_key(|(instance, _)| *instance != "global");
    let limit = "none";
    let Some(&(place, tracer)) = active.first() else { return Ok(Outcome::pass("none").limit(limit)) };
    let only_events = active.iter().all(|(_, tracer)| *tracer == "events");
    let texts: Vec<String> = active.iter().map(|(place, tracer)| format!("{place}: {tracer}")).collect();
    let outcome = if only_events { Outcome::warn(texts.join(", ")) } else { Outcome::fail(texts.join(", ")) };
    let mut directory = "/sys/kernel/tracing".to_owned();
    if place != "global" {
        directory.push_str(&format!("/instances/{place}"));
    }
    let (file, off, on) =
        if tracer == "events" { ("events/enable", "0", "1") } else { ("current_tracer", "nop", tracer) };
    let outcome = outcome.limit(limit);
    if place.starts_with("machmeter-") {
        return Ok(outcome.next(
            "wait until that run ends; after a crash, any machmeter command as root removes its trace instance",
        ));
    }
    Ok(outcome
        .next(format!("echo {off} > {directory}/{file}"))
        .undo(format!("echo {on} > {directory}/{file}")))
}

pub(super) const WATCHDOG: CheckDef = CheckDef {
    code: code! { "E308" "watchdogs",
        what: "No watchdog sends non-maskable interrupts to the measured CPUs.",
        why: "The NMI watchdog uses a hardware counter of each CPU and interrupts it every few seconds, even where interrupts are off. The soft-lockup \
              watchdog wakes a thread on each CPU every 4 s.",
        how: "kernel.nmi_watchdog and kernel.watchdog.",
        next: "sysctl kernel.nmi_watchdog=0 (and kernel.watchdog=0 for worst cases)",
        undo: "sysctl kernel.nmi_watchdog=1 kernel.watchdog=1",
    },
    hazards: &[Hazard::Preemption],
    needs: &["kernel.nmi_watchdog", "kernel.watchdog"],
    judge: watchdog,
    ..CheckDef::OF_NOTHING
};

fn watchdog(inputs: &Inputs) -> Judged {
    let soft = match inputs.look("kernel.watchdog")? {
        Seen::Value(_) if inputs.flag("kernel.watchdog")? => {
            "soft-lockup watchdog on: a wake-up of some us every 4 s on each CPU"
        }
        Seen::Value(_) => "soft-lockup watchdog off",
        Seen::Nothing(_) => "no soft-lockup watchdog",
    };
    if let Seen::Nothing(_) = inputs.look("kernel.nmi_watchdog")? {
        return Ok(Outcome::not_applicable(format!("this kernel has no NMI watchdog; {soft}")));
    }
    Ok(if inputs.flag("kernel.nmi_watchdog")? {
        Outcome::warn(format!("NMI watchdog on; {soft}"))
            .next("sysctl kernel.nmi_watchdog=0")
            .undo("sysctl kernel.nmi_watchdog=1")
    } else {
        Outcome::pass(format!("NMI watchdog off; {soft}"))
    }
    .limit("NMI watchdog off"))
}

pub(super) const INTERRUPTS: CheckDef = CheckDef {
    code: code! { "E309" "device interrupts",
        what: "Devices do not interrupt the measured CPUs.",
        why: "Each device interrupt, with its softirq work, takes 1 to 100 us from the running thread.",
        how: "The target CPUs of every interrupt in /proc/irq. With two captures, also the rate on the measured CPUs in /proc/interrupts.",
        next: "Stop irqbalance first. Then: echo LIST > /proc/irq/N/smp_affinity_list with CPUs that are not measured.",
        undo: "Write back the former list, which the text shows, and start irqbalance.",
    },
    hazards: &[Hazard::Preemption],
    needs: &["irq.targets"],
    judge: interrupts,
    ..CheckDef::OF_NOTHING
};

/// Device interrupts on `cpus` since boot.
fn taken(facts: &machmeter_data::Facts, cpus: &CpuSet) -> Result<f64, Outcome> {
    let Seen::Value(fact) = look(facts, "irq.counts")? else {
        return Err(Outcome::unknown("no counts of interrupts"));
    };
    let Some(counts) = fact.value.as_ref().and_then(FactValue::entries) else {
        return Err(Outcome::unknown("irq.counts is no map"));
    };
    let mut sum = 0.0;
    for (cpu, count) in counts {
        let count = count.number().filter(|n| n.is_finite() && *n >= 0.0);
        let Some((cpu, count)) = cpu.parse::<usize>().ok().zip(count) else {
            return Err(Outcome::unknown(format!("irq.counts has no count at `{cpu}`")));
        };
        if cpus.contains(cpu) {
            sum += count;
        }
    }
    Ok(sum)
}

/// Device interrupts per second and measured CPU between the two captures; `None` if the captures do not allow an estimate.
fn rate_hz(inputs: &Inputs) -> Option<f64> {
    let gained = taken(inputs.later?, inputs.for_cpus).ok()? - taken(inputs.facts, inputs.for_cpus).ok()?;
    let cpu_seconds = inputs.span_ns().ok()?? * 1e-9 * inputs.for_cpus.len().max(1) as f64;
    let hz = gained / cpu_seconds;
    // The interval is long enough if the limit allows at least ten interrupts in it. A rate above the limit is evidence in any interval.
    let long_enough = cpu_seconds * INTERRUPTS_WARN_HZ >= 10.0 || hz > INTERRUPTS_WARN_HZ;
    (gained >= 0.0 && long_enough).then_some(hz)
}

/// A device interrupt and the CPUs that it is routed to.
struct Target<'a> {
    irq: i64,
    name: &'a str,
    /// CPU list in the kernel's format.
    list: &'a str,
    cpus: CpuSet,
}

impl<'a> Target<'a> {
    fn read(entries: &'a Entries) -> Option<Self> {
        let FactValue::Int(irq) = *entries.get("irq")? else { return None };
        let list = entries.get("cpus")?.text()?;
        Some(Self { irq, name: entries.get("name")?.text()?, list, cpus: list.parse().ok()? })
    }
}

impl fmt::Display for Target<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: CPU {}", self.irq, self.name, self.list)
    }
}

fn interrupts(inputs: &Inputs) -> Judged {
    let mut here: Vec<Target> = Vec::new();
    for entries in inputs.maps("irq.targets")? {
        let Some(target) = Target::read(entries) else {
            let held = FactValue::Map(entries.clone()).human(None);
            return Ok(Outcome::unknown(format!("irq.targets holds `{held}`")));
        };
        if !target.cpus.intersection(inputs.for_cpus).is_empty() {
            here.push(target);
        }
    }
    let limit = format!("none routed there, or at most {INTERRUPTS_WARN_HZ} a second and CPU");
    let measured = inputs.measured();
    let Some(&Target { irq, list, .. }) = here.first() else {
        return Ok(Outcome::pass(format!("none routed to {measured}")).limit(limit));
    };
    let elsewhere =
        inputs.cpus("cpu.online").map(|online| online.difference(inputs.for_cpus)).unwrap_or_default();
    let some = here.iter().take(3).map(Target::to_string).collect::<Vec<_>>().join("; ");
    let advise = |o: Outcome| {
        if elsewhere.is_empty() {
            o.next("measure fewer CPUs (--cpus), so that interrupts can use the other CPUs")
        } else {
            o.next(format!(
                "systemctl stop irqbalance; echo {elsewhere} > /proc/irq/{irq}/smp_affinity_list (and so on)"
            ))
            .undo(format!("echo {list} > /proc/irq/{irq}/smp_affinity_list; systemctl start irqbalance"))
        }
    };
    let count = here.len();
    let outcome = match rate_hz(inputs) {
        Some(hz) => {
            let rate = three_digits(hz);
            let text = format!("{rate} a second and CPU on {measured}; {count} routed there: {some}");
            Outcome::graded(hz, INTERRUPTS_WARN_HZ, INTERRUPTS_FAIL_HZ, text)
        }
        None if elsewhere.is_empty() => {
            Outcome::unknown(format!("{count} routed to {measured}, but their rate is unknown"))
        }
        None => Outcome::warn(format!("{count} routed to {measured}: {some}")),
    };
    Ok(advise(outcome).limit(limit))
}
