//! Memory: how much, how it is paged, how it is split into nodes.

use machmeter_data::facts::{Fact, Facts};

use super::{chosen, field, in_unit, known_or, list_or, unread};
use crate::fs_root::FsRoot;

const MEMINFO: &str = "proc/meminfo";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let meminfo = tree.read(MEMINFO);
    for (key, name, unit) in [
        ("total", "MemTotal", "By"),
        ("available", "MemAvailable", "By"),
        ("swap_total", "SwapTotal", "By"),
        ("swap_free", "SwapFree", "By"),
        ("huge_pages_total", "HugePages_Total", "1"),
        ("huge_pages_free", "HugePages_Free", "1"),
        ("huge_page_size", "Hugepagesize", "By"),
    ] {
        let source = format!("/{MEMINFO} {name}");
        let fact = match &meminfo {
            Err(e) => unread(e, &source),
            Ok(text) => known_or(amount(text, name), &source, "no such line"),
        };
        facts.set(format!("memory.{key}"), in_unit(fact, unit));
    }
    facts.set("memory.thp", chosen(tree, "sys/kernel/mm/transparent_hugepage/enabled"));
    facts.set("memory.thp_defrag", chosen(tree, "sys/kernel/mm/transparent_hugepage/defrag"));
    facts.set("memory.nodes", nodes(tree));
}

/// A line's number; the kernel's `kB` are KiB.
pub(crate) fn amount(meminfo: &str, name: &str) -> Option<u64> {
    let value = field(meminfo, name)?;
    match value.strip_suffix("kB") {
        Some(kib) => kib.trim().parse::<u64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}

/// CPUs of each memory node: `node 0: CPU 0-7`.
fn nodes(tree: &FsRoot) -> Fact {
    const NODE: &str = "sys/devices/system/node";
    let describe = |n: usize| {
        let cpus = tree.text(&format!("{NODE}/node{n}/cpulist")).unwrap_or_default();
        if cpus.is_empty() { format!("node {n}: memory only") } else { format!("node {n}: CPU {cpus}") }
    };
    let nodes = tree.numbered(NODE, "node").into_iter().map(describe).collect();
    list_or(nodes, &format!("/{NODE}"), "the system names no memory nodes")
}
