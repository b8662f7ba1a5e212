//! Memory: how much, how it is paged, how it is split into nodes.

use machmeter_data::facts::{Fact, FactState, Facts};

use super::{chosen, field, in_unit, unread};
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
            Ok(text) => amount(text, name).map_or_else(
                || Fact::missing(FactState::Absent, &source, "no such line"),
                |n| Fact::known(n, &source),
            ),
        };
        facts.set(format!("memory.{key}"), in_unit(fact, unit));
    }
    facts.set("memory.page_size", page_size(tree));
    facts.set("memory.thp", chosen(tree, "sys/kernel/mm/transparent_hugepage/enabled"));
    facts.set("memory.thp_defrag", chosen(tree, "sys/kernel/mm/transparent_hugepage/defrag"));
    facts.set("memory.nodes", nodes(tree));
}

/// A line's number; the kernel's `kB` are KiB.
fn amount(meminfo: &str, name: &str) -> Option<u64> {
    let value = field(meminfo, name)?;
    match value.strip_suffix("kB") {
        Some(kib) => kib.trim().parse::<u64>().ok()?.checked_mul(1024),
        None => value.parse().ok(),
    }
}

fn page_size(tree: &FsRoot) -> Fact {
    if tree.is_host() {
        return Fact::known(rustix::param::page_size(), "getauxval(AT_PAGESZ)").with_unit("By");
    }
    Fact::missing(FactState::Unsupported, "getauxval(AT_PAGESZ)", "only the running system can tell")
}

/// CPUs of each memory node: `node 0: CPU 0-7`.
fn nodes(tree: &FsRoot) -> Fact {
    const NODE: &str = "sys/devices/system/node";
    let describe = |n: usize| {
        let cpus = tree.text(&format!("{NODE}/node{n}/cpulist")).unwrap_or_default();
        if cpus.is_empty() { format!("node {n}: memory only") } else { format!("node {n}: CPU {cpus}") }
    };
    let nodes: Vec<String> = tree.numbered(NODE, "node").into_iter().map(describe).collect();
    if nodes.is_empty() {
        return Fact::missing(FactState::Absent, format!("/{NODE}"), "the system names no memory nodes");
    }
    Fact::known(nodes, format!("/{NODE}"))
}
