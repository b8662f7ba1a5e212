//! What may this process do? Missing rights never stop a run; they are named so that they can be given.

use machmeter_data::facts::FactState;
use machmeter_data::{Hazard, code};

use super::CheckDef;
use super::inputs::{Inputs, Seen, size, three_digits};
use super::outcome::{Judged, Outcome};
use machmeter_engine::placement::AUTO_FIFO_PRIORITY;

/// Buffers, stacks and lists of a noise run on a large machine.
const LOCKED_BYTES: f64 = 64.0 * 1024.0 * 1024.0;

/// Whether a capability is held where it counts for the machine: capabilities of a user namespace of one's own do not.
pub(super) fn effective(inputs: &Inputs, capability: &str) -> Result<bool, Outcome> {
    let counts = inputs.text("limits.user_namespace")? == "initial";
    Ok(inputs.flag(capability)? && counts)
}

/// Whether some real-time priority can be had at all.
pub(super) fn may_use_real_time(inputs: &Inputs) -> Result<bool, Outcome> {
    let capability = effective(inputs, "limits.cap_sys_nice")?;
    Ok(inputs.limit("limits.rtprio")? >= 1.0 || capability)
}

pub(super) const REAL_TIME: CheckDef = CheckDef {
    code: code! { "E501" "real-time priority",
        what: "This process may use a real-time policy.",
        why: "Under the ordinary policy every other thread delays the measuring one; worst cases are then those of the load.",
        how: "RLIMIT_RTPRIO, CAP_SYS_NICE in the initial user namespace, and the real-time budget of the control group.",
        next: "Run as root, or put `USER - rtprio 98` into /etc/security/limits.d/95-rtprio.conf and log in again, or \
               setcap cap_sys_nice=ep on the program.",
        undo: "Remove the file, or setcap -r.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["limits.rtprio", "limits.cap_sys_nice", "limits.user_namespace", "limits.rt_group"],
    judge: real_time,
};

fn real_time(inputs: &Inputs) -> Judged {
    const TRY: &str = "machmeter noise --prio fifo:45 tries it";
    let group = inputs.text("limits.rt_group")?;
    let capability = effective(inputs, "limits.cap_sys_nice")?;
    let highest = inputs.limit("limits.rtprio")?;
    let outcome = if let Some(why) = group.strip_prefix("refused: ") {
        Outcome::warn(format!("no real-time policy (refused by the control group: {why})"))
            .next(
                "echo $$ > /sys/fs/cgroup/cpu/tasks moves the shell into the root group, which has a budget",
            )
            .undo("write the shell's number into the tasks file of its former group")
    } else if !capability && highest < f64::from(AUTO_FIFO_PRIORITY) {
        Outcome::warn(format!("no real-time policy (highest priority {}, no CAP_SYS_NICE)", three_digits(highest)))
            .next("run as root, or echo 'USER - rtprio 98' > /etc/security/limits.d/95-rtprio.conf and log in again")
            .undo("rm /etc/security/limits.d/95-rtprio.conf")
    } else if let Some(why) = group.strip_prefix("hidden: ") {
        Outcome::unknown(format!("rights are there, but {why}")).next(TRY)
    } else if group != "not refused" {
        let why = format!("rights are there, but of the control group's budget it says {group:?}");
        Outcome::unknown(why).next(TRY)
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
        why: "Memory that is not locked can be taken away or moved: the measuring thread then takes page faults that look like noise.",
        how: "RLIMIT_MEMLOCK and CAP_IPC_LOCK in the initial user namespace.",
        next: "ulimit -l unlimited as root, or put `USER - memlock unlimited` into /etc/security/limits.d/95-memlock.conf.",
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
        what: "The kernel's context-switch records can be read by this process.",
        why: "Without them (and without tracefs, E504) gaps are counted but nobody is named.",
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
        return Ok(Outcome::not_applicable(format!("this kernel shows no perf events: {why}")));
    }
    let fact = inputs.facts.number("limits.perf_event_paranoid").filter(|n| (-1.0..=4.0).contains(n));
    let Some(level) = fact else {
        return Ok(Outcome::unknown("perf_event_paranoid is no level from -1 to 4"));
    };
    let perfmon = effective(inputs, "limits.cap_perfmon")?;
    let capability = effective(inputs, "limits.cap_sys_admin")? || perfmon;
    let outcome = if capability || level <= 1.0 {
        Outcome::pass(format!(
            "perf_event_paranoid {level}{}",
            if capability { ", passed over by capability" } else { "" }
        ))
    } else {
        Outcome::warn(format!("no names of culprits (perf_event_paranoid {level} without CAP_PERFMON)"))
    };
    Ok(outcome
        .limit("1, or CAP_PERFMON")
        .next("run as root, or sysctl kernel.perf_event_paranoid=1")
        .undo(format!("sysctl kernel.perf_event_paranoid={level}")))
}

pub(super) const TRACEFS: CheckDef = CheckDef {
    code: code! { "E504" "trace events",
        what: "The kernel's trace events can be read by this process.",
        why: "They name the thread, interrupt or softirq behind each gap.",
        how: "Reading tracefs where it is mounted, else making a private mount that nobody else sees.",
        next: "Run as root once to learn the names; the figures of an unprivileged run stand without them.",
    },
    hazards: &[Hazard::Rights],
    of_machine: true,
    needs: &["limits.tracefs"],
    judge: tracefs,
};

fn tracefs(inputs: &Inputs) -> Judged {
    const NEXT: &str = "run as root once to learn the names: sudo machmeter noise";
    let limit = "readable";
    // Here a refusal is not a gap in what is known: it is the answer.
    if let Some(fact) = inputs.facts.get("limits.tracefs").filter(|f| f.state == FactState::Denied) {
        let why = fact.why.as_deref().unwrap_or("no permission");
        return Ok(Outcome::warn(format!("no names of culprits ({why})")).limit(limit).next(NEXT));
    }
    if let Seen::Nothing(why) = inputs.look("limits.tracefs")? {
        // Who may not mount cannot tell a kernel without tracefs from one that hides it.
        return Ok(match effective(inputs, "limits.cap_sys_admin") {
            Ok(true) => Outcome::not_applicable(format!("no trace events here: {why}")),
            _ => Outcome::unknown(format!("no trace events are seen: {why}")).next(NEXT),
        });
    }
    Ok(match inputs.text("limits.tracefs")? {
        "readable" | "mountable" => Outcome::pass("readable"),
        other => Outcome::warn(format!("no names of culprits ({other})")).next(NEXT),
    }
    .limit(limit))
}
