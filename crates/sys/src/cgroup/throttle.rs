//! Time for which quotas held a process back: `cpu.stat` of its groups (Linux Documentation/scheduler/sched-bwc.rst).

use super::{field, groups_above};
use crate::fs_root::FsRoot;

/// Sums over a process's groups with a quota of CPU time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Periods that have passed.
    pub periods: u64,
    /// Periods in which the quota was used up.
    pub throttled_periods: u64,
    /// Time without CPU because of it, summed over CPUs, ns.
    pub ns: u64,
}

impl Throttled {
    /// The sums for a process; `None` if no group of it has a quota, or none can be read.
    pub fn of(pid: i32) -> Option<Self> {
        Self::under(&FsRoot::host(), pid)
    }

    fn under(tree: &FsRoot, pid: i32) -> Option<Self> {
        let groups = groups_above(tree, &pid.to_string(), "cpu");
        let stat = |group: &String| Self::parse(&tree.text(&format!("{group}/cpu.stat"))?);
        groups.iter().filter_map(stat).reduce(|a, b| Self {
            periods: a.periods + b.periods,
            throttled_periods: a.throttled_periods + b.throttled_periods,
            ns: a.ns + b.ns,
        })
    }

    fn parse(stat: &str) -> Option<Self> {
        let ns =
            field(stat, "throttled_usec").map(|us| us * 1000).or_else(|| field(stat, "throttled_time"))?;
        let periods = field(stat, "nr_periods").filter(|n| *n > 0)?;
        Some(Self { periods, throttled_periods: field(stat, "nr_throttled")?, ns })
    }

    /// What was added since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            periods: self.periods.saturating_sub(earlier.periods),
            throttled_periods: self.throttled_periods.saturating_sub(earlier.throttled_periods),
            ns: self.ns.saturating_sub(earlier.ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_read_and_a_group_without_quota_is_none() {
        let want = Throttled { periods: 40, throttled_periods: 38, ns: 1_900_000_000 };
        let two = "usage_usec 9\nnr_periods 40\nnr_throttled 38\nthrottled_usec 1900000\n";
        let one = "nr_periods 40\nnr_throttled 38\nthrottled_time 1900000000\n";
        assert_eq!([two, one].map(Throttled::parse), [Some(want); 2]);
        assert_eq!(Throttled::parse("nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"), None);
        assert_eq!(Throttled::parse("usage_usec 9\n"), None);
        assert_eq!(want.since(&want), Throttled::default());
    }
}
