//! What the control groups of this process leave it: CPUs and CPU time. Version 1, version 2 and both at once (Linux:
//! Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/cpusets.rst, scheduler/sched-bwc.rst).

use super::CpuSet;
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
    /// The CPUs the cpuset controller leaves; `None` if no cpuset applies or shows itself.
    pub cpuset: Option<CpuSet>,
    /// The file `cpuset` was read from.
    pub cpuset_source: Option<String>,
    /// The tightest CPU time limit on the way to the root; `None` if there is none.
    pub quota: Option<CpuQuota>,
    /// The file `quota` was read from.
    pub quota_source: Option<String>,
    /// Whether `/proc/self/cgroup` could be read: if not, nothing above says there is no limit.
    pub known: bool,
}

const MOUNT: &str = "sys/fs/cgroup";

impl Cgroup {
    /// Reads the limits of the process that `proc/self` of this tree stands for. Control groups are looked for below
    /// `/sys/fs/cgroup`, where every distribution mounts them.
    pub fn read(tree: &FsRoot) -> Self {
        let Some(membership) = tree.text("proc/self/cgroup") else {
            return Self::default();
        };
        let cpuset = cpuset_directories(tree, &membership).into_iter().find_map(|(directory, names)| {
            names.iter().map(|name| format!("{directory}/{name}")).find_map(|file| {
                let cpus: CpuSet = tree.text(&file)?.parse().ok()?;
                // An empty list means that the group takes over what its parent has.
                (!cpus.is_empty()).then_some((cpus, file))
            })
        });
        let quota =
            quota_files(tree, &membership).into_iter().min_by(|(a, _), (b, _)| a.cpus().total_cmp(&b.cpus()));
        let (cpuset, cpuset_source) = cpuset.unzip();
        let (quota, quota_source) = quota.unzip();
        Self { cpuset, cpuset_source, quota, quota_source, known: true }
    }
}

/// Directories that may hold the effective cpuset, nearest first, with the file names to try.
fn cpuset_directories(tree: &FsRoot, membership: &str) -> Vec<(String, &'static [&'static str])> {
    const V1: &[&str] = &["cpuset.effective_cpus", "cpuset.cpus"];
    const V2: &[&str] = &["cpuset.cpus.effective"];
    let v1 = group_v1(membership, "cpuset").map(|path| upward(&format!("{MOUNT}/cpuset"), path));
    let v2 = group_v2(membership).map(|path| upward(mount_v2(tree), path));
    let with = |names| move |directory| (directory, names);
    v1.into_iter().flatten().map(with(V1)).chain(v2.into_iter().flatten().map(with(V2))).collect()
}

/// All CPU time limits from this process's group up to the root.
fn quota_files(tree: &FsRoot, membership: &str) -> Vec<(CpuQuota, String)> {
    let v2 = group_v2(membership).map(|path| upward(mount_v2(tree), path)).into_iter().flatten();
    let v2 = v2.filter_map(|directory| {
        let file = format!("{directory}/cpu.max");
        let text = tree.text(&file)?;
        let (quota_us, period_us) = text.split_once(' ')?;
        Some((quota(quota_us, period_us)?, file))
    });
    let mounts = ["cpu", "cpu,cpuacct", "cpuacct,cpu"].map(|name| format!("{MOUNT}/{name}"));
    let mount = mounts.iter().find(|m| tree.exists(m));
    let v1 = mount.zip(group_v1(membership, "cpu")).map(|(mount, path)| upward(mount, path));
    let v1 = v1.into_iter().flatten().filter_map(|directory| {
        let file = format!("{directory}/cpu.cfs_quota_us");
        let period_us = tree.text(&format!("{directory}/cpu.cfs_period_us"))?;
        Some((quota(&tree.text(&file)?, &period_us)?, file))
    });
    v2.chain(v1).collect()
}

/// A quota of two numbers in us; `max` and -1 stand for none.
fn quota(quota_us: &str, period_us: &str) -> Option<CpuQuota> {
    let ns = |us: &str| us.trim().parse::<u64>().ok()?.checked_mul(1000).filter(|ns| *ns > 0);
    Some(CpuQuota { quota_ns: ns(quota_us)?, period_ns: ns(period_us)? })
}

/// The path of a version 1 controller's group: line `4:cpu,cpuacct:/path`.
fn group_v1<'a>(membership: &'a str, controller: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|c| c == controller).then_some(path)
    })
}

/// The path of the version 2 group: line `0::/path`.
fn group_v2(membership: &str) -> Option<&str> {
    membership.lines().find_map(|line| line.strip_prefix("0::"))
}

fn mount_v2(tree: &FsRoot) -> &'static str {
    if tree.exists("sys/fs/cgroup/unified/cgroup.procs") { "sys/fs/cgroup/unified" } else { MOUNT }
}

/// The directories from a group up to the mount. In a container the path may be one of the host's, which is not
/// there; the mount itself then is the container's group.
fn upward(mount: &str, path: &str) -> Vec<String> {
    let mut directories = Vec::new();
    let mut path = path.trim_matches('/');
    while !path.is_empty() {
        if !path.split('/').any(|part| part == "..") {
            directories.push(format!("{mount}/{path}"));
        }
        path = path.rsplit_once('/').map_or("", |(parent, _)| parent);
    }
    directories.push(mount.to_owned());
    directories
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
        assert_eq!(cgroup.cpuset.unwrap().to_string(), "0-7");
        assert_eq!(cgroup.cpuset_source.unwrap(), "sys/fs/cgroup/a.slice/cpuset.cpus.effective");
        assert_eq!(cgroup.quota, Some(CpuQuota { quota_ns: 150_000_000, period_ns: 100_000_000 }));
        assert_eq!(cgroup.quota.unwrap().cpus(), 1.5);
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
        assert_eq!(cgroup.cpuset.unwrap().to_string(), "2-3");
        assert_eq!(cgroup.quota.unwrap().cpus(), 0.5);
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
