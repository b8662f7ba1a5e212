//! Threads as `/proc` shows them; the parsers are pure functions of the text (proc(5)).

use std::collections::BTreeMap;
use std::fs;

use machmeter_data::text::printable;
use machmeter_sys::counters::schedstat::Schedstat;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::topology::CpuSet;

/// `USER_HZ` is 100 on every Linux that machmeter runs on.
pub(super) const NS_PER_TICK: u64 = 10_000_000;
const PF_KTHREAD: u64 = 0x0020_0000;
const SCHED_FIFO: u32 = 1;
const SCHED_RR: u32 = 2;
const SCHED_DEADLINE: u32 = 6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ThreadStat {
    pub(super) comm: String,
    pub(super) kernel: bool,
    pub(super) cpu_ns: u64,
    pub(super) priority: u32,
    pub(super) policy: u32,
}

impl ThreadStat {
    /// The name stands in parentheses and may hold anything, also blanks and parentheses.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let comm = printable(text.get(text.find('(')? + 1..text.rfind(')')?)?);
        let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_ascii_whitespace().collect();
        // proc(5) counts from 1; the first field after the name is number 3.
        let number = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
        Some(Self {
            comm,
            kernel: number(9)? & PF_KTHREAD != 0,
            cpu_ns: (number(14)? + number(15)?) * NS_PER_TICK,
            priority: number(40)? as u32,
            policy: number(41)? as u32,
        })
    }

    /// `fifo`, `rr`, `deadline`, or `None` for a policy that is not real-time.
    pub(super) fn real_time(&self) -> Option<&'static str> {
        match self.policy {
            SCHED_FIFO => Some("fifo"),
            SCHED_RR => Some("rr"),
            SCHED_DEADLINE => Some("deadline"),
            _ => None,
        }
    }
}

/// CPU time of a thread: exact where the kernel counts it so, else in units of 10 ms; `None` once it has ended.
pub(super) fn cpu_ns(pid: u32, tid: u32) -> Option<u64> {
    let exact = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"));
    if let Some(stat) = exact.ok().as_deref().and_then(Schedstat::parse) {
        return Some(stat.run_ns);
    }
    stat(pid, tid).map(|s| s.cpu_ns)
}

pub(super) fn stat(pid: u32, tid: u32) -> Option<ThreadStat> {
    ThreadStat::parse(&fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).ok()?)
}

pub(super) fn allowed_cpus(pid: u32, tid: u32) -> Option<CpuSet> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// The numeric entries of a directory of `/proc`, ascending.
pub(super) fn numbers(directory: &str) -> Vec<u32> {
    FsRoot::host().numbered(directory, "").into_iter().map(|n| n as u32).collect()
}

/// Time in threads (user, nice, system) by CPU, ns; `None` is all of them.
pub(super) type Busy = BTreeMap<Option<usize>, u64>;

/// From `/proc/stat`; empty where it cannot be read.
pub(super) fn busy_ns() -> Busy {
    fs::read_to_string("/proc/stat").map_or_else(|_| Busy::new(), |text| busy_from(&text))
}

fn busy_from(text: &str) -> Busy {
    let line = |line: &str| {
        let (name, times) = line.strip_prefix("cpu")?.split_once(' ')?;
        let cpu = if name.is_empty() { None } else { Some(name.parse().ok()?) };
        let ticks: Result<u64, _> = times.split_ascii_whitespace().take(3).map(str::parse::<u64>).sum();
        Some((cpu, ticks.ok()? * NS_PER_TICK))
    };
    text.lines().map_while(line).collect()
}

/// Threads that run or wait for a CPU now, from `/proc/loadavg`.
pub(super) fn running() -> Option<u64> {
    fs::read_to_string("/proc/loadavg").ok()?.split_ascii_whitespace().nth(3)?.split_once('/')?.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_parentheses_and_blanks_does_not_shift_the_fields() {
        let mut fields = vec!["0"; 50];
        fields[0] = "S";
        fields[9 - 3] = "2097216";
        fields[14 - 3] = "7";
        fields[15 - 3] = "3";
        fields[40 - 3] = "99";
        fields[41 - 3] = "1";
        let text = format!("18 (a) b (c) {}", fields.join(" "));
        let stat = ThreadStat::parse(&text).unwrap();
        let want = ThreadStat {
            comm: "a) b (c".to_owned(),
            kernel: true,
            cpu_ns: 100_000_000,
            priority: 99,
            policy: 1,
        };
        assert_eq!(stat, want);
        assert_eq!(stat.real_time(), Some("fifo"));
        assert_eq!(ThreadStat::parse("1 (x) S 0"), None);
        assert_eq!(ThreadStat::parse(")("), None);
    }

    #[test]
    fn own_thread_is_read() {
        let (pid, tid) = (std::process::id(), machmeter_sys::thread::tid() as u32);
        let own = stat(pid, tid).unwrap();
        assert!(!own.kernel);
        assert!(!allowed_cpus(pid, tid).unwrap().is_empty());
        assert!(numbers("/proc").contains(&pid));
        assert!(cpu_ns(pid, u32::MAX).is_none());
        let busy = busy_from("cpu  1 2 3 4 5\ncpu1 0 0 4 9 9\nintr 7\n");
        assert_eq!(busy, Busy::from([(None, 60_000_000), (Some(1), 40_000_000)]));
        assert!(busy_from("cpu  1 x 3\n").is_empty());
        assert!(running().unwrap() >= 1);
    }
}
