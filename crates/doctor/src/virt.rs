//! Checks of the layers below this system: hypervisor, container, control group, burst credits.
//!
//! Each layer can take CPU time. The largest observable sign is steal time: time that the hypervisor gave to another guest while this one had work.

use machmeter_data::{Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Inputs, duration, named, three_digits};
use super::outcome::{Judged, Outcome};

const STEAL_WARN_PERCENT: f64 = 0.5;
const STEAL_FAIL_PERCENT: f64 = 5.0;
/// The steal counter advances in units of 10 ms. At least 4 units are needed to resolve 0.5 %.
const STEAL_UNITS_NS: f64 = 40_000_000.0;
/// Prefixes of instance types that run on CPU credits.
const BURSTABLE: [&str; 5] = ["t1.", "t2.", "t3.", "t3a.", "t4g."];

pub(super) const STEAL: CheckDef = CheckDef {
    code: code! { "E110" "steal",
        what: "The hypervisor gives this guest all the CPU time that it requests.",
        why: "Steal time appears as gaps that nothing inside the guest explains or prevents.",
        how: "Growth of the steal counter of /proc/stat between two captures, relative to CPU time. With one capture, or two too close for a counter of \
              10 ms steps: the share since boot. A counter that never moved is unknown, because the hypervisor may not report steal.",
        next: "Use a dedicated instance or pinned vCPUs. Else measure longer and compare medians over blocks.",
    },
    hazards: &[Hazard::Preemption, Hazard::SharedCore],
    needs: &["virt.hypervisor", "virt.steal", "cpu.count", "time.uptime"],
    judge: steal,
    ..CheckDef::OF_NOTHING
};

fn steal(inputs: &Inputs) -> Judged {
    if inputs.text("virt.hypervisor")? == "none" {
        return Ok(Outcome::not_applicable("no hypervisor below this system"));
    }
    let total_ns = inputs.amount("virt.steal")?;
    let uptime_ns = inputs.amount("time.uptime")?;
    let cpus = inputs.amount("cpu.count")?.max(1.0);
    let seen = |gained_ns: f64, span_ns: f64| {
        gained_ns >= STEAL_UNITS_NS || span_ns * cpus * STEAL_WARN_PERCENT / 100.0 >= STEAL_UNITS_NS
    };
    let (stolen_ns, span_ns, when) = match (inputs.gained("virt.steal")?, inputs.span_ns()?) {
        (Some(gained_ns), Some(span_ns)) if seen(gained_ns, span_ns) => {
            (gained_ns, span_ns, format!("during {}", duration(span_ns)))
        }
        (Some(_), Some(span_ns)) => {
            let short = format!("{} between the captures is too short", duration(span_ns));
            (total_ns, uptime_ns, format!("since boot ({short})"))
        }
        _ => (total_ns, uptime_ns, "since boot".to_owned()),
    };
    if total_ns + stolen_ns == 0.0 {
        return Ok(Outcome::unknown("the steal counter never moved: the hypervisor may not report steal")
            .next("machmeter noise shows gaps caused outside the kernel"));
    }
    if span_ns <= 0.0 {
        return Ok(Outcome::unknown("no time has passed since boot"));
    }
    let percent = 100.0 * stolen_ns / (span_ns * cpus);
    Ok(Outcome::graded(
        percent,
        STEAL_WARN_PERCENT,
        STEAL_FAIL_PERCENT,
        format!("{} % of CPU time {when}", three_digits(percent)),
    )
    .limit(format!("{STEAL_WARN_PERCENT} %"))
    .next(
        "use a dedicated instance, or pin the vCPUs on the host; else measure longer (-t 5m) and use medians",
    ))
}

pub(super) const HYPERVISOR: CheckDef = CheckDef {
    code: code! { "E111" "virtual machine",
        what: "The system runs directly on the hardware.",
        why: "A hypervisor can stop the guest at any moment. It hides frequency, caches and SMT siblings, and makes interrupts and some instructions slower.",
        how: "CPUID leaf 0x40000000, the hypervisor flag of /proc/cpuinfo, /sys/hypervisor and the vendor of the machine.",
        next: "Measure worst cases and hardware figures on bare metal. Compare figures of a guest only with guests of the same kind.",
    },
    hazards: &[Hazard::Preemption, Hazard::SharedCore, Hazard::MemoryPlacement],
    of_machine: true,
    needs: &["virt.hypervisor"],
    judge: hypervisor,
};

fn hypervisor(inputs: &Inputs) -> Judged {
    Ok(match inputs.text("virt.hypervisor")? {
        "none" => Outcome::pass("none: the system runs on the hardware"),
        name => Outcome::warn(format!("runs under {name}: worst-case latencies depend on the host")).next(
            "measure worst cases on bare metal; compare these figures only with guests of the same kind",
        ),
    }
    .limit("none"))
}

pub(super) const CONTAINER: CheckDef = CheckDef {
    code: code! { "E112" "container",
        what: "The system is not a container that shares its kernel with other containers.",
        why: "Processes of other containers use the same CPUs but are not visible from inside. Containers usually lack permission for tracing and real-time policies.",
        how: "The namespaces of this process against those of the host. Marker files and the control group of process 1 name the runtime.",
        next: "Measure on the host, or start the container with --privileged --pid=host.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["virt.container"],
    judge: container,
};

fn container(inputs: &Inputs) -> Judged {
    Ok(match inputs.text("virt.container")? {
        "none" => Outcome::pass("none"),
        name => Outcome::warn(format!("inside {name}: other processes of the host are not visible"))
            .next("measure on the host, or start the container with --privileged --pid=host"),
    }
    .limit("none"))
}

pub(super) const CGROUP: CheckDef = CheckDef {
    code: code! { "E113" "CPU quota and cpuset",
        what: "The control group lets the measuring threads use the measured CPUs all the time.",
        why: "Once a quota is used up, the kernel stops every thread of the group for the rest of the period (often 100 ms). The longest gaps then come from the quota.",
        how: "cpu.max or cpu.cfs_quota_us, and cpuset.cpus.effective, of the group and all groups above it.",
        next: "Raise or remove the quota (systemctl set-property UNIT CPUQuota=, docker --cpus), or measure fewer CPUs.",
        undo: "Set the former quota, which the text shows.",
    },
    hazards: &[Hazard::Preemption],
    needs: &["cgroup.cpu_quota", "cgroup.cpuset"],
    judge: cgroup,
    ..CheckDef::OF_NOTHING
};

fn cgroup(inputs: &Inputs) -> Judged {
    let cpus = inputs.limit("cgroup.cpu_quota")?;
    let cpuset = inputs.text("cgroup.cpuset")?;
    let outside = match cpuset {
        "unlimited" => CpuSet::default(),
        _ => inputs.for_cpus.difference(&inputs.cpus("cgroup.cpuset")?),
    };
    let (quota, measured) = (three_digits(cpus), inputs.measured());
    let outcome = if !outside.is_empty() {
        Outcome::fail(format!("{} not in this group's cpuset", named(&outside)))
            .next(format!("measure CPUs of the cpuset: --cpus {cpuset}"))
    } else if cpus.is_infinite() {
        Outcome::pass("no quota, all measured CPUs in the cpuset")
    } else if cpus >= inputs.for_cpus.len() as f64 {
        Outcome::pass(format!("a quota of {quota} CPUs, enough for {measured}"))
    } else {
        let period = inputs.amount("cgroup.cpu_quota_period").map(duration);
        let period = period.map_or_else(|_| String::new(), |period| format!(" in each {period}"));
        let percent = three_digits(cpus * 100.0);
        Outcome::fail(format!("a quota of {quota} CPUs{period} for {measured}"))
            .next("docker update --cpus 0 NAME, or systemctl set-property UNIT CPUQuota=; else measure fewer CPUs (--cpus)")
            .undo(format!("docker update --cpus {quota} NAME, or systemctl set-property UNIT CPUQuota={percent}%"))
    };
    let count = inputs.for_cpus.len();
    Ok(outcome.limit(format!("no quota below {count} CPUs, all measured CPUs in the cpuset")))
}

pub(super) const BURST: CheckDef = CheckDef {
    code: code! { "E114" "burst credits",
        what: "The instance runs at full speed all the time, not only while CPU credits last.",
        why: "A burstable instance is fast at first and several times slower later. The figures depend on the credits that were left.",
        how: "The instance type in the product name (Amazon). Other vendors do not write it there: the result is then unknown, unless there is no hypervisor.",
        next: "Use an instance type without credits, or unlimited mode, and measure after some idle minutes.",
        undo: "Set the credit specification of the instance back to standard.",
    },
    hazards: &[Hazard::Frequency, Hazard::Preemption],
    needs: &["virt.hypervisor", "virt.product"],
    judge: burst,
    ..CheckDef::OF_NOTHING
};

fn burst(inputs: &Inputs) -> Judged {
    if inputs.text("virt.hypervisor")? == "none" {
        return Ok(Outcome::not_applicable("no hypervisor below this system"));
    }
    let product = inputs.text("virt.product")?;
    Ok(match product.strip_prefix("Amazon EC2 ") {
        Some(kind) if BURSTABLE.iter().any(|prefix| kind.starts_with(prefix)) => {
            Outcome::warn(format!("{kind} runs on CPU credits; its speed depends on the remaining credits"))
                .next("use a c, m or r type, or: aws ec2 modify-instance-credit-specification --instance-credit-specification InstanceId=ID,CpuCredits=unlimited")
                .undo("the same command with CpuCredits=standard")
        }
        Some(kind) if kind.contains('.') => Outcome::pass(format!("{kind} has no CPU credits")),
        _ => Outcome::unknown(format!("`{product}` does not contain the instance type"))
            .next("look up the instance type in the provider's list of burstable types"),
    }
    .limit("an instance type without credits"))
}
