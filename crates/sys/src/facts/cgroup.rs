//! The limits of this process's control groups.

use machmeter_data::facts::{Fact, Facts};

use super::{from_file, in_unit, known_or};
use crate::cgroup::groups_above;
use crate::fs_root::FsRoot;
use crate::topology::Cgroup;

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let cgroup = Cgroup::read(tree);
    let no_limit = || {
        let why = "the process's control groups are not shown";
        known_or(cgroup.known.then_some("unlimited"), "/proc/self/cgroup", why)
    };
    let cpuset = cgroup.cpuset.map(|(cpus, file)| Fact::known(cpus.to_string(), format!("/{file}")));
    facts.set("cgroup.cpuset", cpuset.unwrap_or_else(no_limit));
    let quota = cgroup.quota.map(|(quota, file)| {
        let source = format!("/{file}");
        let period = Fact::known(quota.period_ns, source.clone()).with_unit("ns");
        facts.set("cgroup.cpu_quota_period", period);
        Fact::known(quota.cpus(), source).with_unit("1")
    });
    facts.set("cgroup.cpu_quota", quota.unwrap_or_else(no_limit));
    facts.set("cgroup.memory_max", memory_max(tree));
}

/// Version 1 writes "no limit" as the largest multiple of the page size; nobody has this much memory.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The memory limit of this process's own group, or of the nearest above it that shows one.
fn memory_max(tree: &FsRoot) -> Fact {
    let names = ["memory.limit_in_bytes", "memory.max"];
    let mut files =
        groups_above(tree, "self", "memory").into_iter().flat_map(|g| names.map(|n| format!("{g}/{n}")));
    let file = files.find(|file| tree.exists(file)).unwrap_or_else(|| "sys/fs/cgroup/memory.max".to_owned());
    let fact = from_file(tree, &file, |t| match t {
        "max" => Some(NO_LIMIT_BYTES),
        number => number.parse::<u64>().ok(),
    });
    match fact.number() {
        Some(n) if n >= NO_LIMIT_BYTES as f64 => Fact::known("unlimited", fact.source),
        _ => in_unit(fact, "By"),
    }
}
