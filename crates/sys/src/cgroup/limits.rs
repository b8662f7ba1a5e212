//! The files a request is written to, in the order in which the kernel wants them, and why it refuses one.

use std::fs;
use std::io;
use std::path::Path;

use super::layout::{Parent, Version};
use super::{Controller, Request, refused_to, unusable};
use crate::Refused;
use crate::fs_root::{FsRoot, write_existing};
use crate::topology::CpuSet;

/// A file and what is written to it; the kernel must read back the same.
type Limit = (&'static str, String);

/// `cpu.shares` of a weight: 100 is the normal weight of version 2, 1024 the normal shares of version 1.
fn shares(weight: u32) -> u64 {
    (u64::from(weight) * 1024 / 100).clamp(2, 1 << 18)
}

/// What to write into a group under `parent`. Errors: a limit that this version does not have.
pub(super) fn plan(request: &Request, parent: &Parent, tree: &FsRoot) -> Result<Vec<Limit>, Refused> {
    use Controller::{Cpu, Cpuset, Memory, Pids};
    use Version::{One, Two};
    let asks = |controller, version| parent.version == version && parent.controllers.contains(&controller);
    if request.memory_high_bytes.is_some() && asks(Memory, One) {
        return Err(unusable(Memory, "memory-high exists in version 2 only, and this machine has version 1"));
    }
    // A new group of version 1 has no memory node, and takes no process before it has.
    let file = |name| tree.text(&format!("{}/{name}", parent.directory)).filter(|t| !t.is_empty());
    let nodes = file("cpuset.effective_mems").or_else(|| file("cpuset.mems"));
    let text = |number: Option<u64>| number.map(|n| n.to_string());
    let page_bytes = rustix::param::page_size() as u64;
    let pages = |bytes: Option<u64>| text(bytes.map(|b| b / page_bytes * page_bytes));
    let (quota_us, period_us) = request.max.map(|q| (q.quota_ns / 1_000, q.period_ns / 1_000)).unzip();
    let cpus = request.cpus.as_ref().map(CpuSet::to_string);
    let limits = [
        (Cpu, One, "cpu.shares", text(request.weight.map(shares))),
        (Cpu, One, "cpu.cfs_period_us", text(period_us)),
        (Cpu, One, "cpu.cfs_quota_us", text(quota_us)),
        (Cpu, Two, "cpu.weight", text(request.weight.map(u64::from))),
        (Cpu, Two, "cpu.max", quota_us.zip(period_us).map(|(quota, period)| format!("{quota} {period}"))),
        (Cpuset, One, "cpuset.mems", Some(nodes.unwrap_or_else(|| "0".to_owned()))),
        (Cpuset, One, "cpuset.cpus", cpus.clone()),
        (Cpuset, Two, "cpuset.cpus", cpus),
        (Memory, One, "memory.limit_in_bytes", pages(request.memory_bytes)),
        (Memory, Two, "memory.high", pages(request.memory_high_bytes)),
        (Memory, Two, "memory.max", pages(request.memory_bytes)),
        (Pids, One, "pids.max", text(request.pids)),
        (Pids, Two, "pids.max", text(request.pids)),
    ];
    let asked = limits.into_iter().filter(|(controller, version, ..)| asks(*controller, *version));
    Ok(asked.filter_map(|(_, _, file, value)| Some((file, value?))).collect())
}

/// Writes `limits` and reads each back. Errors: the cause of a refusal, or another value is read back.
pub(super) fn put(group: &Path, limits: &[Limit]) -> Result<(), Refused> {
    for (file, value) in limits {
        write_existing(&group.join(file), value).map_err(|source| refused(group, file, value, &source))?;
    }
    limits.iter().try_for_each(|(file, value)| read_back(group, file, value))?;
    // A cpuset may hold CPUs that the groups above do not leave it; it then runs on fewer, or on all of theirs.
    match limits.iter().find(|(file, _)| *file == "cpuset.cpus") {
        Some((_, cpus)) if group.join("cpuset.cpus.effective").exists() => {
            read_back(group, "cpuset.cpus.effective", cpus)
        }
        _ => Ok(()),
    }
}

fn read_back(group: &Path, file: &'static str, asked: &str) -> Result<(), Refused> {
    let path = group.join(file);
    let found = fs::read_to_string(&path).map_err(|e| refused_to(group, &format!("reading {file}"), e))?;
    if found.trim() == asked {
        return Ok(());
    }
    let (file, found) = (path.display(), found.trim());
    Err(Refused(format!("control group: {file} was set to '{asked}' but holds '{found}'")))
}

fn refused(group: &Path, file: &str, value: &str, error: &io::Error) -> Refused {
    let above = |file: &str| {
        let path = group.parent().map(|p| p.join(file));
        path.and_then(|p| fs::read_to_string(p).ok()).unwrap_or_default().trim().to_owned()
    };
    let cause = match (file, error.raw_os_error()) {
        (file, Some(libc::ENOENT)) if file.starts_with("cpu.cfs") || file == "cpu.max" => {
            "this kernel has no CPU limits (CONFIG_CFS_BANDWIDTH)".to_owned()
        }
        (_, Some(libc::ENOENT)) => "this kernel has no such file".to_owned(),
        ("cpuset.cpus", Some(libc::EACCES | libc::EINVAL | libc::ERANGE)) => {
            format!("not all of these CPUs are in the group above, which has '{}'", above("cpuset.cpus"))
        }
        ("cpu.cfs_quota_us", Some(libc::EINVAL)) => {
            format!("a group above allows less (its cpu.cfs_quota_us is '{}')", above("cpu.cfs_quota_us"))
        }
        _ => error.to_string(),
    };
    refused_to(group, &format!("{file} = {value}"), cause)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    fn parent(version: Version, controllers: &[Controller]) -> Parent {
        let (own, directory) = ("g".to_owned(), "g".to_owned());
        Parent { version, own, directory, controllers: controllers.to_vec(), enable: vec![] }
    }

    fn pairs(limits: &[Limit]) -> Vec<(&str, &str)> {
        limits.iter().map(|(file, value)| (*file, value.as_str())).collect()
    }

    #[test]
    fn a_request_becomes_the_files_of_each_version() {
        let (_keep, tree) = tree_of("g/cpuset.effective_mems\t0-1\n");
        let request: Request = "weight=50,max=12.5%,cpus=1,0,memory=1048577,pids=9".parse().unwrap();
        let two = plan(&request, &parent(Version::Two, &Controller::ALL), &tree).unwrap();
        assert_eq!(
            pairs(&two),
            [
                ("cpu.weight", "50"),
                ("cpu.max", "12500 100000"),
                ("cpuset.cpus", "0-1"),
                ("memory.max", "1048576"),
                ("pids.max", "9")
            ]
        );
        let one = plan(&request, &parent(Version::One, &Controller::ALL), &tree).unwrap();
        assert_eq!(
            pairs(&one),
            [
                ("cpu.shares", "512"),
                ("cpu.cfs_period_us", "100000"),
                ("cpu.cfs_quota_us", "12500"),
                ("cpuset.mems", "0-1"),
                ("cpuset.cpus", "0-1"),
                ("memory.limit_in_bytes", "1048576"),
                ("pids.max", "9")
            ]
        );
        let high: Request = "memory-high=2M".parse().unwrap();
        let e = plan(&high, &parent(Version::One, &[Controller::Memory]), &tree).unwrap_err().to_string();
        assert!(e.contains("version 2 only"), "{e}");
    }

    #[test]
    fn weights_keep_their_ratio_as_shares() {
        assert_eq!([1, 100, 200, 10_000].map(shares), [10, 1_024, 2_048, 102_400]);
    }

    #[test]
    fn what_is_read_back_decides() {
        let directory = tempfile::tempdir().unwrap();
        let group = directory.path();
        fs::write(group.join("pids.max"), "max\n").unwrap();
        let limit = ("pids.max", "123".to_owned());
        put(group, std::slice::from_ref(&limit)).unwrap();
        assert_eq!(fs::read_to_string(group.join("pids.max")).unwrap().trim(), "123");

        let missing = ("cpu.max", "1000 100000".to_owned());
        let e = put(group, &[missing]).unwrap_err().to_string();
        assert!(e.contains("CONFIG_CFS_BANDWIDTH") && !group.join("cpu.max").exists(), "{e}");

        std::os::unix::fs::symlink("/dev/null", group.join("cpu.weight")).unwrap();
        let lost = ("cpu.weight", "7".to_owned());
        assert!(put(group, &[lost]).unwrap_err().to_string().contains("was set to '7' but holds ''"));

        fs::write(group.join("cpuset.cpus"), "").unwrap();
        fs::write(group.join("cpuset.cpus.effective"), "0\n").unwrap();
        let cpus = ("cpuset.cpus", "0-1".to_owned());
        let e = put(group, &[cpus]).unwrap_err().to_string();
        assert!(e.contains("cpuset.cpus.effective") && e.contains("'0-1'") && e.contains("'0'"), "{e}");
    }
}
