//! What does the kernel do on the side: huge pages, NUMA balancing, tracing, watchdogs, device interrupts?

use machmeter_data::{Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Inputs, Seen, look, texts_of, three_digits};
use super::outcome::{Judged, Outcome};
use super::rights::effective;

/// Device interrupts per second and measured CPU.
const INTERRUPTS_WARN_HZ: f64 = 10.0;
const INTERRUPTS_FAIL_HZ: f64 = 5000.0;

pub(super) const HUGE_PAGES: CheckDef = CheckDef {
    code: code! { "E304" "transparent huge pages",
        what: "Huge pages are given only to programs that ask for them.",
        why: "With `always` the kernel clears 2 MiB inside single page faults and gathers pages in the background: latencies of \
              some 100 us, and memory figures that depend on luck.",
        how: "The choice in /sys/kernel/mm/transparent_hugepage/enabled.",
        next: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        undo: "echo always > /sys/kernel/mm/transparent_hugepage/enabled",
    },
    hazards: &[Hazard::MemoryPlacement],
    needs: &["memory.thp"],
    judge: huge_pages,
    ..CheckDef::OF_NOTHING
};

/// A file missing below /sys says something about the kernel only where /sys is there: sandboxes leave it out.
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
        why: "To learn who uses a page the kernel unmaps it: page faults of some us in memory that was long in place, and pages \
              that move during a measurement.",
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
        what: "Nobody traces this kernel.",
        why: "A function tracer makes each kernel function several times costlier; trace events cost some 100 ns each.",
        how: "current_tracer and events/enable of the global buffer and of every instance in tracefs. Instances called \
              machmeter-PID are of runs of machmeter.",
        next: "echo nop > /sys/kernel/tracing/current_tracer; echo 0 > /sys/kernel/tracing/events/enable; find out who traces \
               before you stop it.",
        undo: "Write the former tracer back, which the text shows.",
    },
    hazards: &[Hazard::Preemption, Hazard::SharedCore],
    needs: &["kernel.tracers"],
    judge: tracers,
    ..CheckDef::OF_NOTHING
};

fn tracers(inputs: &Inputs) -> Judged {
    if let Seen::Nothing(why) = inputs.look("kernel.tracers")? {
        // Only one who may mount tracefs can tell that the kernel has none.
        return Ok(match effective(inputs, "limits.cap_sys_admin") {
            Ok(true) => Outcome::not_applicable(format!("this kernel cannot trace: {why}")),
            _ => Outcome::unknown(format!("tracefs is not seen: {why}")).next("run as root to see it"),
        });
    }
    let active = inputs.texts("kernel.tracers")?;
    let limit = "none";
    let Some(first) = active.first() else { return Ok(Outcome::pass("none").limit(limit)) };
    let only_events = active.iter().all(|a| a.ends_with(": events"));
    let outcome =
        if only_events { Outcome::warn(active.join(", ")) } else { Outcome::fail(active.join(", ")) };
    let (place, tracer) = first.split_once(": ").unwrap_or(("global", first));
    let mut directory = "/sys/kernel/tracing".to_owned();
    if place != "global" {
        directory.push_str(&format!("/instances/{place}"));
    }
    let (file, off, on) =
        if tracer == "events" { ("events/enable", "0", "1") } else { ("current_tracer", "nop", tracer) };
    let outcome = outcome.limit(limit);
    if place.starts_with("machmeter-") {
        return Ok(outcome.next(
            "wait for the end of that run; what one that was killed left goes when root starts any command of machmeter",
        ));
    }
    Ok(outcome
        .next(format!("echo {off} > {directory}/{file}"))
        .undo(format!("echo {on} > {directory}/{file}")))
}

pub(super) const WATCHDOG: CheckDef = CheckDef {
    code: code! { "E308" "watchdogs",
        what: "No watchdog interrupts the measured CPUs by non-maskable interrupts.",
        why: "The NMI watchdog takes a hardware counter of each CPU and interrupts it every few seconds even where interrupts are \
              off; the soft-lockup watchdog wakes a thread on each CPU every 4 s.",
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
            "soft-lockup watchdog on: a wake-up of some us each 4 s and CPU"
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
        why: "Each device interrupt and the softirq work behind it takes 1 to 100 us from whoever runs there.",
        how: "Targets of every interrupt in /proc/irq, and, with two captures, the rate on the measured CPUs in /proc/interrupts.",
        next: "echo LIST > /proc/irq/N/smp_affinity_list with CPUs that are not measured; stop irqbalance first.",
        undo: "Write the former list back, which the text shows, and start irqbalance.",
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
    let mut sum = 0.0;
    for line in texts_of(fact).unwrap_or_default() {
        let entry = line.strip_prefix("CPU ").and_then(|l| l.split_once(": "));
        let parsed = entry.and_then(|(cpu, n)| Some((cpu.parse::<usize>().ok()?, n.parse::<u64>().ok()?)));
        let Some((cpu, n)) = parsed else {
            return Err(Outcome::unknown(format!("irq.counts holds `{line}`")));
        };
        if cpus.contains(cpu) {
            sum += n as f64;
        }
    }
    Ok(sum)
}

/// Device interrupts per second and measured CPU between the two captures; `None` if that cannot be told.
fn rate_hz(inputs: &Inputs) -> Option<f64> {
    let gained = taken(inputs.later?, inputs.for_cpus).ok()? - taken(inputs.facts, inputs.for_cpus).ok()?;
    let cpu_seconds = inputs.span_ns().ok()?? * 1e-9 * inputs.for_cpus.len().max(1) as f64;
    let hz = gained / cpu_seconds;
    // A time in which ten interrupts would still be within the limit says that there are few of them; less time does not.
    let long_enough = cpu_seconds * INTERRUPTS_WARN_HZ >= 10.0 || hz > INTERRUPTS_WARN_HZ;
    (gained >= 0.0 && long_enough).then_some(hz)
}

fn interrupts(inputs: &Inputs) -> Judged {
    let mut here: Vec<&str> = Vec::new();
    for line in inputs.texts("irq.targets")? {
        let cpus = line.rsplit_once(": CPU ").and_then(|(_, list)| list.parse::<CpuSet>().ok());
        let Some(cpus) = cpus else {
            return Ok(Outcome::unknown(format!("irq.targets holds `{line}`")));
        };
        if !cpus.intersection(inputs.for_cpus).is_empty() {
            here.push(line);
        }
    }
    let limit = format!("none routed there, or at most {INTERRUPTS_WARN_HZ} a second and CPU");
    let measured = inputs.measured();
    if here.is_empty() {
        return Ok(Outcome::pass(format!("none routed to {measured}")).limit(limit));
    }
    let elsewhere =
        inputs.cpus("cpu.online").map(|online| online.difference(inputs.for_cpus)).unwrap_or_default();
    let some = here.iter().take(3).copied().collect::<Vec<_>>().join("; ");
    let first = here[0].split(' ').next().unwrap_or("N");
    let former = here[0].rsplit_once(": CPU ").map_or("", |(_, list)| list);
    let advise = |o: Outcome| {
        if elsewhere.is_empty() {
            o.next("measure fewer CPUs (--cpus), so that interrupts can go elsewhere")
        } else {
            o.next(format!("systemctl stop irqbalance; echo {elsewhere} > /proc/irq/{first}/smp_affinity_list (and so on)"))
                .undo(format!("echo {former} > /proc/irq/{first}/smp_affinity_list; systemctl start irqbalance"))
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
            Outcome::unknown(format!("{count} routed to {measured}, but how often they fire was not seen"))
        }
        None => Outcome::warn(format!("{count} routed to {measured}: {some}")),
    };
    Ok(advise(outcome).limit(limit))
}
