//! What the memory limits above this process leave it.

use super::layout::place;
use super::{Controller, field};
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryLimit {
    pub(crate) limit_bytes: u64,
    /// What is left of it, counting page cache that can be dropped as free, bytes.
    pub(crate) room_bytes: u64,
}

/// The tightest memory limit that can be seen among the groups above, and the own one if `own_counts`.
pub(crate) fn memory_limit(tree: &FsRoot, own_counts: bool) -> Option<MemoryLimit> {
    let own = place(tree, Controller::Memory).ok()?;
    let groups = std::iter::successors(Some(own.directory.as_str()), |group| {
        Some(group.rsplit_once('/')?.0).filter(|above| above.len() >= own.mount.len())
    });
    groups.skip(usize::from(!own_counts)).filter_map(|g| limit_of(tree, g)).min_by_key(|l| l.room_bytes)
}

fn limit_of(tree: &FsRoot, directory: &str) -> Option<MemoryLimit> {
    // Version 1 writes "no limit" as a number near 2^63.
    const NO_LIMIT_BYTES: u64 = 1 << 62;
    let number = |file: &str| tree.number::<u64>(&format!("{directory}/{file}"));
    let limits = ["memory.max", "memory.high", "memory.limit_in_bytes"].map(number);
    let limit_bytes = limits.into_iter().flatten().filter(|bytes| *bytes < NO_LIMIT_BYTES).min()?;
    let used_bytes = number("memory.current").or_else(|| number("memory.usage_in_bytes"))?;
    let stat = tree.text(&format!("{directory}/memory.stat")).unwrap_or_default();
    let droppable = field(&stat, "total_inactive_file").or_else(|| field(&stat, "inactive_file"));
    let room_bytes = limit_bytes.saturating_sub(used_bytes.saturating_sub(droppable.unwrap_or(0)));
    Some(MemoryLimit { limit_bytes, room_bytes })
}
