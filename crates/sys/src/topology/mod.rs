//! The CPUs of a machine: which exist and are online, how they share cores, caches, dies, packages and memory nodes,
//! which of them this process may use, and how a user names some of them.
//!
//! Read from `/sys/devices/system/{cpu,node}` (Linux: Documentation/admin-guide/cputopology.rst and
//! Documentation/ABI/testing/sysfs-devices-system-cpu) below a root path, so that recorded machines can be read too.

mod cache;
mod cgroup;
mod cpu_set;
mod select;

use std::collections::BTreeSet;
use std::path::Path;

pub use cache::{Cache, CacheKind};
pub use cgroup::{Cgroup, CpuQuota};
pub use cpu_set::CpuSet;
pub use select::{Allowed, select};

use crate::Refused;
use crate::fs_root::FsRoot;

const CPU: &str = "sys/devices/system/cpu";
const NODE: &str = "sys/devices/system/node";

#[derive(Debug, Clone, PartialEq)]
pub struct Topology {
    pub online: CpuSet,
    /// CPUs that are plugged in, running or not.
    pub present: CpuSet,
    /// CPUs kept free of ordinary load balancing (`isolcpus=` or cpuset partitions).
    pub isolated: CpuSet,
    /// The online CPUs, ascending.
    pub cpus: Vec<Cpu>,
    /// The memory nodes, ascending; empty where the system names none.
    pub nodes: Vec<Node>,
    /// Every cache once, by level, kind and first CPU.
    pub caches: Vec<Cache>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Cpu {
    pub cpu: usize,
    /// Socket; `None` where the system does not say.
    pub package: Option<usize>,
    pub die: Option<usize>,
    /// Core, unique within die and package only: compare `siblings` to tell cores apart.
    pub core: Option<usize>,
    pub node: Option<usize>,
    /// The online CPUs of its core, itself among them.
    pub siblings: CpuSet,
    /// Highest frequency cpufreq states, Hz.
    pub max_hz: Option<f64>,
    /// Relative strength, 1024 being the strongest CPU of the machine (Arm, and hybrid x86-64).
    pub capacity: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    pub node: usize,
    /// Its CPUs; empty for a node of memory only.
    pub cpus: CpuSet,
}

impl Topology {
    /// The running system. Errors: neither sysfs nor procfs is there.
    pub fn host() -> Result<Self, Refused> {
        Self::read(Path::new("/"))
    }

    /// The system below `root`. What is missing (containers hide parts) is taken as unknown: a CPU without topology
    /// files is a core of its own. Errors: no CPU can be found.
    pub fn read(root: &Path) -> Result<Self, Refused> {
        let tree = FsRoot::at(root);
        let list = |name: &str| tree.text(&format!("{CPU}/{name}")).and_then(|t| t.parse::<CpuSet>().ok());
        let online = list("online").filter(|s| !s.is_empty()).unwrap_or_else(|| named_cpus(&tree));
        if online.is_empty() {
            let lacks = "neither sys/devices/system/cpu nor proc/cpuinfo can be read";
            return Err(Refused(format!("no CPU found below {}: {lacks}", root.display())));
        }
        let present = list("present").unwrap_or_default().union(&online);
        let nodes = read_nodes(&tree);
        Ok(Self {
            isolated: list("isolated").unwrap_or_default(),
            cpus: online.iter().map(|cpu| read_cpu(&tree, cpu, &online, &nodes)).collect(),
            caches: cache::read_caches(&tree, &online),
            online,
            present,
            nodes,
        })
    }

    /// CPUs that are plugged in but switched off.
    pub fn offline(&self) -> CpuSet {
        self.present.difference(&self.online)
    }

    pub fn cpu(&self, cpu: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|c| c.cpu == cpu)
    }

    /// The cores as sets of their online CPUs, by lowest CPU.
    pub fn cores(&self) -> Vec<CpuSet> {
        let cores: BTreeSet<&CpuSet> = self.cpus.iter().map(|c| &c.siblings).collect();
        cores.into_iter().cloned().collect()
    }

    /// Number of packages (sockets); at least 1.
    pub fn packages(&self) -> usize {
        self.cpus.iter().map(|c| c.package).collect::<BTreeSet<_>>().len()
    }

    /// The data and unified caches that serve `cpu`, nearest first, one of a level.
    pub fn data_caches(&self, cpu: usize) -> Vec<&Cache> {
        let data = |c: &&Cache| c.kind != CacheKind::Instruction && c.cpus.contains(cpu);
        let mut caches: Vec<&Cache> = self.caches.iter().filter(data).collect();
        caches.sort_by_key(|c| c.level);
        caches.dedup_by_key(|c| c.level);
        caches
    }

    /// The data or unified cache of `level` that serves `cpu`.
    pub fn cache(&self, cpu: usize, level: u32) -> Option<&Cache> {
        self.data_caches(cpu).into_iter().find(|c| c.level == level)
    }
}

/// The CPUs that have a directory, or else those /proc/cpuinfo numbers.
fn named_cpus(tree: &FsRoot) -> CpuSet {
    let directories: CpuSet = tree.numbered(CPU, "cpu").into_iter().collect();
    if !directories.is_empty() {
        return directories;
    }
    let cpuinfo = tree.text("proc/cpuinfo").unwrap_or_default();
    let number = |line: &str| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == "processor").then(|| value.trim().parse().ok())?
    };
    cpuinfo.lines().filter_map(number).collect()
}

fn read_cpu(tree: &FsRoot, cpu: usize, online: &CpuSet, nodes: &[Node]) -> Cpu {
    let base = format!("{CPU}/cpu{cpu}");
    // -1 stands for "unknown" in these files, and does not parse.
    let id = |name: &str| tree.number::<usize>(&format!("{base}/topology/{name}"));
    let list = |name: &str| {
        tree.text(&format!("{base}/topology/{name}"))
            .and_then(|t| t.parse::<CpuSet>().ok())
            .map(|s| s.intersection(online))
            .filter(|s| s.contains(cpu))
    };
    Cpu {
        cpu,
        package: id("physical_package_id"),
        die: id("die_id"),
        core: id("core_id"),
        node: nodes.iter().find(|n| n.cpus.contains(cpu)).map(|n| n.node),
        siblings: list("core_cpus_list")
            .or_else(|| list("thread_siblings_list"))
            .unwrap_or_else(|| CpuSet::single(cpu)),
        max_hz: tree.number::<f64>(&format!("{base}/cpufreq/cpuinfo_max_freq")).map(|khz| khz * 1e3),
        capacity: tree.number(&format!("{base}/cpu_capacity")),
    }
}

fn read_nodes(tree: &FsRoot) -> Vec<Node> {
    let node = |node: usize| {
        let list = tree.text(&format!("{NODE}/node{node}/cpulist"));
        Node { node, cpus: list.and_then(|t| t.parse().ok()).unwrap_or_default() }
    };
    tree.numbered(NODE, "node").into_iter().map(node).collect()
}

#[cfg(test)]
mod tests;
