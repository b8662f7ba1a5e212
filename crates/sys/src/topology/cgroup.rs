//! What the control groups of this process leave it: CPUs and CPU time. Version 1, version 2 and both at once (Linux:
//! Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst).

use super::CpuSet;
use crate::cgroup::groups_above;
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// CPU time the group may use per period, over all its CPUs; ns.
    pub quota_ns: u64,
    pub period_ns: u64,
}

impl CpuQuota {
    /// The limit as a number of CPUs.
    pub fn cpus(self) -> f64 {
        self.quota_ns as f64 / self.period_ns as f64
    }
}

/// The limits of this process's control groups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cgroup {
    /// The CPUs the cpuset controller leaves, and the file that says so; `None` if no cpuset applies or shows itself.
    pub cpuset: Option<(CpuSet, String)>,
    /// The tightest CPU time limit on the way to the root, and its file; `None` if there is none.
    pub quota: Option<(CpuQuota, String)>,
    /// Whether `/proc/self/cgroup` could be read: if not, nothing above says there is no limit.
    pub known: bool,
}

impl Cgroup {
    /// Reads the limits of the process that `proc/self` of this tree stands for.
    pub fn read(tree: &FsRoot) -> Self {
        if tree.text("proc/self/cgroup").is_none() {
            return Self::default();
        }
        let cpuset = groups_above(tree, "self", "cpuset").iter().find_map(|group| {
            let names = ["cpuset.effective_cpus", "cpuset.cpus.effective", "cpuset.cpus"];
            names.map(|name| format!("{group}/{name}")).into_iter().find_map(|file| {
                let cpus: CpuSet = tree.text(&file)?.parse().ok()?;
                // An empty list means that the group takes over what its parent has.
                (!cpus.is_empty()).then_some((cpus, file))
            })
        });
        let quotas = groups_above(tree, "self", "cpu").into_iter().filter_map(|group| quota_of(tree, &group));
        let quota = quotas.min_by(|(a, _), (b, _)| a.cpus().total_cmp(&b.cpus()));
        Self { cpuset, quota, known: true }
    }
}

/// The limit of a group on CPU time, and the file it stands in.
fn quota_of(tree: &FsRoot, group: &str) -> Option<(CpuQuota, String)> {
    let file = |name: &str| format!("{group}/{name}");
    if let Some(text) = tree.text(&file("cpu.max")) {
        let (quota_us, period_us) = text.split_once(' ')?;
        return Some((quota(quota_us, period_us)?, file("cpu.max")));
    }
    let quota_us = tree.text(&file("cpu.cfs_quota_us"))?;
    Some((quota(&quota_us, &tree.text(&file("cpu.cfs_period_us"))?)?, file("cpu.cfs_quota_us")))
}

/// A quota of two numbers in us; `max` and -1 stand for none.
fn quota(quota_us: &str, period_us: &str) -> Option<CpuQuota> {
    let ns = |us: &str| us.trim().parse::<u64>().ok()?.checked_mul(1000).filter(|ns| *ns > 0);
    Some(CpuQuota { quota_ns: ns(quota_us)?, period_ns: ns(period_us)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    fn read(recording: &str) -> Cgroup {
        Cgroup::read(&tree_of(recording).1)
    }

    #[test]
    fn version_2_takes_the_nearest_cpuset_and_the_tightest_quota() {
        let cgroup = read(
            "proc/self/cgroup\t0::/a.slice/b.scope\n\
             sys/fs/cgroup/cpuset.cpus.effective\t0-15\n\
             sys/fs/cgroup/a.slice/cpuset.cpus.effective\t0-7\n\
             sys/fs/cgroup/a.slice/cpu.max\t150000 100000\n\
             sys/fs/cgroup/a.slice/b.scope/cpu.max\tmax 100000\n",
        );
        let (cpus, file) = cgroup.cpuset.unwrap();
        assert_eq!(
            (cpus.to_string(), &file[..]),
            ("0-7".to_owned(), "sys/fs/cgroup/a.slice/cpuset.cpus.effective")
        );
        let (quota, file) = cgroup.quota.unwrap();
        assert_eq!(quota, CpuQuota { quota_ns: 150_000_000, period_ns: 100_000_000 });
        assert_eq!((quota.cpus(), &file[..]), (1.5, "sys/fs/cgroup/a.slice/cpu.max"));
    }

    #[test]
    fn version_1_beside_version_2_and_a_path_of_another_namespace() {
        let cgroup = read(
            "proc/self/cgroup\t3:cpuset:/docker/0123\\n1:cpu,cpuacct:/docker/0123\\n0::/\n\
             sys/fs/cgroup/unified/cgroup.procs\t1\n\
             sys/fs/cgroup/cpuset/cpuset.cpus\t2-3\n\
             sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us\t50000\n\
             sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us\t100000\n",
        );
        assert_eq!(cgroup.cpuset.unwrap().0.to_string(), "2-3");
        assert_eq!(cgroup.quota.unwrap().0.cpus(), 0.5);
    }

    #[test]
    fn no_limit_is_told_from_not_known() {
        let free = read(
            "proc/self/cgroup\t1:cpu:/\\n0::/\n\
             sys/fs/cgroup/cpu/cpu.cfs_quota_us\t-1\n\
             sys/fs/cgroup/cpu/cpu.cfs_period_us\t100000\n",
        );
        assert!(free.known && free.quota.is_none() && free.cpuset.is_none());
        assert!(!read("proc/stat\tcpu 1\n").known);
    }
}
