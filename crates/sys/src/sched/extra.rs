//! Attributes beside the policy: the slice of the fair scheduler and the utilization clamp.
//!
//! Sources: `sched_setattr(2)`; Linux kernel/sched/fair.c and syscalls.c (`__setparam_fair`, `custom_slice`, since 6.12);
//! Documentation/scheduler/sched-util-clamp.rst (since 5.3).

use std::fmt;
use std::io;

use serde::{Deserialize, Serialize};

use super::apply::{self, ATTR_BYTES, SchedAttr, THREAD_SELF, current_with_attr, in_force, set_attr};
use super::{KernelVersion, Policy, cause, span};
use crate::Refused;

/// The shortest slice the kernel keeps, ns; it would silently raise a shorter one to this.
pub const SLICE_MIN_NS: u64 = 100_000;
/// The longest slice the kernel keeps, ns.
pub const SLICE_MAX_NS: u64 = 100_000_000;
/// A utilization clamp runs from 0 to this, which is the largest core at its highest frequency.
pub const CLAMP_MAX: u16 = 1024;

const FLAG_UTIL_CLAMP_MIN: u64 = 0x20;
const FLAG_UTIL_CLAMP_MAX: u64 = 0x40;
const SLICES_SINCE: KernelVersion = KernelVersion { major: 6, minor: 12 };
const CLAMPS_SINCE: KernelVersion = KernelVersion { major: 5, minor: 3 };

/// What a thread may ask of the scheduler beside its policy.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Extra {
    /// Slice of the fair scheduler in ns, 0.1 to 100 ms, for `other` and `batch`; `None` is the kernel's own. A shorter
    /// slice means an earlier deadline among fair threads, and thus less waiting at the same share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slice_ns: Option<u64>,
    /// Lowest and highest utilization the scheduler may assume, 0 to 1024; `None` leaves it as it is. It guides the choice
    /// of frequency and of core.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clamp: Option<(u16, u16)>,
}

impl Extra {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Checks the values against the ranges the kernel keeps and against `policy`.
    pub fn validate(&self, policy: Policy) -> Result<(), Refused> {
        let fail = |attribute: String, cause| Err(refused(&attribute, policy, cause));
        if let Some(slice_ns) = self.slice_ns {
            let attribute = slice_text(slice_ns);
            if !matches!(policy, Policy::Other { .. } | Policy::Batch) {
                return fail(attribute, "only the policies other and batch have a slice");
            }
            if !(SLICE_MIN_NS..=SLICE_MAX_NS).contains(&slice_ns) {
                return fail(attribute, "a slice is 100us to 100ms");
            }
        }
        match self.clamp {
            Some((min, max)) if max > CLAMP_MAX || min > max => {
                fail(clamp_text((min, max)), "a clamp is MIN..MAX with 0 <= MIN <= MAX <= 1024")
            }
            _ => Ok(()),
        }
    }

    fn attr(self, policy: Policy) -> SchedAttr {
        let mut attr = SchedAttr::from(policy);
        if let Some(slice_ns) = self.slice_ns {
            attr.runtime_ns = slice_ns;
        }
        if let Some((min, max)) = self.clamp {
            attr.size_bytes = ATTR_BYTES;
            attr.flags = FLAG_UTIL_CLAMP_MIN | FLAG_UTIL_CLAMP_MAX;
            attr.clamp_min = min.into();
            attr.clamp_max = max.into();
        }
        attr
    }

    /// What of this is not in force when the kernel reads back `found`.
    fn lost(self, policy: Policy, found: &SchedAttr, kernel: Option<KernelVersion>) -> Result<(), Refused> {
        let reported = |what: String| format!("the kernel reports {what} in force");
        let in_force = (found.clamp_min, found.clamp_max);
        let (attribute, cause) = match (self.slice_ns, self.clamp) {
            (Some(slice_ns), _) if slice_ns != found.runtime_ns => {
                let old = found.runtime_ns == 0;
                let cause = if old {
                    since("slices", SLICES_SINCE, kernel)
                } else {
                    reported(slice_text(found.runtime_ns))
                };
                (slice_text(slice_ns), cause)
            }
            (_, Some((min, max))) if (u32::from(min), u32::from(max)) != in_force => {
                (clamp_text((min, max)), reported(format!("{}..{}", in_force.0, in_force.1)))
            }
            _ => return Ok(()),
        };
        Err(refused(&attribute, policy, &cause))
    }
}

impl fmt::Display for Extra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [self.slice_ns.map(slice_text), self.clamp.map(clamp_text)];
        f.write_str(&parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

fn refused(attribute: &str, policy: Policy, cause: &str) -> Refused {
    Refused(format!("{attribute} with policy {policy} refused: {cause}"))
}

fn slice_text(slice_ns: u64) -> String {
    format!("slice {}", span(slice_ns))
}

fn clamp_text((min, max): (u16, u16)) -> String {
    format!("utilization clamp {min}..{max}")
}

fn since(what: &str, first: KernelVersion, running: Option<KernelVersion>) -> String {
    match running {
        Some(running) if running < first => {
            format!("kernel {running} is too old, {what} came with Linux {first}")
        }
        Some(running) => format!("kernel {running} does not keep it ({what} came with Linux {first})"),
        None => format!("this kernel does not keep it ({what} came with Linux {first})"),
    }
}

/// Why the kernel refused a call that also carried a clamp; `None` if the clamp is not to blame.
fn clamp_refusal(error: &io::Error, kernel: Option<KernelVersion>) -> Option<String> {
    match error.raw_os_error()? {
        libc::EOPNOTSUPP => Some("this kernel was built without CONFIG_UCLAMP_TASK".to_owned()),
        // Kernels that don't know the flags or the longer structure refuse them as unknown.
        libc::EINVAL | libc::E2BIG => Some(since("clamps", CLAMPS_SINCE, kernel)),
        _ => None,
    }
}

/// Applies `policy` and `extra` to the calling thread and reads both back. Without a slice it gets the kernel's
/// own; without a clamp it keeps the one it has. Errors: the true cause.
pub fn apply_with(policy: Policy, extra: &Extra) -> Result<(), Refused> {
    policy.validate()?;
    extra.validate(policy)?;
    if extra.is_empty() {
        return apply::apply(policy);
    }
    let kernel = KernelVersion::read();
    set_attr(THREAD_SELF, &extra.attr(policy)).map_err(|source| {
        match extra.clamp.and_then(|clamp| Some((clamp, clamp_refusal(&source, kernel)?))) {
            Some((clamp, cause)) => refused(&clamp_text(clamp), policy, &cause),
            None => cause::of_refusal(policy, &source),
        }
    })?;
    let (found, attr) = current_with_attr()?;
    in_force(policy, found)?;
    extra.lost(policy, &attr, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::in_thread;

    const OTHER: Policy = Policy::Other { nice: 0 };

    fn attr() -> SchedAttr {
        current_with_attr().unwrap().1
    }

    #[test]
    fn a_slice_comes_back_or_the_kernel_is_named() {
        in_thread(|| {
            for (policy, slice_ns) in
                [(OTHER, 300_000), (Policy::Batch, 20_000_000), (OTHER, SLICE_MIN_NS), (OTHER, SLICE_MAX_NS)]
            {
                let extra = Extra { slice_ns: Some(slice_ns), clamp: None };
                match apply_with(policy, &extra) {
                    Ok(()) => {
                        assert_eq!(attr().runtime_ns, slice_ns);
                        assert_eq!(apply::current().unwrap(), policy);
                    }
                    Err(e) => {
                        println!("skipped: {e}");
                        assert!(KernelVersion::read().is_none_or(|v| v < SLICES_SINCE), "{e}");
                    }
                }
            }
        });
    }

    #[test]
    fn no_slice_gives_the_kernels_own_back() {
        in_thread(|| {
            let own = attr().runtime_ns;
            let short = Extra { slice_ns: Some(123_456), clamp: None };
            if apply_with(OTHER, &short).is_ok() {
                apply_with(OTHER, &Extra::default()).unwrap();
                assert_eq!(attr().runtime_ns, own);
            }
        });
    }

    #[test]
    fn a_clamp_comes_back_or_the_cause_is_named() {
        in_thread(|| {
            let extra = Extra { slice_ns: None, clamp: Some((100, 800)) };
            match apply_with(Policy::Batch, &extra) {
                Ok(()) => assert_eq!((attr().clamp_min, attr().clamp_max), (100, 800)),
                Err(e) => {
                    println!("skipped: {e}");
                    let text = e.to_string();
                    assert!(
                        text.starts_with("utilization clamp 100..800 with policy batch refused: "),
                        "{text}"
                    );
                    assert!(text.contains("CONFIG_UCLAMP_TASK") || text.contains("Linux 5.3"), "{text}");
                }
            }
        });
    }

    #[test]
    fn what_is_out_of_range_never_reaches_the_kernel() {
        let slice = |slice_ns| Extra { slice_ns: Some(slice_ns), clamp: None };
        let clamp = |min, max| Extra { slice_ns: None, clamp: Some((min, max)) };
        for (policy, extra, part) in [
            (OTHER, slice(99_999), "100us to 100ms"),
            (OTHER, slice(100_000_001), "100us to 100ms"),
            (OTHER, slice(0), "100us to 100ms"),
            (Policy::Fifo(5), slice(1_000_000), "only the policies other and batch"),
            (Policy::Idle, slice(1_000_000), "only the policies other and batch"),
            (OTHER, clamp(0, 1025), "MIN..MAX"),
            (OTHER, clamp(900, 100), "MIN..MAX"),
        ] {
            let e = apply_with(policy, &extra).unwrap_err().to_string();
            assert!(e.contains(" with policy ") && e.contains(part) && !e.contains('\n'), "{e}");
        }
    }

    #[test]
    fn what_does_not_come_back_is_an_error_with_its_cause() {
        let asked = Extra { slice_ns: Some(3_000_000), clamp: Some((0, 512)) };
        let mut found = asked.attr(OTHER);
        let new = Some(KernelVersion { major: 6, minor: 18 });
        assert!(asked.lost(OTHER, &found, new).is_ok());
        found.clamp_max = 1024;
        let e = asked.lost(OTHER, &found, new).unwrap_err().to_string();
        assert!(e.contains("0..1024 in force"), "{e}");
        found.runtime_ns = 2_800_000;
        let e = asked.lost(OTHER, &found, new).unwrap_err().to_string();
        assert!(e.contains("slice 3ms") && e.contains("slice 2800us in force"), "{e}");
        found.runtime_ns = 0;
        let old = Some(KernelVersion { major: 6, minor: 6 });
        let e = asked.lost(OTHER, &found, old).unwrap_err().to_string();
        assert!(e.contains("kernel 6.6 is too old, slices came with Linux 6.12"), "{e}");
    }

    #[test]
    fn refusals_of_a_clamp_are_told_apart() {
        let old = Some(KernelVersion { major: 4, minor: 19 });
        let cause = |code| clamp_refusal(&io::Error::from_raw_os_error(code), old);
        assert!(cause(libc::EOPNOTSUPP).unwrap().contains("CONFIG_UCLAMP_TASK"));
        assert!(cause(libc::E2BIG).unwrap().contains("kernel 4.19 is too old"));
        assert_eq!(cause(libc::EPERM), None);
    }
}
