//! Reads CPU times and counts of threads from `/proc`. The parsers are pure functions of the text (format: proc(5)).

use std::collections::BTreeMap;
use std::fs;

use machmeter_sys::counters::schedstat::Schedstat;
use machmeter_sys::counters::stat::NS_PER_TICK;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::process::Stat;
use machmeter_sys::topology::CpuSet;

/// CPU time of a thread, ns; `None` if it has ended. Exact if the kernel has `schedstat`, else in units of 10 ms.
pub(super) fn cpu_ns(pid: u32, tid: u32) -> Option<u64> {
    let exact = fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat"));
    if let Some(stat) = exact.ok().as_deref().and_then(Schedstat::parse) {
        return Some(stat.run_ns);
    }
    Stat::of_thread(pid, tid).map(|s| s.cpu_ns)
}

pub(super) fn allowed_cpus(pid: u32, tid: u32) -> Option<CpuSet> {
    let status = fs::read_to_string(format!("/proc/{pid}/task/{tid}/status")).ok()?;
    status.lines().find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?.parse().ok()
}

/// The numeric entries of a directory of `/proc`, ascending.
pub(super) fn numbers(directory: &str) -> Vec<u32> {
    FsRoot::host().numbered(directory, "").into_iter().map(|n| n as u32).collect()
}

/// CPU time of threads (user, nice, system) by CPU, ns; the key `None` is the sum over all CPUs.
pub(super) type Busy = BTreeMap<Option<usize>, u64>;

/// Reads `/proc/stat`; empty if it is not readable.
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
    fn own_thread_is_read() {
        let (pid, tid) = (std::process::id(), machmeter_sys::thread::tid() as u32);
        assert!(!Stat::of_thread(pid, tid).unwrap().kernel);
        assert!(!allowed_cpus(pid, tid).unwrap().is_empty());
        assert!(numbers("/proc").contains(&pid));
        assert!(cpu_ns(pid, u32::MAX).is_none());
        let busy = busy_from("cpu  1 2 3 4 5\ncpu1 0 0 4 9 9\nintr 7\n");
        assert_eq!(busy, Busy::from([(None, 60_000_000), (Some(1), 40_000_000)]));
        assert!(busy_from("cpu  1 x 3\n").is_empty());
        assert!(running().unwrap() >= 1);
    }
}
