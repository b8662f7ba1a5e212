//! Emptying and removing groups, also those of makers that were killed.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::abandoned::sweep_by;
use crate::fs_root::write_existing;

/// First part of the name of every group of ours; the maker's process id follows, then a dash.
pub(super) const PREFIX: &str = "machmeter-";
const REMOVAL_TRIES: u32 = 150;
const REMOVAL_PAUSE: Duration = Duration::from_millis(10);

/// Visible members; those of other process id namespaces show as 0 and are left out.
pub(super) fn members(directory: &Path) -> Vec<i32> {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    text.lines().filter_map(|l| l.parse().ok()).filter(|pid| *pid > 0).collect()
}

/// Empties and removes one directory, for at most 1.5 s: a killed process leaves its group some time after the signal.
/// This process goes back to `own`.
pub(super) fn remove_directory(directory: &Path, own: &Path) {
    for _ in 0..REMOVAL_TRIES {
        match fs::remove_dir(directory) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {}
            _ => return,
        }
        for pid in members(directory) {
            if pid.cast_unsigned() == std::process::id() {
                let _ = write_existing(&own.join("cgroup.procs"), &pid.to_string());
            } else if let Some(pid) = Pid::from_raw(pid) {
                let _ = kill_process(pid, Signal::KILL);
            }
        }
        std::thread::sleep(REMOVAL_PAUSE);
    }
}

pub(super) fn sweep_directory(parent: &Path) {
    sweep_by(parent, PREFIX, |directory| remove_directory(directory, parent));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, sleeper};

    #[test]
    fn a_group_of_a_dead_maker_is_swept_and_one_of_the_living_is_not() {
        let Some(group) = group("pids=5") else { return };
        let mut child = sleeper();
        let dead = child.id();
        child.kill().unwrap();
        child.wait().unwrap();
        // Below our own group, where nobody else looks for stale ones meanwhile.
        let parent = group.directories().next().unwrap();
        let stale = parent.join(format!("{PREFIX}{dead}-0-test"));
        fs::create_dir(&stale).unwrap();
        // The maker lives in another process namespace, where its number is not ours to see.
        let lock = crate::abandoned::lock(&stale).unwrap();
        sweep_directory(parent);
        assert!(stale.exists());
        drop(lock);
        let mut orphan = sleeper();
        write_existing(&stale.join("cgroup.procs"), &orphan.id().to_string()).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| assert!(!orphan.wait().unwrap().success()));
            sweep_directory(parent);
        });
        assert!(!stale.exists());
        assert!(parent.exists());
    }
}
