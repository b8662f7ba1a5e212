//! Checks of the kernel's CPU sharing: preemption model, isolation, mitigations, limits on real-time threads.
//!
//! They read boot parameters, sysfs and debugfs; none of them measures anything.

use machmeter_data::{FactValue, Hazard, code};
use machmeter_sys::sched::{FAIR_SERVER_SINCE, FairServer, GroupBudget, KernelVersion, RtLimits};
use machmeter_sys::topology::CpuSet;

use super::inputs::{Inputs, Seen, named};
use super::outcome::{Judged, Outcome};
use super::{CheckDef, rights};

pub(super) const PREEMPTION: CheckDef = CheckDef {
    code: code! { "E301" "preemption model",
        what: "The kernel can be preempted by a thread that must run now.",
        why: "Without kernel preemption a waking thread waits for the end of another thread's system call, up to some ms.",
        how: "The active model in debugfs; else the preempt= boot parameter; else the kernel's version text.",
        next: "Boot with preempt=full (dynamic kernels, 5.12 and later), or use a PREEMPT_RT kernel for worst cases.",
        undo: "Remove preempt= from the boot command line.",
    },
    hazards: &[Hazard::Preemption],
    needs: &["kernel.preempt"],
    judge: preemption,
    ..CheckDef::OF_NOTHING
};

fn preemption(inputs: &Inputs) -> Judged {
    const NEXT: &str = "boot with preempt=full, or use a PREEMPT_RT kernel for worst cases";
    Ok(match inputs.text("kernel.preempt")? {
        model @ ("full" | "lazy" | "rt") => Outcome::pass(model),
        model @ ("voluntary" | "none" | "none or voluntary") => {
            Outcome::warn(model).next(NEXT).undo("remove preempt= from the boot command line")
        }
        "dynamic" => Outcome::unknown("dynamic (selected at boot or later), and only debugfs shows it")
            .next("sudo cat /sys/kernel/debug/sched/preempt shows it, or run as root"),
        other => Outcome::unknown(format!("not understood: `{other}`")),
    }
    .limit("full, lazy or rt"))
}

pub(super) const ISOLATION: CheckDef = CheckDef {
    code: code! { "E302" "isolated CPUs",
        what: "If CPUs are isolated, the measured CPUs are among them and fully isolated: from scheduler, tick and RCU.",
        why: "A partly isolated CPU still gets the tick, RCU callbacks or other threads. It costs a CPU and gains little.",
        how: "The isolated and nohz_full lists in sysfs, and rcu_nocbs on the boot command line. Without isolated CPUs the check does not apply (n/a).",
        next: "Boot with isolcpus=managed_irq,domain,LIST nohz_full=LIST rcu_nocbs=LIST, and measure --cpus isolated.",
        undo: "Remove the three parameters from the boot command line.",
    },
    hazards: &[Hazard::Preemption],
    needs: &["kernel.isolated", "kernel.nohz_full", "kernel.boot.rcu_nocbs"],
    judge: isolation,
    ..CheckDef::OF_NOTHING
};

fn isolation(inputs: &Inputs) -> Judged {
    const UNDO: &str = "remove isolcpus=, nohz_full= and rcu_nocbs= from the boot command line";
    let optional = |path: &str| match inputs.look(path)? {
        Seen::Nothing(_) => Ok(CpuSet::default()),
        Seen::Value(fact) if fact.text() == Some("all") => Ok(inputs.for_cpus.clone()),
        Seen::Value(_) => inputs.cpus(path),
    };
    let isolated = inputs.cpus("kernel.isolated")?;
    let no_tick = optional("kernel.nohz_full")?;
    let no_rcu = optional("kernel.boot.rcu_nocbs")?;
    let measured = inputs.for_cpus;
    let boot =
        format!("boot with isolcpus=managed_irq,domain,{measured} nohz_full={measured} rcu_nocbs={measured}");
    if isolated.is_empty() && no_tick.is_empty() && no_rcu.is_empty() {
        return Ok(Outcome::not_applicable(
            "no CPU is isolated: the tick and other threads may run on the measured CPUs",
        )
        .next(format!("for worst cases {boot} (leave at least one CPU to other programs)"))
        .undo(UNDO));
    }
    let limit = "measured CPUs isolated, without tick, without RCU callbacks";
    if !isolated.is_empty() && isolated.intersection(measured).is_empty() {
        return Ok(Outcome::warn(format!("isolated are {}, measured are {measured}", named(&isolated)))
            .limit(limit)
            .next(format!("measure the isolated ones: --cpus {isolated}")));
    }
    // The kernel itself offloads the RCU callbacks of `nohz_full` CPUs.
    let no_rcu = no_rcu.union(&no_tick);
    let gaps: Vec<String> =
        [("not isolated", &isolated), ("with tick", &no_tick), ("with RCU callbacks", &no_rcu)]
            .into_iter()
            .map(|(name, set)| (name, measured.difference(set)))
            .filter(|(_, missing)| !missing.is_empty())
            .map(|(name, missing)| format!("{} {name}", named(&missing)))
            .collect();
    Ok(if gaps.is_empty() {
        Outcome::pass(format!("{}: isolated, no tick, no RCU callbacks", inputs.measured()))
    } else {
        Outcome::warn(gaps.join(", ")).next(boot).undo(UNDO)
    }
    .limit(limit))
}

pub(super) const MITIGATIONS: CheckDef = CheckDef {
    code: code! { "E303" "mitigations",
        what: "The kernel's mitigations of processor flaws are known, and none is switched off by hand.",
        why: "Some mitigations add a cost to every kernel entry. Without them, system calls, interrupts and switches are up to several times cheaper, \
              and figures do not apply to protected machines.",
        how: "/sys/devices/system/cpu/vulnerabilities and the boot command line.",
        next: "Compare only machines with the same mitigations. Remove mitigations=off to get the kernel's default.",
        undo: "Put mitigations=off back.",
    },
    of_machine: true,
    needs: &["kernel.cmdline"],
    judge: mitigations,
    ..CheckDef::OF_NOTHING
};

/// Boot parameters that disable a mitigation.
const SWITCHED_OFF: &str = "mitigations=off nopti pti=off nospectre_v1 nospectre_v2 spectre_v2=off mds=off tsx_async_abort=off \
                            l1tf=off retbleed=off spec_store_bypass_disable=off nospec_store_bypass_disable srbds=off kpti=off";
/// Words in the kernel's description of mitigations that add a cost to every kernel entry or exit.
const COSTLY: [&str; 5] =
    ["PTI", "Clear CPU buffers", "Mitigation: IBRS", "untrained return thunk", "Safe RET"];

fn mitigations(inputs: &Inputs) -> Judged {
    const READ_FROM: &str = "/sys/devices/system/cpu/vulnerabilities, /proc/cmdline";
    let words = inputs.text("kernel.cmdline")?.split_whitespace();
    let off: Vec<&str> = words.filter(|word| SWITCHED_OFF.split(' ').any(|off| off == *word)).collect();
    let mut seen = Vec::new();
    for path in inputs.facts.0.keys().filter(|path| path.starts_with("mitigations.")) {
        seen.push(inputs.text(path)?);
    }
    if seen.is_empty() {
        return Err(Outcome::unknown("this kernel does not list processor flaws").source(READ_FROM));
    }
    let count = |holds: &dyn Fn(&str) -> bool| seen.iter().filter(|text| holds(text)).count();
    let observed = format!(
        "{} active ({} at every kernel entry), {} vulnerable, {} not affected",
        count(&|t| t.starts_with("Mitigation")),
        count(&|t| COSTLY.iter().any(|c| t.contains(c))),
        count(&|t| t.starts_with("Vulnerable")),
        count(&|t| t.starts_with("Not affected")),
    );
    let words = off.join(" ");
    Ok(if off.is_empty() {
        Outcome::pass(observed)
    } else {
        Outcome::warn(format!("{words}: {observed}"))
            .next(format!(
                "remove {words} from the boot command line, or compare only with machines that have it"
            ))
            .undo(format!("add {words}"))
    }
    .limit("none switched off at boot")
    .source(READ_FROM))
}

pub(super) const REAL_TIME_SHARE: CheckDef = CheckDef {
    code: code! { "E306" "real-time throttling",
        what: "The kernel takes no time from real-time threads on purpose.",
        why: "The fair server (Linux 6.12 and later) or real-time throttling (before) stops a busy real-time thread for about 50 ms of each second if \
              other threads wait. These gaps are not noise of the machine.",
        how: "sched_rt_runtime_us, sched_rt_period_us and the fair server's settings in debugfs, or the default if debugfs is not readable. Without \
              permission for a real-time policy the check does not apply (n/a).",
        next: "Keep other threads off the measured CPUs. Else write 0 to /sys/kernel/debug/sched/fair_server/cpuN/runtime (6.12 and later) or -1 to \
               /proc/sys/kernel/sched_rt_runtime_us.",
        undo: "Write 50000000 to runtime, or 950000 to sched_rt_runtime_us.",
    },
    hazards: &[Hazard::Preemption],
    needs: &[
        "kernel.release",
        "kernel.rt_runtime",
        "kernel.rt_period",
        "limits.rtprio",
        "limits.cap_sys_nice",
        "limits.user_namespace",
    ],
    // Every kernel of this kind does this. Unless a run requests otherwise, it measures under the ordinary policy, so no figure is flagged.
    of_machine: true,
    judge: real_time_share,
};

/// Settings of the fair server: the largest runtime and the shortest period of all CPUs, so the largest share that any CPU can have.
fn fair_server(inputs: &Inputs, kernel: KernelVersion) -> FairServer {
    let number = |value: &FactValue| value.number().filter(|n| *n >= 0.0).map(|n| n as u64);
    let numbers = |path: &str| match inputs.facts.get(path)?.value.as_ref()? {
        FactValue::List(items) => items.iter().map(number).collect::<Option<Vec<u64>>>(),
        one => number(one).map(|n| vec![n]),
    };
    let largest = numbers("kernel.fair_server_runtime").and_then(|all| all.into_iter().max());
    let shortest =
        numbers("kernel.fair_server_period").and_then(|all| all.into_iter().filter(|p| *p > 0).min());
    let Some((runtime_ns, period_ns)) = largest.zip(shortest) else {
        let why = inputs.facts.get("kernel.fair_server_runtime").and_then(|f| f.why.clone());
        let why = why.unwrap_or_else(|| "its settings were not captured".to_owned());
        return FairServer::without_debugfs(Some(kernel), why);
    };
    FairServer::Known { per_cpu_ns: inputs.for_cpus.iter().map(|cpu| (cpu, runtime_ns, period_ns)).collect() }
}

fn real_time_share(inputs: &Inputs) -> Judged {
    let release = inputs.text("kernel.release")?;
    let Some(kernel) = KernelVersion::parse(release) else {
        return Ok(Outcome::unknown(format!("kernel release `{release}` has no version number")));
    };
    let runtime_ns = inputs.limit("kernel.rt_runtime")?;
    let throttle_runtime_us = runtime_ns.is_finite().then_some((runtime_ns / 1e3) as u64);
    let period_ns = Some(inputs.limit("kernel.rt_period")?).filter(|ns| ns.is_finite());
    if !rights::may_use_real_time(inputs)? {
        return Ok(Outcome::not_applicable("this process may not use a real-time policy (E501)"));
    }
    if kernel < FAIR_SERVER_SINCE {
        // Such a kernel has a fair server only as a backport. Then the fact from debugfs is required.
        inputs.look("kernel.fair_server_runtime")?;
    }
    let limits = RtLimits {
        throttle_runtime_us,
        throttle_period_us: period_ns.map_or(0, |ns| (ns / 1e3) as u64),
        fair_server: fair_server(inputs, kernel),
        group_budget: GroupBudget::NotConfigured,
        kernel: Some(kernel),
    };
    let cpu = inputs.for_cpus.first().unwrap_or(0);
    let limit = "no time taken";
    let Some((_, mechanism)) = limits.loss_ns_per_s(cpu) else {
        let text = format!("the kernel takes no time from real-time threads on {}", inputs.measured());
        return Ok(Outcome::pass(text).limit(limit));
    };
    let outcome = Outcome::warn(limits.explain(cpu)).limit(limit);
    Ok(if mechanism == "fair server" {
        let file = format!("/sys/kernel/debug/sched/fair_server/cpu{cpu}/runtime");
        outcome
            .next(format!("keep other threads off the CPU, or echo 0 > {file}"))
            .undo(format!("echo 50000000 > {file}"))
    } else {
        outcome
            .next("sysctl kernel.sched_rt_runtime_us=-1")
            .undo(format!("sysctl kernel.sched_rt_runtime_us={}", throttle_runtime_us.unwrap_or(950_000)))
    })
}
