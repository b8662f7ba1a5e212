//! What the memory limits above this process leave it.

use super::layout::place;
use super::{Controller, field};
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryLimit {
    pub limit_bytes: u64,
    /// What is left of it, counting page cache that can be dropped as free, bytes.
    pub room_bytes: u64,
}

/// The tightest memory limit among this process's own group and those above it, as far as they can be seen; `None` if
/// there is none.
pub fn memory_limit(tree: &FsRoot) -> Option<MemoryLimit> {
    tightest(tree, true)
}

/// As [`memory_limit`], without the own group: for a process in a group of our own, whose limit is meant to be reached.
pub fn memory_limit_above(tree: &FsRoot) -> Option<MemoryLimit> {
    tightest(tree, false)
}

fn tightest(tree: &FsRoot, mut counts: bool) -> Option<MemoryLimit> {
    let own = place(tree, Controller::Memory).ok()?;
    let mut directory = own.directory.as_str();
    let mut tightest: Option<MemoryLimit> = None;
    loop {
        if counts
            && let Some(limit) = limit_of(tree, directory)
            && tightest.is_none_or(|t| limit.room_bytes < t.room_bytes)
        {
            tightest = Some(limit);
        }
        if directory == own.mount {
            return tightest;
        }
        counts = true;
        directory = directory.rsplit_once('/')?.0;
    }
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
