//! What hardware and kernel say about the counter, and the choice of a source that follows from it alone.

use super::{Counter, SourceId, TickSource};
use crate::fs_root::FsRoot;

/// What hardware and kernel say about the counter; `None` where they can't say.
#[derive(Clone, Copy, Default)]
struct Flags {
    /// CPUID: one rate in all power states (x86-64); by architecture on aarch64.
    invariant: Option<bool>,
    /// The kernel's `constant_tsc`: the rate does not follow the core's frequency.
    constant_tsc: Option<bool>,
    /// The kernel's `nonstop_tsc`: it runs on in deep idle states.
    nonstop_tsc: Option<bool>,
}

impl Flags {
    fn steady(self) -> bool {
        self.invariant == Some(true) || (self.constant_tsc == Some(true) && self.nonstop_tsc == Some(true))
    }
}

/// The source to use, and why not the counter if it is not the counter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    pub source: SourceId,
    /// Why the counter was passed over; `None` if it was not.
    pub fallback_reason: Option<String>,
    /// What a reader should know although it did not decide.
    pub notes: Vec<String>,
}

/// The source to use by what hardware and kernel state, before any measurement.
pub(super) fn choose_unmeasured() -> Verdict {
    choose(flags(), kernel_clocksource().as_deref(), kernel_clocksources().as_deref())
}

fn choose(flags: Flags, current: Option<&str>, offered: Option<&str>) -> Verdict {
    let offers_counter = |names: &str| names.split_whitespace().any(|n| made_from_counter(Some(n)));
    let distrusted = current.is_some_and(|c| !made_from_counter(Some(c)) && !is_paravirtual(c))
        && !offered.is_some_and(offers_counter);
    let fallback_reason = if !flags.steady() {
        Some("the counter is not invariant: its rate follows the power state".to_owned())
    } else if distrusted {
        Some(format!("the kernel does not trust the counter and uses {}", current.unwrap_or("another clock")))
    } else {
        None
    };
    let source = if fallback_reason.is_some() { SourceId::MonotonicRaw } else { Counter::ID };
    Verdict { source, fallback_reason, notes: Vec::new() }
}

/// Whether the kernel clock is made from the very counter that user code reads.
pub(super) fn made_from_counter(clocksource: Option<&str>) -> bool {
    matches!(clocksource, Some("tsc" | "arch_sys_counter"))
}

/// Clocks of hypervisors that are themselves scaled from the counter, so that using them is no distrust.
fn is_paravirtual(clocksource: &str) -> bool {
    matches!(clocksource, "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen")
}

pub(super) fn kernel_clocksource() -> Option<String> {
    FsRoot::host().text("sys/devices/system/clocksource/clocksource0/current_clocksource")
}

fn kernel_clocksources() -> Option<String> {
    FsRoot::host().text("sys/devices/system/clocksource/clocksource0/available_clocksource")
}

#[cfg(target_arch = "x86_64")]
fn flags() -> Flags {
    // The first CPU's part; the rest can take the kernel long on a large machine.
    let kernel = FsRoot::host().read_start("proc/cpuinfo", 4096).ok();
    let named = |flag: &str| {
        let line = kernel.as_deref()?.lines().find(|l| l.starts_with("flags"))?;
        Some(line.split_whitespace().any(|f| f == flag))
    };
    Flags {
        invariant: Some(super::x86_64::has_invariant_tsc()),
        constant_tsc: named("constant_tsc"),
        nonstop_tsc: named("nonstop_tsc"),
    }
}

#[cfg(target_arch = "aarch64")]
fn flags() -> Flags {
    Flags { invariant: Some(true), ..Flags::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVARIANT: Flags = Flags { invariant: Some(true), constant_tsc: None, nonstop_tsc: None };
    const LAPTOP_OF_2005: Flags =
        Flags { invariant: Some(false), constant_tsc: Some(true), nonstop_tsc: Some(false) };

    #[test]
    fn the_counter_is_used_where_hardware_and_kernel_trust_it() {
        for (flags, current, offered) in [
            (INVARIANT, Some("tsc"), Some("tsc hpet acpi_pm")),
            (INVARIANT, Some("arch_sys_counter"), Some("arch_sys_counter")),
            (INVARIANT, Some("kvm-clock"), Some("kvm-clock")),
            (INVARIANT, Some("hpet"), Some("tsc hpet acpi_pm")),
            (INVARIANT, None, None),
            (Flags { nonstop_tsc: Some(true), ..LAPTOP_OF_2005 }, Some("tsc"), None),
        ] {
            let verdict = choose(flags, current, offered);
            assert_eq!((verdict.source, verdict.fallback_reason), (Counter::ID, None), "{current:?}");
        }
    }

    #[test]
    fn else_the_kernel_clock_is_used_with_the_reason() {
        for (flags, current, offered, reason) in [
            (LAPTOP_OF_2005, Some("hpet"), Some("hpet acpi_pm"), "not invariant"),
            (Flags::default(), Some("tsc"), None, "not invariant"),
            (INVARIANT, Some("hpet"), Some("hpet acpi_pm"), "does not trust the counter and uses hpet"),
        ] {
            let verdict = choose(flags, current, offered);
            assert_eq!(verdict.source, SourceId::MonotonicRaw);
            let given = verdict.fallback_reason.unwrap();
            assert!(given.contains(reason), "{given}");
        }
    }
}
