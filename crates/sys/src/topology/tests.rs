//! The recorded and composed machines of `fixtures/sys/`, read and selected from.

use super::*;
use crate::fs_root::tests::recorded;

fn machine(name: &str) -> (Topology, Option<CpuSet>) {
    let (directory, tree) = recorded(name);
    (Topology::read(directory.path()).unwrap(), Cgroup::read(&tree).cpuset.map(|(cpus, _)| cpus))
}

fn set(list: &str) -> CpuSet {
    list.parse().unwrap()
}

fn selected(name: &str, mask: &str, spec: &str) -> Result<String, String> {
    let (topology, cgroup) = machine(name);
    let allowed = Allowed::new(set(mask), cgroup, &topology);
    select(spec, &allowed, &topology).map(|s| s.to_string()).map_err(|e| e.to_string())
}

#[test]
fn the_recorded_guest() {
    let (t, _) = machine("vm-2cpu");
    assert_eq!((t.online.to_string(), t.packages(), t.cores().len()), ("0-1".to_owned(), 1, 2));
    assert_eq!(t.nodes.len(), 1);
    assert_eq!(t.cpu(1).unwrap().node, Some(0));
    let l1 = t.cache(1, 1).unwrap();
    assert_eq!(
        (l1.size_bytes, l1.line_bytes, l1.cpus.to_string()),
        (Some(48 << 10), Some(64), "1".to_owned())
    );
    assert_eq!(t.cache(0, 2).unwrap().size_bytes, Some(1 << 20));
}

#[test]
fn two_sockets_with_threads_and_nodes() {
    let (t, _) = machine("xeon-2s-smt");
    assert_eq!((t.packages(), t.cores().len()), (2, 8));
    assert_eq!(t.cpu(13).unwrap().siblings.to_string(), "5,13");
    assert_eq!((t.cpu(13).unwrap().package, t.cpu(13).unwrap().node), (Some(1), Some(1)));
    assert_eq!(t.cpu(0).unwrap().max_hz, Some(4e9));
    // 8 cores with 3 caches of their own and one per socket.
    assert_eq!(t.caches.len(), 8 * 3 + 2);
    assert_eq!(t.cache(12, 3).unwrap().cpus.to_string(), "4-7,12-15");
}

#[test]
fn unequal_cores_and_unknown_ids() {
    let (t, _) = machine("arm-big-little");
    assert_eq!((t.cpu(0).unwrap().capacity, t.cpu(5).unwrap().capacity), (Some(446), Some(1024)));
    assert_eq!(t.cpu(0).unwrap().die, None, "-1 is unknown");
    assert!(t.nodes.is_empty());
    assert_eq!(t.cache(0, 2).unwrap().size_bytes, None, "size not stated");
    assert_eq!(t.cache(4, 1).unwrap().size_bytes, Some(65_536));
}

#[test]
fn offline_and_isolated_cpus() {
    let (t, cgroup) = machine("isolated-offline");
    assert_eq!((t.offline().to_string(), t.present.to_string()), ("5,7".to_owned(), "0-7".to_owned()));
    assert_eq!(t.isolated.to_string(), "2-3");
    assert_eq!(t.cpus.len(), 6);
    assert_eq!(cgroup.unwrap().to_string(), "0-3,6");
}

#[test]
fn a_container_that_hides_sysfs_still_has_cpus() {
    let (t, cgroup) = machine("container-masked");
    assert_eq!((t.online.to_string(), t.cores().len(), t.packages()), ("0-3".to_owned(), 4, 1));
    assert!(t.caches.is_empty() && cgroup.is_none());
    let empty = tempfile::tempdir().unwrap();
    assert!(Topology::read(empty.path()).unwrap_err().to_string().contains("no CPU found"));
}

#[test]
fn words_select_what_may_be_used() {
    for (name, mask, spec, cpus) in [
        ("xeon-2s-smt", "0-15", "all", "0-15"),
        ("xeon-2s-smt", "0-15", "one-per-core", "0-7"),
        ("xeon-2s-smt", "5,8-15", "one-per-core", "5,8-12,14-15"),
        ("xeon-2s-smt", "0-15", "numa:1", "4-7,12-15"),
        ("xeon-2s-smt", "0-4", "numa:1", "4"),
        ("xeon-2s-smt", "0-15", "numa:0,15", "0-3,8-11,15"),
        ("arm-big-little", "0-5", "no-smt", "0-5"),
        ("isolated-offline", "0-1,4,6", "all", "0-1,6"),
        ("isolated-offline", "0-1,4,6", "isolated", "2-3"),
        ("isolated-offline", "0-1,4,6", "1, 2", "1-2"),
        ("container-masked", "0-3", "0-2", "0-2"),
    ] {
        assert_eq!(selected(name, mask, spec).as_deref(), Ok(cpus), "{name} {mask} {spec}");
    }
}

#[test]
fn every_refusal_is_one_line_that_names_cpu_cause_and_what_is_allowed() {
    for (name, mask, spec, parts) in [
        (
            "isolated-offline",
            "0-1,4,6",
            "0,9",
            &["CPU 9 does not exist", "CPU 0-7", "allowed are 0-3,6"] as &[&str],
        ),
        ("isolated-offline", "0-1,4,6", "5-6", &["CPU 5 is offline", "allowed are 0-3,6", "cpu5/online"]),
        ("isolated-offline", "0-1,4,6", "4", &["CPU 4", "cgroup's cpuset 0-3,6", "allowed are 0-3,6"]),
        ("xeon-2s-smt", "0-3", "2-4", &["CPU 4", "affinity mask 0-3", "allowed are 0-3"]),
        ("xeon-2s-smt", "0-3", "numa:7", &["NUMA node 7 does not exist", "node 0-1"]),
        ("xeon-2s-smt", "0-3", "numa:1", &["`numa:1` selects no CPU", "allowed are 0-3"]),
        ("arm-big-little", "0-5", "numa:0", &["node 0", "no NUMA nodes"]),
        ("xeon-2s-smt", "0-15", "no-smt", &["`no-smt` selects no CPU", "one-per-core"]),
        ("xeon-2s-smt", "0-15", "isolated", &["`isolated` selects no CPU", "isolcpus="]),
        ("xeon-2s-smt", "0-15", "every", &["`every` is not a CPU selection", "one-per-core"]),
        ("xeon-2s-smt", "0-15", "", &["`` is not a CPU selection"]),
        ("xeon-2s-smt", "0-15", "3-1", &["runs backward"]),
        ("xeon-2s-smt", "0-15", "1-x", &["`1-x`"]),
    ] {
        let message = selected(name, mask, spec).unwrap_err();
        assert!(parts.iter().all(|p| message.contains(p)) && !message.contains('\n'), "{spec}: {message}");
    }
}

#[test]
fn this_machine_has_cpus_and_this_process_may_use_some() {
    let t = Topology::host().unwrap();
    let allowed = Allowed::host(&t).unwrap();
    let cpus = allowed.cpus();
    assert!(!cpus.is_empty() && cpus.difference(&t.online).is_empty());
    assert_eq!(select("all", &allowed, &t).unwrap(), cpus);
    assert_eq!(select(&cpus.to_string(), &allowed, &t).unwrap(), cpus);
}
