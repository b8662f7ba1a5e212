//! Which CPU each thread of a run gets, and under which policy.

use machmeter_sys::sched::Policy;
use machmeter_sys::topology::CpuSet;

/// What the user asked for with `--prio`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Priority {
    /// A real-time policy where it is permitted and leaves a CPU free, else [`Policy::ordinary`].
    Auto,
    Asked(Policy),
}

/// Parses `auto`, or a policy as [`Policy`] writes it (`other`, `fifo:45`, `deadline:1ms/10ms/10ms`).
pub fn parse_priority(text: &str) -> Result<Priority, String> {
    if text == "auto" {
        return Ok(Priority::Auto);
    }
    text.parse::<Policy>().map(Priority::Asked).map_err(|e| e.to_string())
}

/// The plan of a run in which one thread measures on each CPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    pub measured: CpuSet,
    /// Allowed CPUs without one; the main thread stays there when there are any.
    pub housekeeping: CpuSet,
    pub policy: Policy,
    /// Why this policy.
    pub why: String,
}

/// Real-time priority that `auto` takes: above ordinary real-time daemons' default of 1, below interrupt threads (50).
pub const AUTO_FIFO_PRIORITY: u8 = 45;

/// `fifo_permitted`: whether `SCHED_FIFO` may be used, or why not. `auto` never takes the last free CPU.
pub fn plan(
    measured: &CpuSet,
    allowed: &CpuSet,
    asked: &Priority,
    fifo_permitted: &Result<(), String>,
) -> Placement {
    let housekeeping: CpuSet = allowed.iter().filter(|c| !measured.contains(*c)).collect();
    let (policy, why) = match asked {
        Priority::Asked(p) => (*p, "asked for".to_owned()),
        Priority::Auto if housekeeping.is_empty() => (
            Policy::ordinary(),
            "every allowed CPU is measured: a real-time policy would leave no CPU for other programs"
                .to_owned(),
        ),
        Priority::Auto => match fifo_permitted {
            Ok(()) => (Policy::Fifo(AUTO_FIFO_PRIORITY), "permitted, and a CPU stays free".to_owned()),
            Err(reason) => (Policy::ordinary(), reason.clone()),
        },
    };
    Placement { measured: measured.clone(), housekeeping, policy, why }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(list: &str) -> CpuSet {
        list.parse().unwrap()
    }

    #[test]
    fn auto_takes_fifo_only_with_a_free_cpu_and_the_right() {
        let p = plan(&set("0-1"), &set("0-1"), &Priority::Auto, &Ok(()));
        assert_eq!(p.policy, Policy::ordinary());
        let p = plan(&set("1"), &set("0-1"), &Priority::Auto, &Ok(()));
        assert_eq!(p.policy, Policy::Fifo(AUTO_FIFO_PRIORITY));
        assert_eq!(p.housekeeping, set("0"));
        let p = plan(&set("1"), &set("0-1"), &Priority::Auto, &Err("no CAP_SYS_NICE".to_owned()));
        assert_eq!((p.policy, p.why.as_str()), (Policy::ordinary(), "no CAP_SYS_NICE"));
    }

    #[test]
    fn what_was_asked_for_is_taken() {
        let asked = parse_priority("fifo:10").unwrap();
        assert_eq!(plan(&set("0-1"), &set("0-1"), &asked, &Ok(())).policy, Policy::Fifo(10));
        assert!(parse_priority("urgent").is_err());
    }
}
