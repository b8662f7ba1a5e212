//! From `EPERM` to the reason: the kernel answers many different refusals of a policy with the same number.

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};

use super::Policy;
use super::limits::GroupBudget;
use crate::Refused;
use crate::facts::activity::user_namespace;
use crate::facts::field;
use crate::fs_root::FsRoot;
use crate::topology::CpuSet;

const CAP_SYS_NICE: u32 = 23;

/// The rights of the calling thread that bear on scheduling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(super) cap_sys_nice: bool,
    /// The capability counts only in the initial user namespace.
    pub(super) initial_user_namespace: bool,
    pub(super) rtprio_limit: u64,
    pub(super) nice_limit: u64,
    /// Seccomp mode of the thread: 0 none, 1 strict, 2 filter.
    pub(crate) seccomp_mode: u32,
    pub(super) cpus_allowed: String,
}

impl Rights {
    pub(crate) fn read() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/thread-self/status")?;
        let uid_map = fs::read_to_string("/proc/thread-self/uid_map").unwrap_or_default();
        let limit = |resource| getrlimit(resource).current.unwrap_or(u64::MAX);
        Ok(Self::from_text(&status, &uid_map, limit(Resource::Rtprio), limit(Resource::Nice)))
    }

    fn from_text(status: &str, uid_map: &str, rtprio_limit: u64, nice_limit: u64) -> Self {
        let field = |key: &str| field(status, key).unwrap_or_default();
        let caps = u64::from_str_radix(field("CapEff"), 16).unwrap_or(0);
        Self {
            cap_sys_nice: caps >> CAP_SYS_NICE & 1 == 1,
            initial_user_namespace: user_namespace(uid_map).is_none_or(|kind| kind == "initial"),
            rtprio_limit,
            nice_limit,
            seccomp_mode: field("Seccomp").parse().unwrap_or(0),
            cpus_allowed: field("Cpus_allowed_list").to_owned(),
        }
    }

    /// Whether the kernel will honor `CAP_SYS_NICE` of this thread.
    pub(super) fn sys_nice_effective(&self) -> bool {
        self.cap_sys_nice && self.initial_user_namespace
    }

    fn capability_text(&self) -> &'static str {
        match (self.cap_sys_nice, self.initial_user_namespace) {
            (false, _) => "no CAP_SYS_NICE",
            (true, false) => "CAP_SYS_NICE holds only inside this user namespace",
            (true, true) => "CAP_SYS_NICE is held",
        }
    }
}

/// Names the cause of a failed `sched_setattr` of the calling thread.
pub(super) fn of_refusal(policy: Policy, source: &io::Error) -> Refused {
    let cause = match source.raw_os_error() {
        Some(libc::EBUSY) => {
            "deadline bandwidth is used up (admission test); lower runtime/period or stop other deadline threads"
                .to_owned()
        }
        Some(libc::EPERM | libc::EACCES) => match Rights::read() {
            Ok(rights) => {
                let online = FsRoot::host().text("sys/devices/system/cpu/online").unwrap_or_default();
                of_eperm(policy, &rights, &GroupBudget::read(), &online)
            }
            Err(e) => format!("{source} (rights could not be read: {e})"),
        },
        _ => return Refused(format!("policy {policy}: {source}")),
    };
    Refused(format!("policy {policy} refused: {cause}"))
}

/// The order follows the kernel's own checks: rights first, then the group's budget, then the deadline affinity.
fn of_eperm(policy: Policy, rights: &Rights, budget: &GroupBudget, online: &str) -> String {
    let capability = rights.capability_text();
    if let Some(limit_text) = missing_right(policy, rights) {
        return format!("{capability} and {limit_text}; run as root or grant cap_sys_nice");
    }
    match policy {
        Policy::Fifo(_) | Policy::Rr(_) => {
            if let Some(cause) = budget.refusal() {
                return cause;
            }
        }
        Policy::Deadline { .. } if !covers(&rights.cpus_allowed, online) => {
            return format!(
                "a deadline thread must be allowed on every CPU of its root domain, this one may use {} of {online}; \
                 do not pin it, or give it an exclusive cpuset",
                rights.cpus_allowed
            );
        }
        _ => {}
    }
    if rights.seccomp_mode == 0 {
        format!(
            "{capability}, yet the kernel answered 'operation not permitted' (a security module may forbid it)"
        )
    } else {
        "a seccomp filter of this process forbids it (container run time); allow sched_setattr there"
            .to_owned()
    }
}

/// Whether the CPU list `allowed` holds all of `online`; unreadable lists don't blame the affinity.
fn covers(allowed: &str, online: &str) -> bool {
    match (allowed.parse::<CpuSet>(), online.parse::<CpuSet>()) {
        (Ok(allowed), Ok(online)) => online.difference(&allowed).is_empty(),
        _ => true,
    }
}

/// The resource limit that stands against `policy` for a thread whose capability does not count.
fn missing_right(policy: Policy, rights: &Rights) -> Option<String> {
    if rights.sys_nice_effective() {
        return None;
    }
    match policy {
        Policy::Fifo(p) | Policy::Rr(p) => (u64::from(p) > rights.rtprio_limit)
            .then(|| format!("RLIMIT_RTPRIO is {} (needs {p}; see limits.conf rtprio)", rights.rtprio_limit)),
        Policy::Deadline { .. } => Some("the deadline policy has no resource limit that would do".to_owned()),
        Policy::Other { nice } => {
            let needed = (20 - i64::from(nice)).max(0) as u64;
            (needed > rights.nice_limit)
                .then(|| format!("RLIMIT_NICE is {} (nice {nice} needs {needed})", rights.nice_limit))
        }
        Policy::Batch | Policy::Idle => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tx\nCapEff:\t0000000000800000\nSeccomp:\t0\nCpus_allowed_list:\t0-3\n";
    const INITIAL: &str = "         0          0 4294967295\n";
    const DEADLINE: Policy =
        Policy::Deadline { runtime_ns: 1 << 20, deadline_ns: 1 << 24, period_ns: 1 << 24 };

    #[test]
    fn a_refusal_has_the_cause_that_the_kernel_finds_first() {
        let of = |status: &str, uid_map, limit| Rights::from_text(status, uid_map, limit, 0);
        let capable = || of(STATUS, INITIAL, 0);
        let limited = || of(&STATUS.replace("0000000000800000", "0"), INITIAL, 50);
        let (free, empty) = (
            GroupBudget::NotConfigured,
            GroupBudget::Known { group: "/user.slice".to_owned(), runtime_us: 0 },
        );
        for (policy, rights, budget, online, cause) in [
            (
                Policy::Fifo(5),
                of(STATUS, "0 100000 65536\n", 0),
                &free,
                "0-3",
                "only inside this user namespace",
            ),
            (Policy::Fifo(5), of(STATUS, "0 100000 65536\n", 0), &free, "0-3", "RLIMIT_RTPRIO is 0"),
            (
                Policy::Rr(1),
                capable(),
                &empty,
                "0-3",
                "the control group /user.slice has no real-time budget",
            ),
            (Policy::Rr(1), capable(), &empty, "0-3", "cpu.rt_runtime_us"),
            (DEADLINE, capable(), &free, "0-7", "this one may use 0-3 of 0-7"),
            (DEADLINE, Rights { seccomp_mode: 2, ..capable() }, &free, "0,1,2,3", "seccomp"),
            (
                Policy::Fifo(50),
                limited(),
                &empty,
                "0-3",
                "the control group /user.slice has no real-time budget",
            ),
            (Policy::Fifo(51), limited(), &empty, "0-3", "RLIMIT_RTPRIO is 50 (needs 51"),
        ] {
            let e = of_eperm(policy, &rights, budget, online);
            assert!(e.contains(cause), "{policy} {rights:?}: {e}");
        }
    }
}
