//! Caches as sysfs describes them.

use machmeter_data::quantity::parse_bytes;

use super::{CPU, CpuSet};
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    Data,
    Instruction,
    Unified,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// Distance from the core, 1 being the nearest.
    pub level: u32,
    pub kind: CacheKind,
    /// Capacity, bytes; `None` where the system does not say.
    pub size_bytes: Option<u64>,
    pub line_bytes: Option<u64>,
    /// Ways of associativity; 0 is how the kernel writes "fully associative".
    pub ways: Option<u32>,
    pub cpus: CpuSet,
}

pub(super) fn read_caches(tree: &FsRoot, online: &CpuSet) -> Vec<Cache> {
    let mut caches: Vec<Cache> = online
        .iter()
        .flat_map(|cpu| {
            let directory = format!("{CPU}/cpu{cpu}/cache");
            tree.numbered(&directory, "index")
                .into_iter()
                .filter_map(move |i| read_cache(tree, &format!("{directory}/index{i}"), cpu, online))
        })
        .collect();
    caches.sort_by_key(|c| (c.level, c.kind, c.cpus.clone()));
    // Two caches of one level, kind and set of CPUs are one, listed by each of its CPUs.
    caches.dedup_by(|a, b| (a.level, a.kind, &a.cpus) == (b.level, b.kind, &b.cpus));
    caches
}

fn read_cache(tree: &FsRoot, directory: &str, cpu: usize, online: &CpuSet) -> Option<Cache> {
    let text = |name: &str| tree.text(&format!("{directory}/{name}"));
    let kind = match text("type")?.as_str() {
        "Data" => CacheKind::Data,
        "Instruction" => CacheKind::Instruction,
        "Unified" => CacheKind::Unified,
        _ => return None,
    };
    let shared = text("shared_cpu_list").and_then(|t| t.parse::<CpuSet>().ok()).unwrap_or_default();
    Some(Cache {
        level: text("level")?.parse().ok()?,
        kind,
        size_bytes: text("size").and_then(|t| parse_bytes(&t)),
        line_bytes: text("coherency_line_size").and_then(|t| t.parse().ok()),
        ways: text("ways_of_associativity").and_then(|t| t.parse().ok()),
        cpus: shared.union(&CpuSet::single(cpu)).intersection(online),
    })
}
