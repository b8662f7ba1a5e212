//! The limits of this process's control groups.

use machmeter_data::facts::{Fact, FactState, Facts};

use super::{from_file, in_unit};
use crate::fs_root::FsRoot;
use crate::topology::Cgroup;

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    let cgroup = Cgroup::read(tree);
    let none = |source: &Option<String>, why: &str| {
        let source = source.clone().unwrap_or_else(|| "proc/self/cgroup".to_owned());
        if cgroup.known {
            Fact::known(why, format!("/{source}"))
        } else {
            Fact::missing(
                FactState::Absent,
                format!("/{source}"),
                "the process's control groups are not shown",
            )
        }
    };
    let source = |file: &Option<String>| format!("/{}", file.as_deref().unwrap_or_default());
    let cpuset = match &cgroup.cpuset {
        Some(cpus) => Fact::known(cpus.to_string(), source(&cgroup.cpuset_source)),
        None => none(&cgroup.cpuset_source, "unlimited"),
    };
    facts.set("cgroup.cpuset", cpuset);
    let quota = match cgroup.quota {
        Some(quota) => Fact::known(quota.cpus(), source(&cgroup.quota_source)).with_unit("1"),
        None => none(&cgroup.quota_source, "unlimited"),
    };
    facts.set("cgroup.cpu_quota", quota);
    if let Some(quota) = cgroup.quota {
        let period = Fact::known(quota.period_ns, source(&cgroup.quota_source)).with_unit("ns");
        facts.set("cgroup.cpu_quota_period", period);
    }
    facts.set("cgroup.memory_max", memory_max(tree));
}

/// Version 1 writes "no limit" as the largest multiple of the page size; nobody has this much memory.
const NO_LIMIT_BYTES: u64 = 1 << 62;

/// The memory limit of this process's own group.
fn memory_max(tree: &FsRoot) -> Fact {
    let fact = from_file(tree, &memory_file(tree), |t| match t {
        "max" => Some(NO_LIMIT_BYTES),
        number => number.parse::<u64>().ok(),
    });
    match fact.number() {
        Some(n) if n >= NO_LIMIT_BYTES as f64 => Fact::known("unlimited", fact.source),
        _ => in_unit(fact, "By"),
    }
}

/// The file with the limit: version 1 where its memory controller is mounted, else version 2; the own group's, or the
/// mount's where a container hides the path to it.
fn memory_file(tree: &FsRoot) -> String {
    let membership = tree.text("proc/self/cgroup").unwrap_or_default();
    let path_after = |marker: &str| {
        let line = membership.lines().find_map(|l| l.split_once(marker).map(|(_, path)| path));
        line.unwrap_or_default().trim_matches('/').to_owned()
    };
    let (mount, name, path) = if membership.contains(":memory:") {
        ("sys/fs/cgroup/memory", "memory.limit_in_bytes", path_after(":memory:"))
    } else {
        ("sys/fs/cgroup", "memory.max", path_after("0::"))
    };
    let own = format!("{mount}/{path}/{name}");
    if !path.is_empty() && tree.exists(&own) { own } else { format!("{mount}/{name}") }
}
