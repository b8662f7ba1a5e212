//! Checks of the rights of this process: real-time policy, locked memory, perf events, trace events.
//!
//! Missing rights never stop a run. The checks name them, so that the user can grant them.

use machmeter_data::facts::FactState;
use machmeter_data::{FactValue, Hazard, code};

use super::CheckDef;
use super::inputs::{Inputs, Seen, size, three_digits};
use super::outcome::{Judged, Outcome};
use machmeter_engine::placement::AUTO_FIFO_PRIORITY;

/// Size of the buffers, stacks and lists of a noise run on a large machine.
const LOCKED_BYTES: f64 = 64.0 * 1024.0 * 1024.0;
/// Consequence of missing rights to perf events or trace events.
const NO_NAMES: &str = "no names of noise sources";

/// True if the process holds a capability in the initial user namespace. In another user namespace it does not apply to the machine.
pub(super) fn effective(inputs: &Inputs, capability: &str) -> Result<bool, Outcome> {
    let counts = inputs.text("limits.user_namespace")? == "initial";
    Ok(inputs.flag(capability)? && counts)
}

/// True if the process may use a real-time priority.
pub(super) fn may_use_real_time(inputs: &Inputs) -> Result<bool, Outcome> {
    let capability = effective(inputs, "limits.cap_sys_nice")?;
    Ok(inputs.limit("limits.rtprio")? >= 1.0 || capability)
}

pub(super) const REAL_TIME: CheckDef = CheckDef {
    code: code! { "E501" "real-time priority",
        what: "This process may use a real-time policy.",
        why: "Under the ordinary policy every other thread can delay the measuring thread. Worst cases are then those of the load.",
        how: "RLIMIT_RTPRIO, CAP_SYS_NICE in the initial user namespace, and the real-time budget of the control group.",
        next: "Run as root; or put `USER - rtprio 98` into /etc/security/limits.d/95-rtprio.conf and log in again; or setcap cap_sys_nice=ep on the program.",
        undo: "Remove the file, or setcap -r.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["limits.rtprio", "limits.cap_sys_nice", "limits.user_namespace", "limits.rt_group"],
    judge: real_time,
};

fn real_time(inputs: &Inputs) -> Judged {
    const TRY: &str = "try machmeter noise --prio fifo:45";
    const NONE: &str = "no real-time policy";
    let group = inputs.entries("limits.rt_group")?;
    let is_refused = group.get("refuses").and_then(FactValue::flag);
    let why = group.get("why").and_then(FactValue::text);
    let capability = effective(inputs, "limits.cap_sys_nice")?;
    let highest = inputs.limit("limits.rtprio")?;
    let outcome = if is_refused == Some(true) {
        let why = why.unwrap_or("it has no real-time budget");
        Outcome::warn(format!("{NONE} (refused by the control group: {why})"))
            .brief(NONE)
            .next(
                "echo $$ > /sys/fs/cgroup/cpu/tasks moves the shell into the root group, which has a budget",
            )
            .undo("write the shell's number into the tasks file of its former group")
    } else if !capability && highest < f64::from(AUTO_FIFO_PRIORITY) {
        Outcome::warn(format!("{NONE} (highest priority {}, no CAP_SYS_NICE)", three_digits(highest)))
            .brief(NONE)
            .next("run as root, or echo 'USER - rtprio 98' > /etc/security/limits.d/95-rtprio.conf and log in again")
            .undo("rm /etc/security/limits.d/95-rtprio.conf")
    } else if is_refused.is_none() {
        let why = why.unwrap_or("the real-time budget of the control group is unknown");
        Outcome::unknown(format!("permitted, but {why}")).next(TRY)
    } else if capability {
        Outcome::pass("allowed by CAP_SYS_NICE")
    } else {
        Outcome::pass(format!("allowed up to {}", three_digits(highest)))
    };
    Ok(outcome.limit(format!("priority {AUTO_FIFO_PRIORITY}")))
}

pub(super) const LOCKED_MEMORY: CheckDef = CheckDef {
    code: code! { "E502" "locked memory",
        what: "This process may lock the memory of its measuring loops.",
        why: "The kernel can swap out or move memory that is not locked. The measuring thread then takes page faults that look like noise.",
        how: "RLIMIT_MEMLOCK and CAP_IPC_LOCK in the initial user namespace.",
        next: "ulimit -l unlimited as root, or put `USER - memlock unlimited` into /etc/security/limits.d/95-memlock.conf and log in again.",
        undo: "Remove the file.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["limits.memlock", "limits.cap_ipc_lock", "limits.user_namespace"],
    judge: locked_memory,
};

fn locked_memory(inputs: &Inputs) -> Judged {
    let capability = effective(inputs, "limits.cap_ipc_lock")?;
    let most = inputs.limit("limits.memlock")?;
    let text = if capability {
        "unlimited by CAP_IPC_LOCK".to_owned()
    } else if most.is_infinite() {
        "unlimited".to_owned()
    } else {
        size(most)
    };
    let outcome = if capability || most >= LOCKED_BYTES {
        Outcome::pass(text)
    } else {
        Outcome::warn(format!("{text} lockable"))
    };
    Ok(outcome
        .limit(size(LOCKED_BYTES))
        .next("echo 'USER - memlock unlimited' > /etc/security/limits.d/95-memlock.conf and log in again")
        .undo("rm /etc/security/limits.d/95-memlock.conf"))
}

pub(super) const PERF: CheckDef = CheckDef {
    code: code! { "E503" "perf events",
        what: "This process may read the kernel's context-switch records.",
        why: "Without these records and without tracefs (E504), gaps are counted, but their causes have no names.",
        how: "kernel.perf_event_paranoid against CAP_PERFMON and CAP_SYS_ADMIN in the initial user namespace.",
        next: "Run as root, or sysctl kernel.perf_event_paranoid=1.",
        undo: "sysctl kernel.perf_event_paranoid= with the former number, which the text shows.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &[
        "limits.perf_event_paranoid",
        "limits.cap_perfmon",
        "limits.cap_sys_admin",
        "limits.user_namespace",
    ],
    judge: perf,
};

fn perf(inputs: &Inputs) -> Judged {
    if let Seen::Nothing(why) = inputs.look("limits.perf_event_paranoid")? {
        return Ok(Outcome::not_applicable(format!("this kernel has no perf events: {why}")));
    }
    let fact = inputs.facts.number("limits.perf_event_paranoid").filter(|n| (-1.0..=4.0).contains(n));
    let Some(level) = fact else {
        return Ok(Outcome::unknown("perf_event_paranoid is not a level from -1 to 4"));
    };
    let perfmon = effective(inputs, "limits.cap_perfmon")?;
    let capability = effective(inputs, "limits.cap_sys_admin")? || perfmon;
    let outcome = if capability || level <= 1.0 {
        Outcome::pass(format!(
            "perf_event_paranoid {level}{}",
            if capability { ", overridden by a capability" } else { "" }
        ))
    } else {
        Outcome::warn(format!("{NO_NAMES} (perf_event_paranoid {level} without CAP_PERFMON)")).brief(NO_NAMES)
    };
    Ok(outcome
        .limit("1, or CAP_PERFMON")
        .next("run as root, or sysctl kernel.perf_event_paranoid=1")
        .undo(format!("sysctl kernel.perf_event_paranoid={level}")))
}

pub(super) const TRACEFS: CheckDef = CheckDef {
    code: code! { "E504" "trace events",
        what: "This process may read the kernel's trace events.",
        why: "Trace events name the thread, interrupt or softirq behind each gap.",
        how: "tracefs is read if it is mounted. Else it is mounted privately, invisible to other processes.",
        next: "Run as root once to get the names. The figures of an unprivileged run are valid without them.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["limits.tracefs"],
    judge: tracefs,
};

fn tracefs(inputs: &Inputs) -> Judged {
    const NEXT: &str = "run as root once to get the names: sudo machmeter noise";
    let limit = "readable";
    // A denied read is the answer to this check, not a gap in the evidence.
    if let Some(fact) = inputs.facts.get("limits.tracefs").filter(|f| f.state == FactState::Denied) {
        let why = fact.why.as_deref().unwrap_or("no permission");
        let outcome = Outcome::warn(format!("{NO_NAMES} ({why})")).brief(NO_NAMES);
        return Ok(outcome.limit(limit).next(NEXT));
    }
    if let Seen::Nothing(why) = inputs.look("limits.tracefs")? {
        // Without the right to mount, a hidden tracefs and a kernel without tracefs look the same.
        return Ok(match effective(inputs, "limits.cap_sys_admin") {
            Ok(true) => Outcome::not_applicable(format!("no trace events here: {why}")),
            _ => Outcome::unknown(format!("no trace events are visible: {why}")).next(NEXT),
        });
    }
    Ok(match inputs.text("limits.tracefs")? {
        "readable" | "mountable" => Outcome::pass("readable"),
        other => Outcome::warn(format!("{NO_NAMES} ({other})")).brief(NO_NAMES).next(NEXT),
    }
    .limit(limit))
}
