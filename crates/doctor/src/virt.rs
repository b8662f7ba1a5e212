//! What stands between us and the hardware?

use machmeter_data::{Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Inputs, duration, named, three_digits};
use super::outcome::{Judged, Outcome};

const STEAL_WARN_PERCENT: f64 = 0.5;
const STEAL_FAIL_PERCENT: f64 = 5.0;
/// The steal counter advances in units of 10 ms: it needs some of them to say anything about half a percent.
const STEAL_UNITS_NS: f64 = 40_000_000.0;
/// How the names of instance types begin that run on credits.
const BURSTABLE: [&str; 5] = ["t1.", "t2.", "t3.", "t3a.", "t4g."];

pub(super) const STEAL: CheckDef = CheckDef {
    code: code! { "E110" "steal",
        what: "The hypervisor gives this guest the CPU time it wants.",
        why: "Stolen time appears as gaps that nothing inside the guest explains or can prevent.",
        how: "Growth of the steal counter of /proc/stat between two captures against CPU time; with one capture, or two too \
              close together for a counter of 10 ms, the share since boot. A guest whose counter has never moved may have a hypervisor that does not report steal: that is unknown.",
        next: "Use a dedicated instance or pinned vCPUs; else measure longer and compare medians over blocks.",
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
            let short = format!("{} between the captures is too short to tell", duration(span_ns));
            (total_ns, uptime_ns, format!("since boot ({short})"))
        }
        _ => (total_ns, uptime_ns, "since boot".to_owned()),
    };
    if total_ns + stolen_ns == 0.0 {
        return Ok(Outcome::unknown("the steal counter has never moved: the hypervisor may not report it")
            .next("machmeter noise shows gaps whose source is outside the kernel"));
    }
    if span_ns <= 0.0 {
        return Ok(Outcome::unknown("no time has passed since boot"));
    }
    let percent = 100.0 * stolen_ns / (span_ns * cpus);
    Ok(Outcome::graded(percent, STEAL_WARN_PERCENT, STEAL_FAIL_PERCENT, format!("{} % of CPU time {when}", three_digits(percent)))
        .limit(format!("{STEAL_WARN_PERCENT} %"))
        .next("use a dedicated instance, or pin the vCPUs on the host; else measure longer (-t 5m) and read medians"))
}

pub(super) const HYPERVISOR: CheckDef = CheckDef {
    code: code! { "E111" "virtual machine",
        what: "The system runs on the hardware itself.",
        why: "A hypervisor can stop the guest at any moment, hides frequency, caches and siblings, and makes some instructions \
              and all interrupts costlier.",
        how: "CPUID leaf 0x40000000, the hypervisor flag of /proc/cpuinfo, /sys/hypervisor and the maker of the machine.",
        next: "Take worst cases and hardware figures on bare metal; in a guest compare only with the same kind of guest.",
    },
    hazards: &[Hazard::Preemption, Hazard::SharedCore, Hazard::MemoryPlacement],
    of_machine: true,
    needs: &["virt.hypervisor"],
    judge: hypervisor,
};

fn hypervisor(inputs: &Inputs) -> Judged {
    Ok(match inputs.text("virt.hypervisor")? {
        "none" => Outcome::pass("none: the system runs on the hardware"),
        name => Outcome::warn(format!("runs under {name}: worst-case latencies depend on the host"))
            .next("take worst cases on bare metal; compare these figures only with guests of the same kind"),
    }
    .limit("none"))
}

pub(super) const CONTAINER: CheckDef = CheckDef {
    code: code! { "E112" "container",
        what: "The system is not a container that shares its kernel with others.",
        why: "Other containers' processes use the same CPUs but cannot be seen from inside, and rights to tracing and real-time \
              policies are usually taken away.",
        how: "The namespaces of this process, compared with those of the host; the name of the runtime by its marker files and the control group of \
              process 1.",
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
        name => Outcome::warn(format!("inside {name}: other processes of the host cannot be seen"))
            .next("measure on the host, or start the container with --privileged --pid=host"),
    }
    .limit("none"))
}

pub(super) const CGROUP: CheckDef = CheckDef {
    code: code! { "E113" "CPU quota and cpuset",
        what: "The control group lets the measuring threads use the measured CPUs all the time.",
        why: "A quota stops every thread of the group for the rest of the period (often 100 ms) once it is used up: the longest \
              gaps of such a machine are its own quota.",
        how: "cpu.max or cpu.cfs_quota_us and cpuset.cpus.effective of the group and all groups above it.",
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
        what: "The instance gives its full speed all the time, not only while credits last.",
        why: "A burstable instance is fast at first and several times slower later; a measurement says what credits were left.",
        how: "The instance type in the product name where the maker writes it there (Amazon). Other makers do not tell, and then \
              this is unknown unless there is no hypervisor.",
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
        return Ok(Outcome::not_applicable("no hypervisor: the machine is whole"));
    }
    let product = inputs.text("virt.product")?;
    Ok(match product.strip_prefix("Amazon EC2 ") {
        Some(kind) if BURSTABLE.iter().any(|prefix| kind.starts_with(prefix)) => {
            Outcome::warn(format!("{kind} runs on CPU credits; its speed depends on how many are left"))
                .next("use a c, m or r type, or: aws ec2 modify-instance-credit-specification --instance-credit-specification InstanceId=ID,CpuCredits=unlimited")
                .undo("the same command with CpuCredits=standard")
        }
        Some(kind) if kind.contains('.') => Outcome::pass(format!("{kind} has no CPU credits")),
        _ => Outcome::unknown(format!("`{product}` does not tell the instance type"))
            .next("look up the instance type in the provider's list of burstable types"),
    }
    .limit("an instance type without credits"))
}
