//! Control groups of our own: a load or a task is put into a child of this process's group with limits that are read back,
//! and the group is removed afterwards. Versions 1 and 2, and both side by side.
//!
//! Sources: Linux Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/{memory,cpusets,pids}.rst, scheduler/sched-bwc.rst,
//! scheduler/sched-rt-group.rst.

mod group;
mod layout;
mod limits;
mod removal;
mod request;
mod throttle;

pub use group::{Group, Plan};
pub(crate) use layout::{group_of, groups_above, mount_of, place};
pub use request::Request;
pub use throttle::Throttled;

use std::fmt;
use std::path::Path;

use crate::Refused;
use crate::fs_root::FsRoot;

/// Removes the groups that processes of ours left when they were killed, beside where new ones are made.
pub(crate) fn sweep() {
    let tree = FsRoot::host();
    for controller in Controller::ALL {
        for parent in layout::parents(&tree, &[controller]).into_iter().flatten() {
            removal::sweep_directory(&tree.root().join(parent.directory));
        }
    }
}

pub(crate) fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controller {
    Cpu,
    Cpuset,
    Memory,
    Pids,
}

impl Controller {
    pub const ALL: [Self; 4] = [Self::Cpu, Self::Cpuset, Self::Memory, Self::Pids];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cpuset => "cpuset",
            Self::Memory => "memory",
            Self::Pids => "pids",
        }
    }
}

impl fmt::Display for Controller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn unusable(controller: Controller, cause: &str) -> Refused {
    Refused(format!("control group with the {controller} controller: {cause}"))
}

fn refused_to(group: &Path, what: &str, cause: impl fmt::Display) -> Refused {
    Refused(format!("control group {}: {what} refused: {cause}", group.display()))
}
