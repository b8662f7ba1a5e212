//! What the kernel did to the members of a group.

use std::fs;
use std::path::Path;

/// Counts since the group was made; `None` where the group has not the controller or the kernel does not count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Events {
    /// Processes of the group that the out-of-memory killer ended.
    pub oom_kills: Option<u64>,
    /// Time in which the CPU limit kept runnable threads from running, summed over CPUs, ns.
    pub throttled_ns: Option<u64>,
    /// Periods of the CPU limit in which that happened.
    pub throttled_periods: Option<u64>,
    /// New tasks refused because of the limit on their number.
    pub tasks_refused: Option<u64>,
}

impl Events {
    /// Adds what can be read in one directory of the group; the files of versions 1 and 2 tell themselves apart by name.
    pub(super) fn add(&mut self, directory: &Path) {
        let value = |file: &str, key: &str| field(&fs::read_to_string(directory.join(file)).ok()?, key);
        let oom_kills =
            value("memory.events", "oom_kill").or_else(|| value("memory.oom_control", "oom_kill"));
        let throttled_us = value("cpu.stat", "throttled_usec").and_then(|us| us.checked_mul(1_000));
        self.oom_kills = self.oom_kills.or(oom_kills);
        self.throttled_ns =
            self.throttled_ns.or(throttled_us).or_else(|| value("cpu.stat", "throttled_time"));
        self.throttled_periods = self.throttled_periods.or_else(|| value("cpu.stat", "nr_throttled"));
        self.tasks_refused = self.tasks_refused.or_else(|| value("pids.events", "max"));
    }
}

/// A line `key value`.
fn field(text: &str, key: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' ')?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::expand;

    #[test]
    fn both_versions_are_read() {
        let directory = tempfile::tempdir().unwrap();
        let recording = "two/memory.events\tlow 0\\nhigh 3\\nmax 9\\noom 2\\noom_kill 1\\noom_group_kill 0\n\
                         two/cpu.stat\tusage_usec 5\\nnr_periods 7\\nnr_throttled 4\\nthrottled_usec 250\n\
                         one/memory.oom_control\toom_kill_disable 0\\nunder_oom 0\\noom_kill 6\n\
                         cpu/cpu.stat\tnr_periods 7\\nnr_throttled 5\\nthrottled_time 1234567\n\
                         cpu/pids.events\tmax 8\n";
        expand(recording, directory.path()).unwrap();
        let mut two = Events::default();
        two.add(&directory.path().join("two"));
        let want = Events {
            oom_kills: Some(1),
            throttled_ns: Some(250_000),
            throttled_periods: Some(4),
            tasks_refused: None,
        };
        assert_eq!(two, want);
        let mut one = Events::default();
        one.add(&directory.path().join("one"));
        one.add(&directory.path().join("cpu"));
        let want = Events {
            oom_kills: Some(6),
            throttled_ns: Some(1_234_567),
            throttled_periods: Some(5),
            tasks_refused: Some(8),
        };
        assert_eq!(one, want);
        assert_eq!(field("oom_kills 3\n", "oom_kill"), None);
    }
}
