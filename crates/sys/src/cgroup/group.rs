//! A group of our own, from its making to its removal.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::layout::{self, Parent};
use super::limits;
use super::removal::{PREFIX, remove_directory, sweep_directory};
use super::{Request, field, refused_to, unusable};
use crate::Refused;
use crate::fs_root::{FsRoot, write_existing};
use crate::guard::Guard;

static NUMBER: AtomicU32 = AtomicU32::new(0);

/// A control group with limits; in version 1 one in each hierarchy that a limit needs. When it is dropped this process goes
/// back to where it was, other members are killed, and the group is removed; nothing else may then use it.
#[derive(Debug)]
pub struct Group {
    /// Removes the group. Dropped first: controllers can be switched off only when no group uses them.
    _guard: Guard,
    /// Undoes controllers that were switched on for the group.
    switched_on: Vec<Guard>,
    made: Vec<Made>,
    /// They say that this process lives.
    locks: Vec<File>,
    caveats: Vec<String>,
}

#[derive(Debug, Clone)]
struct Made {
    directory: PathBuf,
    own: PathBuf,
}

/// Where a group will be made, before anything is changed.
#[derive(Debug)]
pub struct Plan {
    request: Request,
    parents: Vec<Parent>,
    made: Vec<Made>,
    leaf: String,
}

impl Plan {
    /// Looks for the places for the limits of `request`: below this process's own group, in version 2 beside it
    /// where the own one may have no children. `name` only helps those who look. Errors: with the true cause.
    pub fn new(request: &Request, name: &str) -> Result<Self, Refused> {
        let controllers = request.controllers();
        if controllers.is_empty() {
            return Err(Refused("control group: the request limits nothing".to_owned()));
        }
        let tree = FsRoot::host();
        let parents = layout::parents(&tree, &controllers)
            .map_err(|(controller, cause)| unusable(controller, &cause))?;
        let leaf = leaf_name(name);
        let made = |p: &Parent| Made {
            directory: tree.root().join(&p.directory).join(&leaf),
            own: tree.root().join(&p.own),
        };
        let made = parents.iter().map(made).collect();
        Ok(Self { request: request.clone(), parents, made, leaf })
    }

    /// The directories that will be made; what outlives this process may remove them when they are empty.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.made.iter().map(|m| m.directory.as_path())
    }

    /// Makes the group. Groups that processes of ours left behind when they were killed are removed first.
    /// Errors: with the true cause; nothing is then left behind.
    pub fn make(self) -> Result<Group, Refused> {
        let tree = FsRoot::host();
        for parent in &self.parents {
            sweep_directory(&tree.root().join(&parent.directory));
        }
        let undo: Vec<_> = self.made.iter().map(|m| (m.directory.clone(), m.own.clone())).collect();
        let guard = Guard::new(format!("control group {}", self.leaf), move || {
            for (directory, own) in &undo {
                remove_directory(directory, own);
            }
        });
        let (switched_on, locks, caveats) = (Vec::new(), Vec::new(), Vec::new());
        let mut group = Group { _guard: guard, switched_on, made: self.made, locks, caveats };
        for (made, parent) in group.made.iter().zip(&self.parents) {
            group.switched_on.extend(switch_on(&tree, parent)?);
            fs::create_dir(&made.directory).map_err(|e| {
                refused_to(&made.directory, "making it", layout::refusal(&parent.directory, &e))
            })?;
            group.locks.extend(crate::abandoned::lock(&made.directory));
            limits::put(&made.directory, &limits::plan(&self.request, parent, &tree)?)?;
            group.caveats.extend(made.real_time_caveat());
        }
        Ok(group)
    }
}

impl Group {
    pub fn create(request: &Request, name: &str) -> Result<Self, Refused> {
        Plan::new(request, name)?.make()
    }

    /// Puts a process with all its threads into the group; children it starts from then on are in it too.
    /// Errors: with the cause; it may then be in some of the hierarchies already.
    pub fn add(&self, pid: i32) -> Result<(), Refused> {
        self.made.iter().try_for_each(|made| {
            write_existing(&made.directory.join("cgroup.procs"), &pid.to_string()).map_err(|e| {
                let (group, cause) = (made.directory.display(), made.cause_of_membership(&e));
                Refused(format!("control group {group}: process {pid} cannot join: {cause}"))
            })
        })
    }

    /// Processes that the out-of-memory killer ended in it; `None` where nobody counts them.
    pub fn oom_kills(&self) -> Option<u64> {
        self.made.iter().find_map(|m| oom_kills_in(&m.directory))
    }

    /// All directories of the group, in the order in which they were made.
    pub fn directories(&self) -> impl Iterator<Item = &Path> {
        self.made.iter().map(|m| m.directory.as_path())
    }

    /// What membership means beside the limits asked for, in one line each.
    pub fn caveats(&self) -> &[String] {
        &self.caveats
    }
}

impl Made {
    fn without_real_time_budget(&self) -> bool {
        let text = fs::read_to_string(self.directory.join("cpu.rt_runtime_us"));
        text.is_ok_and(|t| t.trim() == "0")
    }

    fn real_time_caveat(&self) -> Option<String> {
        self.without_real_time_budget().then(|| {
            "the new control group has no real-time budget (CONFIG_RT_GROUP_SCHED, cpu.rt_runtime_us = 0): fifo and rr \
             are refused inside"
                .to_owned()
        })
    }

    fn cause_of_membership(&self, error: &io::Error) -> String {
        match error.raw_os_error() {
            Some(libc::ESRCH) => "it has ended".to_owned(),
            Some(libc::EINVAL) if self.without_real_time_budget() => {
                "it has real-time threads, and the group has no real-time budget (cpu.rt_runtime_us = 0)".to_owned()
            }
            Some(libc::EACCES | libc::EPERM) => {
                "no permission to move it (it belongs to another user, or the group above both does); run as root"
                    .to_owned()
            }
            Some(libc::EOPNOTSUPP | libc::EBUSY) => {
                "the group cannot hold processes (threaded or inner group of version 2)".to_owned()
            }
            _ => error.to_string(),
        }
    }
}

/// The files of versions 1 and 2 tell themselves apart by name.
fn oom_kills_in(directory: &Path) -> Option<u64> {
    let kills = |file: &str| field(&fs::read_to_string(directory.join(file)).ok()?, "oom_kill");
    kills("memory.events").or_else(|| kills("memory.oom_control"))
}

/// Only letters, digits and dashes reach the file system.
fn leaf_name(name: &str) -> String {
    let safe = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).take(32);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-{number}-{}", std::process::id(), safe.collect::<String>())
}

/// Lets the root of version 2 pass controllers on; undone when the guards are dropped.
fn switch_on(tree: &FsRoot, parent: &Parent) -> Result<Vec<Guard>, Refused> {
    let control = tree.root().join(&parent.directory).join("cgroup.subtree_control");
    parent
        .enable
        .iter()
        .map(|controller| {
            let off = (control.clone(), format!("-{controller}"));
            let undo = move || drop(write_existing(&off.0, &off.1));
            let guard = Guard::new(format!("{controller} controller switched on"), undo);
            match write_existing(&control, &format!("+{controller}")) {
                Ok(()) => Ok(guard),
                Err(e) => {
                    guard.disarm();
                    Err(refused_to(&control, &format!("cgroup.subtree_control = +{controller}"), e))
                }
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;
    use crate::testing::{group, sleeper};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    #[test]
    fn a_member_is_limited_and_killed_when_the_group_goes() {
        let Some(group) = group("weight=50,max=40%,memory=64M,pids=20") else { return };
        let mut child = sleeper();
        let pid = child.id().cast_signed();
        group.add(pid).unwrap();
        assert!(group.made.iter().all(|m| crate::cgroup::removal::members(&m.directory) == [pid]));
        let directories: Vec<PathBuf> = group.made.iter().map(|m| m.directory.clone()).collect();
        assert_eq!(group.oom_kills(), Some(0));
        println!("{:?}", group.caveats());
        std::thread::scope(|s| {
            // A killed child stays a member until it is waited for in some kernels.
            s.spawn(|| assert!(!child.wait().unwrap().success()));
            drop(group);
        });
        assert!(directories.iter().all(|d| !d.exists()), "{directories:?}");
    }

    #[test]
    fn the_cpu_limit_throttles_and_is_counted() {
        let Some(group) = group("max=10%") else { return };
        let mut child =
            Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap();
        group.add(child.id().cast_signed()).unwrap();
        let directory = group.directories().next().unwrap();
        let throttled = (0..500).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            let stat = fs::read_to_string(directory.join("cpu.stat")).unwrap();
            let ns = field(&stat, "throttled_usec").or_else(|| field(&stat, "throttled_time"));
            ns.is_some_and(|ns| ns > 0) && field(&stat, "nr_throttled").is_some_and(|n| n > 0)
        });
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(throttled);
    }

    #[test]
    fn kills_of_both_versions_are_read() {
        let (directory, _) = tree_of(
            "two/memory.events\tlow 0\\nhigh 3\\nmax 9\\noom 2\\noom_kill 1\\noom_group_kill 0\n\
             one/memory.oom_control\toom_kill_disable 0\\nunder_oom 0\\noom_kill 6\n",
        );
        let kills = ["two", "one", "none"].map(|d| oom_kills_in(&directory.path().join(d)));
        assert_eq!(kills, [Some(1), Some(6), None]);
        assert_eq!(field("oom_kills 3\n", "oom_kill"), None);
    }

    #[test]
    fn a_cpuset_holds_its_members_and_refuses_cpus_that_are_not_there() {
        let first = crate::affinity::mask().unwrap().first().unwrap();
        let Some(group) = group(&format!("cpus={first}")) else { return };
        let mut child = sleeper();
        group.add(child.id().cast_signed()).unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(status.contains(&format!("Cpus_allowed_list:\t{first}\n")), "{status}");
        drop(group);
        let e = Group::create(&"cpus=1000".parse().unwrap(), "far").unwrap_err();
        let said = e.to_string();
        assert!(said.contains(" refused: ") || said.contains(" but holds "), "{said}");
    }

    #[test]
    fn real_time_threads_are_kept_out_of_a_group_without_budget() {
        let Some(group) = group("weight=100") else { return };
        if group.caveats().is_empty() {
            return println!("skipped: new groups have a real-time budget here");
        }
        let mut child = Command::new("chrt").args(["-f", "1", "sleep", "60"]).spawn().unwrap();
        let pid = child.id();
        let real_time = (0..300).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|t| t.split(' ').nth(40) == Some("1"))
        });
        let joined = group.add(pid.cast_signed());
        child.kill().unwrap();
        child.wait().unwrap();
        if !real_time {
            return println!("skipped: no right to start a real-time process");
        }
        assert!(joined.unwrap_err().to_string().contains("cpu.rt_runtime_us = 0"));
    }

    #[test]
    fn nobody_asks_for_nothing_and_a_user_without_rights_is_told_what_would_help() {
        let e = Group::create(&Request::default(), "x").unwrap_err().to_string();
        assert!(e.contains("limits nothing"), "{e}");
        crate::testing::as_nobody(|| {
            let e = Group::create(&"pids=7".parse().unwrap(), "x").unwrap_err().to_string();
            assert!(e.starts_with("control group with the pids controller: ") && !e.contains('\n'), "{e}");
        });
    }
}
