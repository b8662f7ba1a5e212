//! Which CPUs this process may use, who forbids the others, and how a user names some.

use super::{Cgroup, CpuSet, Topology};
use crate::fs_root::FsRoot;
use crate::{Refused, affinity};

/// The limits on where this process may run, each apart, so that a refusal can name the one that applies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    pub affinity: CpuSet,
    /// The cgroup's cpuset, if one applies.
    pub cgroup: Option<CpuSet>,
    pub online: CpuSet,
    /// CPUs isolated at boot. The kernel leaves them out of every process's mask, yet a process may go there: they
    /// are usable when named.
    pub isolated: CpuSet,
}

impl Allowed {
    pub fn new(affinity: CpuSet, cgroup: Option<CpuSet>, topology: &Topology) -> Self {
        Self { affinity, cgroup, online: topology.online.clone(), isolated: topology.isolated.clone() }
    }

    /// The limits on the calling thread.
    pub fn host(topology: &Topology) -> Result<Self, Refused> {
        let cgroup = Cgroup::read(&FsRoot::host()).cpuset.map(|(cpus, _)| cpus);
        Ok(Self::new(affinity::mask()?, cgroup, topology))
    }

    /// The CPUs to use unless some are named: affinity mask, cgroup and online together.
    pub fn cpus(&self) -> CpuSet {
        self.within_cgroup(&self.affinity)
    }

    /// The CPUs that may be named: also the isolated ones outside the mask.
    pub fn nameable(&self) -> CpuSet {
        self.within_cgroup(&self.affinity.union(&self.isolated))
    }

    fn within_cgroup(&self, cpus: &CpuSet) -> CpuSet {
        let running = cpus.intersection(&self.online);
        self.cgroup.as_ref().map_or_else(|| running.clone(), |cgroup| running.intersection(cgroup))
    }
}

/// The CPUs that `spec` names: parts with commas between, taken together. A part is a CPU or range (`0-3`), which must
/// be usable in full; or a word, which stands for those of its CPUs that may be used:
/// `all` (affinity mask, cgroup, online), `isolated`, `one-per-core` (the lowest usable CPU of every core), `no-smt`
/// (CPUs that share their core with no other online CPU), `numa:N`. Errors name what is allowed.
pub fn select(spec: &str, allowed: &Allowed, topology: &Topology) -> Result<CpuSet, Refused> {
    spec.split(',').map(str::trim).try_fold(CpuSet::default(), |selected, part| {
        Ok(selected.union(&select_part(part, allowed, topology)?))
    })
}

fn select_part(part: &str, allowed: &Allowed, topology: &Topology) -> Result<CpuSet, Refused> {
    let usable = allowed.cpus();
    let (cpus, why) = match part {
        "all" => (usable, "affinity mask and cgroup leave none"),
        "isolated" => {
            let why = if topology.isolated.is_empty() {
                "no CPU is isolated (kernel parameter isolcpus=)"
            } else {
                "the cgroup leaves no isolated CPU"
            };
            (topology.isolated.intersection(&allowed.nameable()), why)
        }
        "one-per-core" => {
            let lowest = |core: &CpuSet| core.intersection(&usable).first();
            (topology.cores().iter().filter_map(lowest).collect(), "affinity mask and cgroup leave none")
        }
        "no-smt" => {
            let alone = |cpu: &usize| topology.cpu(*cpu).is_none_or(|c| c.siblings.len() == 1);
            (
                usable.iter().filter(alone).collect(),
                "every CPU shares its core with another (one-per-core picks one of each)",
            )
        }
        _ => match part.strip_prefix("numa:") {
            Some(node) => {
                (node_cpus(node, topology)?.intersection(&usable), "no CPU of this node may be used")
            }
            None => return listed(part, allowed, topology),
        },
    };
    if cpus.is_empty() {
        let allowed = allowed.nameable();
        return Err(Refused(format!("`{part}` selects no CPU: {why}; allowed are {allowed}")));
    }
    Ok(cpus)
}

fn node_cpus(node: &str, topology: &Topology) -> Result<CpuSet, Refused> {
    let found = node.parse().ok().and_then(|number: usize| topology.nodes.iter().find(|n| n.node == number));
    found.map(|n| n.cpus.clone()).ok_or_else(|| {
        let nodes: CpuSet = topology.nodes.iter().map(|n| n.node).collect();
        let present = if nodes.is_empty() { "no NUMA nodes".to_owned() } else { format!("node {nodes}") };
        Refused(format!("NUMA node {node} does not exist: this machine has {present}"))
    })
}

fn listed(part: &str, allowed: &Allowed, topology: &Topology) -> Result<CpuSet, Refused> {
    if !part.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(Refused(format!(
            "`{part}` is not a CPU selection: use a list like 0-3,8, or all, isolated, one-per-core, no-smt, numa:N"
        )));
    }
    let cpus: CpuSet = part.parse()?;
    let nameable = allowed.nameable();
    match cpus.difference(&nameable).first() {
        None => Ok(cpus),
        Some(cpu) => Err(Refused(refusal(cpu, &nameable, allowed, topology))),
    }
}

/// The first limit, from hardware outward, that keeps `cpu` from being used.
fn refusal(cpu: usize, nameable: &CpuSet, allowed: &Allowed, topology: &Topology) -> String {
    if !topology.present.contains(cpu) {
        let present = &topology.present;
        return format!("CPU {cpu} does not exist: this machine has CPU {present}; allowed are {nameable}");
    }
    if !allowed.online.contains(cpu) {
        let file = format!("/sys/devices/system/cpu/cpu{cpu}/online");
        return format!("CPU {cpu} is offline: allowed are {nameable}; to switch it on: echo 1 > {file}");
    }
    match &allowed.cgroup {
        Some(cpuset) if !cpuset.contains(cpu) => format!(
            "CPU {cpu} is outside the cgroup's cpuset {cpuset}: allowed are {nameable}; start in another cgroup or container"
        ),
        _ => format!(
            "CPU {cpu} is outside this process's affinity mask {}: allowed are {nameable}; widen the mask with taskset",
            allowed.affinity
        ),
    }
}
