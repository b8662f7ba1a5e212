//! `sched_setattr` and `sched_getattr` for the calling thread.

use std::io;

use super::{Policy, cause};
use crate::Refused;

/// `struct sched_attr` of the second ABI version (56 bytes, Linux 5.3). Only its first version is passed unless a clamp is
/// asked for, because every kernel with the call accepts that.
#[repr(C)]
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct SchedAttr {
    pub(super) size_bytes: u32,
    policy: u32,
    pub(super) flags: u64,
    nice: i32,
    priority: u32,
    pub(super) runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
    pub(super) clamp_min: u32,
    pub(super) clamp_max: u32,
}

pub(super) const ATTR_BYTES: u32 = size_of::<SchedAttr>() as u32;
const FIRST_ATTR_BYTES: u32 = ATTR_BYTES - 8;
const SCHED_DEADLINE: i32 = 6;

impl From<Policy> for SchedAttr {
    fn from(policy: Policy) -> Self {
        let base = Self { size_bytes: FIRST_ATTR_BYTES, ..Self::default() };
        match policy {
            Policy::Other { nice } => Self { policy: libc::SCHED_OTHER as u32, nice: nice.into(), ..base },
            Policy::Batch => Self { policy: libc::SCHED_BATCH as u32, ..base },
            Policy::Idle => Self { policy: libc::SCHED_IDLE as u32, ..base },
            Policy::Fifo(p) => Self { policy: libc::SCHED_FIFO as u32, priority: p.into(), ..base },
            Policy::Rr(p) => Self { policy: libc::SCHED_RR as u32, priority: p.into(), ..base },
            Policy::Deadline { runtime_ns, deadline_ns, period_ns } => {
                Self { policy: SCHED_DEADLINE as u32, runtime_ns, deadline_ns, period_ns, ..base }
            }
        }
    }
}

impl SchedAttr {
    pub(super) fn to_policy(self) -> io::Result<Policy> {
        Ok(match self.policy as i32 {
            libc::SCHED_OTHER => Policy::Other { nice: self.nice as i8 },
            libc::SCHED_BATCH => Policy::Batch,
            libc::SCHED_IDLE => Policy::Idle,
            libc::SCHED_FIFO => Policy::Fifo(self.priority as u8),
            libc::SCHED_RR => Policy::Rr(self.priority as u8),
            SCHED_DEADLINE => Policy::Deadline {
                runtime_ns: self.runtime_ns,
                deadline_ns: self.deadline_ns,
                period_ns: self.period_ns,
            },
            other => return Err(io::Error::other(format!("unknown scheduling policy {other}"))),
        })
    }
}

/// The calling thread, as `sched_setattr` names it.
pub(super) const THREAD_SELF: libc::pid_t = 0;

pub(super) fn set_attr(thread: libc::pid_t, attr: &SchedAttr) -> io::Result<()> {
    let flags: libc::c_uint = 0;
    // SAFETY: `attr` is a live, initialized structure whose first field states its size; the kernel only reads it.
    let rc = unsafe { libc::syscall(libc::SYS_sched_setattr, thread, std::ptr::from_ref(attr), flags) };
    if rc == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives another thread of this process, which may not get to run, a policy.
pub fn apply_to(tid: i32, policy: Policy) -> Result<(), Refused> {
    policy.validate()?;
    set_attr(tid, &policy.into()).map_err(|e| cause::of_refusal(policy, &e))
}

/// The policy of the calling thread with all attributes; fields that the kernel does not know stay 0.
pub(super) fn current_with_attr() -> Result<(Policy, SchedAttr), Refused> {
    let mut attr = SchedAttr::default();
    let flags: libc::c_uint = 0;
    // SAFETY: the buffer is a live, writable structure of exactly the size passed.
    let rc = unsafe {
        libc::syscall(libc::SYS_sched_getattr, THREAD_SELF, std::ptr::from_mut(&mut attr), ATTR_BYTES, flags)
    };
    let policy = if rc == 0 { attr.to_policy() } else { Err(io::Error::last_os_error()) };
    Ok((policy.map_err(|e| Refused(format!("policy read: {e}")))?, attr))
}

/// The policy of the calling thread. Errors: the system's, or an unknown one (`SCHED_EXT`).
pub fn current() -> Result<Policy, Refused> {
    Ok(current_with_attr()?.0)
}

/// Applies `policy` to the calling thread and reads it back. Errors: the true cause: the same `EPERM` may mean a
/// missing right, a resource limit, a group without budget, a narrow affinity, or a seccomp filter.
pub fn apply(policy: Policy) -> Result<(), Refused> {
    policy.validate()?;
    set_attr(THREAD_SELF, &policy.into()).map_err(|e| cause::of_refusal(policy, &e))?;
    in_force(policy, current()?)
}

/// Errors: the kernel accepted `policy` but reports another one.
pub(super) fn in_force(policy: Policy, found: Policy) -> Result<(), Refused> {
    if same_policy(policy, found) {
        return Ok(());
    }
    Err(Refused(format!("policy {policy} was accepted but the kernel reports {found}")))
}

/// Equality as far as the kernel keeps the parameters (it may round deadline parameters by less than a microsecond).
fn same_policy(asked: Policy, found: Policy) -> bool {
    match (asked, found) {
        (
            Policy::Deadline { runtime_ns, deadline_ns, period_ns },
            Policy::Deadline { runtime_ns: run, deadline_ns: dl, period_ns: per },
        ) => [(runtime_ns, run), (deadline_ns, dl), (period_ns, per)]
            .iter()
            .all(|(a, b)| a.abs_diff(*b) <= 1_024),
        _ => asked == found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_thread;

    #[test]
    fn batch_and_idle_need_no_right_and_are_read_back() {
        for policy in [Policy::Batch, Policy::Idle] {
            in_thread(|| {
                apply(policy).unwrap();
                assert_eq!(current().unwrap(), policy);
            });
        }
    }

    #[test]
    fn fifo_is_applied_or_the_refusal_names_a_cause() {
        in_thread(|| match apply(Policy::Fifo(3)) {
            Ok(()) => assert_eq!(current().unwrap(), Policy::Fifo(3)),
            Err(e) => assert!(e.to_string().len() > "policy fifo:3 refused: ".len(), "{e}"),
        });
    }

    #[test]
    fn out_of_range_parameters_never_reach_the_kernel() {
        assert!(apply(Policy::Fifo(0)).unwrap_err().to_string().contains("outside 1..99"));
        assert!(apply(Policy::Other { nice: 99 }).unwrap_err().to_string().contains("outside -20..19"));
    }

    #[test]
    fn deadline_on_a_narrowed_affinity_is_refused_with_that_cause() {
        let cpus = std::thread::available_parallelism().unwrap().get();
        let capable = cause::Rights::read().is_ok_and(|r| r.sys_nice_effective());
        if cpus < 2 || !capable {
            return println!("skipped: needs two CPUs and CAP_SYS_NICE");
        }
        in_thread(|| {
            let first = crate::affinity::mask().unwrap().first().unwrap();
            crate::affinity::pin(first).unwrap();
            let period_ns = 100_000_000;
            let e = apply(Policy::Deadline { runtime_ns: 1_000_000, deadline_ns: period_ns, period_ns })
                .unwrap_err();
            let cause = format!("on every CPU of its root domain, this one may use {first} of ");
            assert!(e.to_string().contains(&cause), "{e}");
        });
    }

    #[test]
    fn a_thread_without_rights_is_told_about_capability_and_limit() {
        crate::testing::as_nobody(|| {
            let e = apply(Policy::Fifo(98)).unwrap_err();
            let text = e.to_string();
            assert!(text.contains("CAP_SYS_NICE") && text.contains("RLIMIT_RTPRIO"), "{text}");
            let e = apply(Policy::Other { nice: -10 }).unwrap_err().to_string();
            assert!(e.contains("RLIMIT_NICE"), "{e}");
        });
    }
}
