//! The limits of this process's control groups.

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};

use super::{from_file, in_unit};
use crate::cgroup::groups_above;
use crate::fs_root::FsRoot;
use crate::topology::Cgroup;

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let cgroup = Cgroup::read(tree);
    let file = |source: &Option<String>| format!("/{}", source.as_deref().unwrap_or("proc/self/cgroup"));
    let limit = |value: Option<FactValue>, source: String| match value {
        Some(value) => Fact::known(value, source),
        None if cgroup.known => Fact::known("unlimited", source),
        None => Fact::missing(FactState::Absent, source, "the process's control groups are not shown"),
    };
    let cpuset = cgroup.cpuset.as_ref().map(|cpus| cpus.to_string().into());
    facts.set("cgroup.cpuset", limit(cpuset, file(&cgroup.cpuset_source)));
    let source = file(&cgroup.quota_source);
    let quota = match cgroup.quota {
        Some(quota) => {
            let period = Fact::known(quota.period_ns, source.clone()).with_unit("ns");
            facts.set("cgroup.cpu_quota_period", period);
            limit(Some(quota.cpus().into()), source).with_unit("1")
        }
        None => limit(None, source),
    };
    facts.set("cgroup.cpu_quota", quota);
    facts.set("cgroup.memory_max", memory_max(tree));
}

/// Version 1 writes "no limit" as the largest multiple of the page size; nobody has this much memory.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The memory limit of this process's own group, or of the nearest above it that shows one.
fn memory_max(tree: &FsRoot) -> Fact {
    let names = ["memory.limit_in_bytes", "memory.max"];
    let mut files = groups_above(tree, "memory").into_iter().flat_map(|g| names.map(|n| format!("{g}/{n}")));
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
