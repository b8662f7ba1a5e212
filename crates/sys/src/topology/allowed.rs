//! Which CPUs this process may use, and who forbids the others.

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
        Ok(Self::new(affinity::mask()?, Cgroup::read(&FsRoot::host()).cpuset, topology))
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
