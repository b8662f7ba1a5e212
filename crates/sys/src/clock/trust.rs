//! What hardware and kernel say about the counter, and the choice of a source that follows from it alone.

#[cfg(target_arch = "aarch64")]
use super::aarch64::is_steady;
#[cfg(target_arch = "x86_64")]
use super::x86_64::is_steady;
use super::{Counter, SourceId, TickSource};
use crate::fs_root::FsRoot;

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
    choose(is_steady(), kernel_clocksource().as_deref(), clocksource("available").as_deref())
}

fn choose(steady: bool, current: Option<&str>, offered: Option<&str>) -> Verdict {
    let offers_counter = |names: &str| names.split_whitespace().any(|n| made_from_counter(Some(n)));
    let distrusted = current.is_some_and(|c| !made_from_counter(Some(c)) && !is_paravirtual(c))
        && !offered.is_some_and(offers_counter);
    let fallback_reason = if !steady {
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
    clocksource("current")
}

fn clocksource(which: &str) -> Option<String> {
    FsRoot::host().text(&format!("sys/devices/system/clocksource/clocksource0/{which}_clocksource"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counter_is_used_where_hardware_and_kernel_trust_it() {
        for (current, offered) in [
            (Some("tsc"), Some("tsc hpet acpi_pm")),
            (Some("tsc"), None),
            (Some("arch_sys_counter"), Some("arch_sys_counter")),
            (Some("kvm-clock"), Some("kvm-clock")),
            (Some("hpet"), Some("tsc hpet acpi_pm")),
            (None, None),
        ] {
            let verdict = choose(true, current, offered);
            assert_eq!((verdict.source, verdict.fallback_reason), (Counter::ID, None), "{current:?}");
        }
    }

    #[test]
    fn else_the_kernel_clock_is_used_with_the_reason() {
        for (steady, current, offered, reason) in [
            (false, Some("hpet"), Some("hpet acpi_pm"), "not invariant"),
            (false, Some("tsc"), None, "not invariant"),
            (true, Some("hpet"), Some("hpet acpi_pm"), "does not trust the counter and uses hpet"),
        ] {
            let verdict = choose(steady, current, offered);
            assert_eq!(verdict.source, SourceId::MonotonicRaw);
            let given = verdict.fallback_reason.unwrap();
            assert!(given.contains(reason), "{given}");
        }
    }
}
