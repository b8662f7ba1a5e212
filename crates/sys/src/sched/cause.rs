//! From `EPERM` to the reason: the kernel answers many different refusals of a policy with the same number.

use std::fs;
use std::io;

use super::Policy;
use super::apply::SchedError;
use super::limits::GroupBudget;
use crate::topology::CpuSet;

const CAP_SYS_NICE: u32 = 23;

/// The rights of the calling thread that bear on scheduling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) cap_sys_nice: bool,
    /// The capability counts only in the initial user namespace.
    pub(super) initial_user_namespace: bool,
    pub(super) rtprio_limit: u64,
    pub(super) nice_limit: u64,
    /// Seccomp mode of the thread: 0 none, 1 strict, 2 filter.
    pub(super) seccomp_mode: u32,
    pub(super) cpus_allowed: String,
}

impl Rights {
    pub(super) fn read() -> io::Result<Self> {
        let status = fs::read_to_string("/proc/thread-self/status")?;
        let uid_map = fs::read_to_string("/proc/thread-self/uid_map").unwrap_or_default();
        Ok(Self::from_text(
            &status,
            &uid_map,
            resource_limit(libc::RLIMIT_RTPRIO),
            resource_limit(libc::RLIMIT_NICE),
        ))
    }

    fn from_text(status: &str, uid_map: &str, rtprio_limit: u64, nice_limit: u64) -> Self {
        let field = |key: &str| {
            status
                .lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))
                .map_or("", str::trim)
                .to_owned()
        };
        let caps = u64::from_str_radix(&field("CapEff"), 16).unwrap_or(0);
        let map: Vec<&str> = uid_map.split_whitespace().collect();
        Self {
            cap_sys_nice: caps >> CAP_SYS_NICE & 1 == 1,
            initial_user_namespace: map.is_empty() || map == ["0", "0", "4294967295"],
            rtprio_limit,
            nice_limit,
            seccomp_mode: field("Seccomp").parse().unwrap_or(0),
            cpus_allowed: field("Cpus_allowed_list"),
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

/// The soft limit of a resource of this process; `u64::MAX` is unlimited.
pub(crate) fn resource_limit(resource: libc::__rlimit_resource_t) -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is a live, writable rlimit structure.
    let rc = unsafe { libc::getrlimit(resource, &raw mut limit) };
    if rc == 0 { limit.rlim_cur } else { 0 }
}

/// Names the cause of a failed `sched_setattr` of the calling thread.
pub(super) fn of_refusal(policy: Policy, source: io::Error) -> SchedError {
    match source.raw_os_error() {
        Some(libc::EBUSY) => SchedError::DeadlineBandwidth { policy },
        Some(libc::EPERM | libc::EACCES) => match Rights::read() {
            Ok(rights) => of_eperm(policy, &rights, &GroupBudget::read(), &online_cpus()),
            Err(e) => SchedError::NotPermitted {
                policy,
                cause: format!("{source} (rights could not be read: {e})"),
            },
        },
        _ => SchedError::Os { policy: policy.to_string(), source },
    }
}

fn online_cpus() -> String {
    fs::read_to_string("/sys/devices/system/cpu/online").unwrap_or_default().trim().to_owned()
}

/// The order follows the kernel's own checks: rights first, then the group's budget, then the deadline affinity.
fn of_eperm(policy: Policy, rights: &Rights, budget: &GroupBudget, online: &str) -> SchedError {
    let capability = rights.capability_text();
    if let Some(limit_text) = missing_right(policy, rights) {
        let cause = format!("{capability} and {limit_text}; run as root or grant cap_sys_nice");
        return SchedError::NotPermitted { policy, cause };
    }
    match policy {
        Policy::Fifo(_) | Policy::Rr(_) => {
            if let Some(cause) = budget.refusal() {
                return SchedError::GroupBudget { policy, cause };
            }
        }
        Policy::Deadline { .. } if !covers(&rights.cpus_allowed, online) => {
            let cause = format!(
                "a deadline thread must be allowed on every CPU of its root domain, this one may use {} of {online}; \
                 do not pin it, or give it an exclusive cpuset",
                rights.cpus_allowed
            );
            return SchedError::DeadlineAffinity { policy, cause };
        }
        _ => {}
    }
    let cause = if rights.seccomp_mode == 0 {
        format!(
            "{capability}, yet the kernel answered 'operation not permitted' (a security module may forbid it)"
        )
    } else {
        "a seccomp filter of this process forbids it (container run time); allow sched_setattr there"
            .to_owned()
    };
    SchedError::NotPermitted { policy, cause }
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

    fn no_group() -> GroupBudget {
        GroupBudget::NotConfigured
    }

    #[test]
    fn capability_in_a_user_namespace_does_not_count() {
        let rights = Rights::from_text(STATUS, "0 100000 65536\n", 0, 0);
        let e = of_eperm(Policy::Fifo(5), &rights, &no_group(), "0-3").to_string();
        assert!(e.contains("only inside this user namespace") && e.contains("RLIMIT_RTPRIO is 0"), "{e}");
    }

    #[test]
    fn group_without_budget_is_named_when_rights_suffice() {
        let rights = Rights::from_text(STATUS, INITIAL, 0, 0);
        let budget =
            GroupBudget::Known { group: "/user.slice".to_owned(), runtime_us: 0, period_us: 1_000_000 };
        let e = of_eperm(Policy::Rr(1), &rights, &budget, "0-3");
        assert!(matches!(e, SchedError::GroupBudget { .. }), "{e}");
        let text = e.to_string();
        assert!(text.contains("cpu.rt_runtime_us") && text.contains("/user.slice"), "{text}");
    }

    #[test]
    fn deadline_affinity_is_told_apart_from_seccomp() {
        let rights = Rights::from_text(STATUS, INITIAL, 0, 0);
        assert!(matches!(
            of_eperm(DEADLINE, &rights, &no_group(), "0-7"),
            SchedError::DeadlineAffinity { .. }
        ));
        let filtered = Rights { seccomp_mode: 2, ..rights };
        let e = of_eperm(DEADLINE, &filtered, &no_group(), "0,1,2,3").to_string();
        assert!(e.contains("seccomp"), "{e}");
    }

    #[test]
    fn a_sufficient_limit_is_not_blamed() {
        let status = STATUS.replace("0000000000800000", "0");
        let rights = Rights::from_text(&status, INITIAL, 50, 0);
        let budget = GroupBudget::Known { group: "/a".to_owned(), runtime_us: 0, period_us: 1_000_000 };
        let e = of_eperm(Policy::Fifo(50), &rights, &budget, "0-3");
        assert!(matches!(e, SchedError::GroupBudget { .. }), "{e}");
        let e = of_eperm(Policy::Fifo(51), &rights, &budget, "0-3").to_string();
        assert!(e.contains("RLIMIT_RTPRIO is 50 (needs 51"), "{e}");
    }
}
