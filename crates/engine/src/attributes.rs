//! How the kernel shall treat a task or a load: policy, slice, utilization clamp, CPUs, control group.

use machmeter_sys::affinity;
use machmeter_sys::cgroup::Group;
use machmeter_sys::sched::{self, Extra, Policy};
use machmeter_sys::topology::CpuSet;
use serde::{Deserialize, Serialize};

/// Scheduling attributes of one side. What is not given is left as inherited.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Policy with its parameters, as [`Policy`] reads it.
    pub policy: Option<String>,
    /// Slice of the normal policy (EEVDF, Linux 6.12 and later), ns.
    pub slice_ns: Option<u64>,
    /// Utilization clamp, least and most, 0 to 1024.
    pub clamp: Option<(u16, u16)>,
    pub cpus: Option<String>,
    /// A control group with limits: `weight=50,max=40%,cpus=0-1,memory=256M,pids=200`. Joined by whole processes.
    pub cgroup: Option<String>,
}

impl Attributes {
    /// The policy; the normal one with the inherited nice value when none is given.
    pub fn policy(&self) -> Result<Policy, String> {
        self.policy.as_deref().map_or(Ok(Policy::ordinary()), |p| p.parse().map_err(|e| format!("{e}")))
    }

    pub fn cpus(&self) -> Result<Option<CpuSet>, String> {
        self.cpus.as_deref().map(|c| c.parse().map_err(|e| format!("CPUs '{c}': {e}"))).transpose()
    }

    /// Applies CPUs, policy, slice and clamp to the calling thread, whose children inherit them. Each is read back.
    pub fn apply(&self) -> Result<(), String> {
        if let Some(cpus) = self.cpus()? {
            affinity::set_mask(&cpus).map_err(|e| e.to_string())?;
        }
        let extra = Extra { slice_ns: self.slice_ns, clamp: self.clamp };
        if self.policy.is_some() || !extra.is_empty() {
            sched::apply_with(self.policy()?, &extra).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    /// Makes the control group that is asked for, to be joined by processes; removed when dropped.
    pub fn make_group(&self, name: &str) -> Result<Option<Group>, String> {
        let Some(text) = &self.cgroup else { return Ok(None) };
        let request = text.parse().map_err(|e| format!("control group '{text}': {e}"))?;
        Group::create(&request, name).map(Some).map_err(|e| e.to_string())
    }
}
