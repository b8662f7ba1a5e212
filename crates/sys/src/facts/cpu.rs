//! Model, instruction sets that matter to measurements, and the shape of the machine.

use std::collections::BTreeSet;

use machmeter_data::facts::{Fact, FactValue, Facts};

use super::{absent, field, flag, in_unit, known_or, list_or, unread};
use crate::fs_root::FsRoot;
use crate::topology::{Cache, CacheKind, CpuSet, Topology};

/// Flags worth keeping of some hundred: clock, vectors, memory, virtualization.
const FLAGS: &str = "\
    constant_tsc nonstop_tsc tsc_known_freq tsc_reliable tsc_adjust tsc_scale rdtscp art arat hypervisor \
    aperfmperf hwp ht sse4_2 avx avx2 fma avx512f avx512bw avx512vl avx512_bf16 avx512_vnni avx_vnni \
    amx_tile aes sha_ni clflushopt clwb clzero movdiri movdir64b waitpkg umip user_shstk pdpe1gb rtm \
    fsrm erms la57 asimd sve sve2 atomics lrcpc ecv wfxt bti paca sme mte";

const CPUINFO: &str = "proc/cpuinfo";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    model(facts, tree);
    facts.set("cpu.smt", flag(tree, "sys/devices/system/cpu/smt/active"));
    match Topology::read(tree.root()) {
        Ok(topology) => shape(facts, &topology),
        Err(e) => {
            for key in ["count", "online", "present", "packages", "cores", "caches", "topology"] {
                let fact = absent("/sys/devices/system/cpu", e.to_string());
                facts.set(format!("cpu.{key}"), fact);
            }
        }
    }
}

/// What the first block of /proc/cpuinfo says; only its start is read, because the kernel asks every CPU for its
/// frequency while it writes the rest.
fn model(facts: &mut Facts, tree: &FsRoot) {
    let source = format!("/{CPUINFO}");
    let cpuinfo = match tree.read_start(CPUINFO, 8192) {
        Ok(text) => text,
        Err(e) => {
            for key in ["vendor", "model", "family", "model_number", "stepping", "microcode", "flags"] {
                facts.set(format!("cpu.{key}"), unread(&e, &source));
            }
            return;
        }
    };
    let arm = field(&cpuinfo, "CPU implementer").is_some();
    let mut set = |key: &str, value: Option<FactValue>, line: &str| {
        facts.set(format!("cpu.{key}"), known_or(value, &source, format!("no `{line}` line")));
    };
    for (key, names) in [
        ("vendor", ["vendor_id", "CPU implementer"]),
        ("family", ["cpu family", "CPU architecture"]),
        ("model_number", ["model", "CPU part"]),
        ("stepping", ["stepping", "CPU revision"]),
        ("microcode", ["microcode", "microcode"]),
    ] {
        let name = names[usize::from(arm)];
        let value = field(&cpuinfo, name).filter(|v| !v.is_empty() && *v != "unknown");
        set(key, value.map(FactValue::from), name);
    }
    let name = field(&cpuinfo, "model name").map(str::to_owned).or_else(|| arm_name(&cpuinfo));
    set("model", name.map(FactValue::from), "model name");
    let flags = field(&cpuinfo, "flags").or_else(|| field(&cpuinfo, "Features"));
    let kept = |all: &str| -> Vec<String> {
        let is_kept = |flag: &&str| FLAGS.split(' ').any(|kept| kept == *flag);
        all.split_whitespace().filter(is_kept).map(str::to_owned).collect()
    };
    set("flags", flags.map(|all| kept(all).into()), "flags");
}

/// Arm kernels give no name; the codes of the first CPU stand for it. Machines with unlike cores show all codes.
fn arm_name(cpuinfo: &str) -> Option<String> {
    let implementer = field(cpuinfo, "CPU implementer")?;
    let parts: BTreeSet<&str> = cpuinfo.lines().filter_map(|line| field(line, "CPU part")).collect();
    let parts: Vec<&str> = parts.into_iter().collect();
    Some(format!("Arm implementer {implementer} part {}", parts.join("+")))
}

fn shape(facts: &mut Facts, topology: &Topology) {
    const SOURCE: &str = "/sys/devices/system/cpu";
    let mut known = |key: &str, fact: Fact| facts.set(format!("cpu.{key}"), fact);
    let count = |n: usize| in_unit(Fact::known(n, SOURCE), "1");
    let list = |cpus: &CpuSet| Fact::known(cpus.to_string(), SOURCE);
    known("count", count(topology.online.len()));
    known("online", list(&topology.online));
    known("present", list(&topology.present));
    known("offline", list(&topology.offline()));
    known("packages", count(topology.packages()));
    known("cores", count(topology.cores().len()));
    let cores: Vec<FactValue> = topology.cores().iter().map(|core| describe_core(topology, core)).collect();
    known("topology", Fact::known(cores, SOURCE));
    let caches = describe_caches(&topology.caches);
    known("caches", list_or(caches, SOURCE, "the system describes no caches"));
    let strong: Vec<u32> = topology.cpus.iter().filter_map(|c| c.capacity).collect();
    let differ = strong.first().map(|first| strong.iter().any(|s| s != first));
    let source = "/sys/devices/system/cpu/cpu*/cpu_capacity";
    known("hybrid", known_or(differ, source, "the system does not compare its cores"));
}

/// A core: its `cpus` as a CPU list, and the numbers of what holds it. `cache` is the last one before memory, numbered over all.
fn describe_core(topology: &Topology, cpus: &CpuSet) -> FactValue {
    let list = ("cpus", FactValue::from(cpus.to_string()));
    let Some(cpu) = cpus.first().and_then(|c| topology.cpu(c)) else { return FactValue::map([list]) };
    let last = topology.caches.iter().map(|c| c.level).max();
    let mut shared = topology.caches.iter().filter(|c| Some(c.level) == last);
    let cache = shared.position(|c| !c.cpus.intersection(cpus).is_empty());
    let ids = [
        ("package", cpu.package),
        ("die", cpu.die),
        ("core", cpu.core),
        ("node", cpu.node),
        ("cache", cache),
    ];
    let known = |(key, id): (&'static str, Option<usize>)| Some((key, id?.into()));
    FactValue::map(ids.into_iter().filter_map(known).chain([list]))
}

/// `8 x L1 data 49152 B, line 64 B, 12 ways, 2 CPUs each`, one text per sort of cache.
fn describe_caches(caches: &[Cache]) -> Vec<String> {
    let sort = |c: &Cache| {
        let kind = match c.kind {
            CacheKind::Data => " data",
            CacheKind::Instruction => " instruction",
            CacheKind::Unified => "",
        };
        let size = c.size_bytes.map_or_else(|| " size unknown".to_owned(), |n| format!(" {n} B"));
        let line = c.line_bytes.map_or_else(String::new, |n| format!(", line {n} B"));
        let ways = c.ways.filter(|w| *w > 0).map_or_else(String::new, |n| format!(", {n} ways"));
        format!("L{}{kind}{size}{line}{ways}, {} CPUs each", c.level, c.cpus.len())
    };
    let mut sorts: Vec<(String, usize)> = Vec::new();
    for name in caches.iter().map(sort) {
        match sorts.iter_mut().find(|(n, _)| *n == name) {
            Some((_, count)) => *count += 1,
            None => sorts.push((name, 1)),
        }
    }
    sorts.into_iter().map(|(name, count)| format!("{count} x {name}")).collect()
}
