//! How much memory is left, and who is ended when there is none.
//!
//! Sources: `proc(5)` (`/proc/meminfo`, `/proc/PID/oom_score_adj`), Linux Documentation/admin-guide/cgroup-v2.rst (memory).

use std::fs;
use std::io;

use rustix::process::{Resource, getrlimit};

use crate::cgroup::{Controller, field, place};
use crate::facts::memory::amount;
use crate::fs_root::FsRoot;

/// Requests from which on the limits of control groups are asked, bytes.
const LARGE_BYTES: usize = 2 << 20;

/// Memory of the machine, or of what this process may use of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLeft {
    pub total_bytes: u64,
    /// What can be had without swapping (`MemAvailable`: free memory and page cache that can be dropped), bytes.
    pub available_bytes: u64,
    /// Free swap space, bytes.
    pub swap_free_bytes: u64,
}

impl MemoryLeft {
    /// The machine's. Errors: one line: `/proc/meminfo` is not readable or not understood.
    pub fn of_machine(tree: &FsRoot) -> Result<Self, String> {
        let text = tree.read("proc/meminfo").map_err(|e| format!("/proc/meminfo: {e}"))?;
        let needed = |name: &str| amount(&text, name).ok_or_else(|| format!("/proc/meminfo has no {name}"));
        Ok(Self {
            total_bytes: needed("MemTotal")?,
            available_bytes: needed("MemAvailable")?,
            swap_free_bytes: amount(&text, "SwapFree").unwrap_or(0),
        })
    }

    /// What the machine, the control groups above this process and a limit of address space leave it. A container's limit
    /// counts, since beyond it the out-of-memory killer chooses in the container.
    pub fn of_this_process(tree: &FsRoot) -> Result<Self, String> {
        Self::within_limits(tree, true)
    }

    /// As [`MemoryLeft::of_this_process`], without the limit of this process's own group: for a process in a group of our
    /// own, which is meant to reach its limit.
    pub fn of_groups_above(tree: &FsRoot) -> Result<Self, String> {
        Self::within_limits(tree, false)
    }

    /// What a request is held against: from 2 MiB on what is left to this process, below what the machine has. A
    /// group counts droppable page cache as taken, so that little can always be had.
    pub fn for_request(tree: &FsRoot, bytes: usize) -> Result<Self, String> {
        if bytes < LARGE_BYTES { Self::of_machine(tree) } else { Self::of_this_process(tree) }
    }

    /// What the tightest limit leaves: of address space, of the groups above and, if `own_counts`, of the own one.
    fn within_limits(tree: &FsRoot, own_counts: bool) -> Result<Self, String> {
        let machine = Self::of_machine(tree)?;
        let own = place(tree, Controller::Memory).ok();
        let groups = std::iter::successors(own.as_ref().map(|o| o.directory.as_str()), |group| {
            let mount = &own.as_ref()?.mount;
            Some(group.rsplit_once('/')?.0).filter(|above| above.len() >= mount.len())
        });
        let of_groups = groups.skip(usize::from(!own_counts)).filter_map(|group| limit_of(tree, group));
        let tightest = of_groups.chain(address_space(tree)).min_by_key(|(_, room_bytes)| *room_bytes);
        Ok(tightest.map_or(machine, |(limit_bytes, room_bytes)| Self {
            total_bytes: machine.total_bytes.min(limit_bytes),
            available_bytes: machine.available_bytes.min(room_bytes),
            ..machine
        }))
    }
}

/// Half of the address space that a limit (`ulimit -v`) leaves: heap and stacks need the other half, or the process is ended.
fn address_space(tree: &FsRoot) -> Option<(u64, u64)> {
    let limit_bytes = getrlimit(Resource::As).current?;
    let taken_bytes = amount(&tree.text("proc/self/status")?, "VmSize")?;
    Some((limit_bytes, limit_bytes.saturating_sub(taken_bytes) / 2))
}

/// The limit of a group and what is left of it, counting page cache that can be dropped as free; bytes.
fn limit_of(tree: &FsRoot, directory: &str) -> Option<(u64, u64)> {
    // Version 1 writes "no limit" as a number near 2^63.
    const NO_LIMIT_BYTES: u64 = 1 << 62;
    let number = |file: &str| tree.number::<u64>(&format!("{directory}/{file}"));
    let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"].map(number);
    let limit_bytes = limits.into_iter().flatten().filter(|bytes| *bytes < NO_LIMIT_BYTES).min()?;
    let used_bytes = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = tree.text(&format!("{directory}/memory.stat")).unwrap_or_default();
    let droppable = field(&stat, "total_inactive_file").or_else(|| field(&stat, "inactive_file"));
    Some((limit_bytes, limit_bytes.saturating_sub(used_bytes.saturating_sub(droppable.unwrap_or(0)))))
}

/// Processes that the out-of-memory killer ended since the system was started, in all groups; `None` before Linux 4.13.
pub fn kills_of_machine(tree: &FsRoot) -> Option<u64> {
    field(&tree.text("proc/vmstat")?, "oom_kill")
}

/// The out-of-memory killer chooses this process and its children first. Taking it back needs a right.
pub fn volunteer() -> io::Result<()> {
    fs::write("/proc/self/oom_score_adj", "1000")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const MEMINFO: &str =
        "proc/meminfo\tMemTotal:  1000 kB\\nMemFree: 1 kB\\nMemAvailable:  600 kB\\nSwapFree: 5 kB\n";

    #[test]
    fn a_group_above_leaves_less_than_the_machine() {
        let group = "proc/self/cgroup\t0::/a/b\n\
             proc/self/mountinfo\t26 24 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n\
             sys/fs/cgroup/a/memory.max\t409600\nsys/fs/cgroup/a/memory.current\t307200\n\
             sys/fs/cgroup/a/memory.stat\tanon 1\\ninactive_file 51200\\nactive_file 7\n\
             sys/fs/cgroup/a/b/memory.max\tmax\nsys/fs/cgroup/a/b/memory.current\t1\n";
        let (directory, tree) = tree_of(&format!("{MEMINFO}{group}"));
        let machine = MemoryLeft::of_machine(&tree).unwrap();
        assert_eq!((machine.total_bytes, machine.available_bytes), (1_024_000, 614_400));
        let left = MemoryLeft::of_this_process(&tree).unwrap();
        assert_eq!((left.total_bytes, left.available_bytes), (409_600, 153_600));
        assert_eq!(left.swap_free_bytes, 5 * 1024);
        assert_eq!(MemoryLeft::of_groups_above(&tree).unwrap(), left);
        std::fs::write(directory.path().join("sys/fs/cgroup/a/b/memory.max"), "4096").unwrap();
        assert_eq!(MemoryLeft::of_this_process(&tree).unwrap().available_bytes, 4_095);
        assert_eq!(MemoryLeft::of_groups_above(&tree).unwrap(), left);
        let for_request = |bytes| MemoryLeft::for_request(&tree, bytes).unwrap().available_bytes;
        assert_eq!((for_request(LARGE_BYTES), for_request(LARGE_BYTES - 1)), (4_095, 614_400));
    }

    #[test]
    fn what_is_missing_is_named() {
        let (_keep, tree) = tree_of("proc/meminfo\tMemTotal: 5 kB\n");
        let e = MemoryLeft::of_machine(&tree).unwrap_err();
        assert!(e.contains("no MemAvailable"), "{e}");
    }

    #[test]
    fn an_out_of_memory_kill_stays_in_the_group_and_is_counted() {
        let tree = FsRoot::host();
        let Some(group) = crate::testing::group("memory=16M") else { return };
        let left = MemoryLeft::of_machine(&tree).unwrap();
        if left.swap_free_bytes > 0 {
            return println!("skipped: with swap the group would swap");
        }
        // Waits for a line, then takes 48 MiB within the group of 16 MiB.
        let script =
            "echo 1000 > /proc/self/oom_score_adj; read go; x=$(head -c 50331648 /dev/zero | tr '\\0' x)";
        let mut shell = Command::new("sh");
        let mut child =
            shell.args(["-c", script]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        group.add(child.id().cast_signed()).unwrap();
        let before = kills_of_machine(&tree);
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let status = child.wait().unwrap();
        let kills = group.oom_kills().unwrap();
        assert!(kills >= 1 && !status.success(), "{kills} kills, {status}");
        if let (Some(before), Some(after)) = (before, kills_of_machine(&tree)) {
            println!("{kills} kills in the group, {} on the machine meanwhile", after - before);
            assert!(after - before >= kills);
        }
    }
}
