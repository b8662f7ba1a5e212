//! How many more tasks (processes and threads) the system lets this process start: control groups, the user's limit, the
//! machine.
//!
//! Sources: Linux Documentation/admin-guide/cgroup-v2.rst (PID), cgroup-v1/pids.rst; getrlimit(2), `RLIMIT_NPROC`;
//! proc(5), `threads-max`.

use std::io;

use rustix::process::{Resource, getrlimit};

use crate::cgroup::groups_above;
use crate::facts::field;
use crate::fs_root::FsRoot;
use crate::thread::effective_user;

/// Room for more tasks, and what limits it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskHeadroom {
    pub tasks: u64,
    /// The limit that leaves the least, for people (`pids.max 100 of the control group /sys/fs/cgroup/a`).
    pub limit: String,
}

impl TaskHeadroom {
    /// The room there is now; `None` where nothing can be read. Others may take it at any time.
    pub fn now() -> Option<Self> {
        let host = FsRoot::host();
        let user = effective_user();
        // The limit does not bind root (strictly: CAP_SYS_RESOURCE or CAP_SYS_ADMIN).
        let of_user = getrlimit(Resource::Nproc).current.filter(|_| user != 0).map(|limit| Self {
            tasks: limit.saturating_sub(tasks_of_user(&host, user)),
            limit: format!("the user's limit of {limit} processes (ulimit -u)"),
        });
        Self::of_groups(&host)
            .into_iter()
            .chain(of_user)
            .chain(Self::of_machine(&host))
            .min_by_key(|r| r.tasks)
    }

    /// Why a thread or process could not be started, with the limit that leaves no room (`EAGAIN`, `pthread_create(3)`).
    pub(crate) fn explain(e: io::Error) -> io::Error {
        match Self::now().filter(|_| e.kind() == io::ErrorKind::WouldBlock) {
            Some(room) => {
                let text = format!("{} leaves room for {} more: raise it", room.limit, room.tasks);
                io::Error::new(e.kind(), text)
            }
            None => e,
        }
    }

    /// The room that each limited group on the way from the root to this process leaves.
    fn of_groups(tree: &FsRoot) -> Vec<Self> {
        let room = |group: String| {
            let read = |file| tree.number::<u64>(&format!("{group}/{file}"));
            let (most, current) = (read("pids.max")?, read("pids.current")?);
            let limit = format!("pids.max {most} of the control group /{group}");
            Some(Self { tasks: most.saturating_sub(current), limit })
        };
        groups_above(tree, "self", "pids").into_iter().filter_map(room).collect()
    }

    fn of_machine(tree: &FsRoot) -> Option<Self> {
        let limits = ["threads-max", "pid_max"].map(|name| tree.number(&format!("proc/sys/kernel/{name}")));
        let most: u64 = limits.into_iter().flatten().min()?;
        // "0.00 0.01 0.05 1/234 5678": runnable tasks and all tasks.
        let loads = tree.text("proc/loadavg")?;
        let all: u64 = loads.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()?;
        Some(Self { tasks: most.saturating_sub(all), limit: format!("the machine's limit of {most} tasks") })
    }
}

/// Tasks of all processes whose real user is `user`, as far as they can be seen.
fn tasks_of_user(tree: &FsRoot, user: u32) -> u64 {
    let tasks = |pid: usize| {
        let status = tree.text(&format!("proc/{pid}/status"))?;
        let real_user = field(&status, "Uid")?.split_whitespace().next()?;
        (real_user.parse() == Ok(user)).then(|| field(&status, "Threads")?.parse::<u64>().ok())?
    };
    tree.numbered("proc", "").into_iter().filter_map(tasks).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    fn rooms(recording: &str) -> Vec<TaskHeadroom> {
        TaskHeadroom::of_groups(&tree_of(recording).1)
    }

    #[test]
    fn every_group_on_the_way_is_asked_in_version_2() {
        let rooms = rooms(
            "proc/self/cgroup\t0::/a/b/c\nsys/fs/cgroup/a/pids.max\t50\nsys/fs/cgroup/a/pids.current\t48\n\
             sys/fs/cgroup/a/b/pids.max\tmax\nsys/fs/cgroup/a/b/pids.current\t9\n\
             sys/fs/cgroup/a/b/c/pids.max\t20\nsys/fs/cgroup/a/b/c/pids.current\t25\n",
        );
        let seen: Vec<(u64, &str)> = rooms.iter().map(|r| (r.tasks, r.limit.as_str())).collect();
        let a = "pids.max 50 of the control group /sys/fs/cgroup/a";
        assert_eq!(seen, [(0, "pids.max 20 of the control group /sys/fs/cgroup/a/b/c"), (2, a)]);
    }

    #[test]
    fn version_1_has_a_tree_of_its_own_and_inside_a_container_the_root_is_the_group() {
        let rooms = rooms(
            "proc/self/cgroup\t9:cpu,cpuacct:/x\\n4:pids:/\\n0::/\nsys/fs/cgroup/pids/pids.max\t100\n\
             sys/fs/cgroup/pids/pids.current\t40\n",
        );
        assert_eq!(rooms.len(), 1);
        let limit = "pids.max 100 of the control group /sys/fs/cgroup/pids";
        assert_eq!((rooms[0].tasks, &rooms[0].limit[..]), (60, limit));
    }

    #[test]
    fn the_machine_and_the_user_have_limits() {
        let status = |user: u32, n: u32| format!("Name:\\tx\\nUid:\\t{user}\\t0\\t0\\t0\\nThreads:\\t{n}");
        let recording = format!(
            "proc/loadavg\t0.1 0.2 0.3 2/300 77\nproc/sys/kernel/threads-max\t900\nproc/sys/kernel/pid_max\t400\n\
             proc/7/status\t{}\nproc/8/status\t{}\nproc/9/status\t{}\n",
            status(5, 3),
            status(6, 100),
            status(5, 4)
        );
        let (directory, tree) = tree_of(&recording);
        assert_eq!(TaskHeadroom::of_machine(&tree).unwrap().tasks, 100);
        assert_eq!(tasks_of_user(&tree, 5), 7);
        assert_eq!(TaskHeadroom::of_machine(&FsRoot::at(&directory.path().join("proc"))), None);
        assert!(TaskHeadroom::now().unwrap().tasks > 0);
    }
}
