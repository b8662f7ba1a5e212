//! Samples the running machine: other processes, their policies, and the steadiness of the CPU's speed.
//!
//! [`sample`] reads the CPU time of all threads from `/proc` twice and times a fixed loop in between. It takes at most 200 ms and needs no rights.
//! Anything that it cannot see is recorded as an error with the reason.

use std::collections::BTreeMap;
use std::fmt;
use std::hint::black_box;
use std::time::Duration;

use machmeter_stats::quantile::quantile;
use machmeter_sys::counters::stat::NS_PER_TICK;
use machmeter_sys::process::Stat;
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::topology::CpuSet;

use super::inputs::three_digits;
use super::procfs::{self, Busy};

/// Longest duration of [`sample`], ns, including both scans of all threads.
pub const LONGEST_NS: u64 = 200_000_000;
/// A scan of all threads may take the n-th part of the time.
const LOOK_PART: u64 = 3;
/// A process above this share is reported even if the scan did not reach all processes.
const NOTEWORTHY_PERCENT: f64 = 5.0;
/// The time is divided into blocks of this length; the fastest turn of a block is its speed.
const BLOCK_NS: u64 = 5_000_000;
const FEWEST_BLOCKS: usize = 6;
/// PID of the parent of all kernel threads, in the initial PID namespace.
const KTHREADD: u32 = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Time between the two scans, ns.
    pub window_ns: u64,
    /// Spread of the speed of fixed work between blocks (10 % to 90 % quantile, relative to the median), percent. `None` with fewer than 6 blocks.
    pub speed_spread_percent: Option<f64>,
    /// CPUs on which threads of other processes used at most two ticks (20 ms) of CPU time.
    pub idle: CpuSet,
    /// The ten other processes with the most CPU time, the largest first; `Err` is the reason why they are not visible.
    pub consumers: Result<Vec<Consumer>, String>,
    /// Number of CPUs of the machine.
    pub cpus: usize,
    /// CPU time of all other visible processes, percent of one CPU.
    pub others_percent: f64,
    /// CPU time that belongs to no visible process, percent of one CPU. `None` if a scan was incomplete or the CPU counters are not readable.
    pub hidden_percent: Option<f64>,
    /// Real-time threads of other processes with a higher priority than the calling thread; `Err` is the reason why they are not visible.
    pub rt_above: Result<Vec<RealTimeTask>, String>,
    /// Mean number of other threads that run or wait for a CPU.
    pub runnable: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Consumer {
    pub pid: u32,
    pub comm: String,
    /// CPU time of all threads of the process, percent of one CPU.
    pub cpu_percent: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RealTimeTask {
    pub tid: u32,
    pub comm: String,
    /// `fifo`, `rr` or `deadline`.
    pub policy: String,
    /// 1 to 99; 0 for `deadline`, which ranks above all priorities.
    pub priority: u32,
    pub cpus: CpuSet,
    /// CPU time, percent of one CPU.
    pub cpu_percent: f64,
    /// True for a kernel thread.
    pub kernel: bool,
}

impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {}) {} %", self.comm, self.pid, three_digits(self.cpu_percent))
    }
}

impl fmt::Display for RealTimeTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (comm, tid, policy, used) = (&self.comm, self.tid, &self.policy, three_digits(self.cpu_percent));
        write!(f, "{comm} (tid {tid}, {policy}:{}, CPU {}) {used} %", self.priority, self.cpus)
    }
}

#[derive(Debug, Default)]
struct Look {
    /// CPU time by (process, thread), ns.
    cpu_ns: BTreeMap<(u32, u32), u64>,
    /// Number of processes listed, and of those scanned before the deadline.
    listed: usize,
    looked_at: usize,
}

impl Look {
    fn take(deadline_ns: u64) -> Self {
        let mut look = Self::default();
        let processes = procfs::numbers("/proc");
        look.listed = processes.len();
        for pid in processes {
            if monotonic_ns() > deadline_ns {
                break;
            }
            for tid in procfs::numbers(&format!("/proc/{pid}/task")) {
                if let Some(ns) = procfs::cpu_ns(pid, tid) {
                    look.cpu_ns.insert((pid, tid), ns);
                }
            }
            look.looked_at += 1;
        }
        look
    }

    /// Reason why this scan does not cover the whole system; `None` if it does.
    fn incomplete(&self) -> Option<String> {
        if self.listed == 0 {
            return Some("/proc shows no process".to_owned());
        }
        let (seen, all) = (self.looked_at, self.listed);
        (seen < all).then(|| format!("only {seen} of {all} processes were sampled in the available time"))
    }
}

/// Scans all threads twice, at most `duration` (and 200 ms) apart. In between it times a loop on the caller's CPU.
pub fn sample(duration: Duration) -> Live {
    let total_ns = u64::try_from(duration.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS);
    let began_ns = monotonic_ns();
    let first = Look::take(began_ns + total_ns / LOOK_PART);
    let looked_ns = monotonic_ns();
    let (before, own_before) = (procfs::busy_ns(), own());
    // The second scan takes about as long as the first.
    let window_end_ns =
        (began_ns + total_ns).saturating_sub(looked_ns - began_ns).max(looked_ns + total_ns / LOOK_PART);
    let steady = run_until(window_end_ns);
    let (after, own_after) = (procfs::busy_ns(), own());
    let idle = idle(&before, &after, own_before, own_after);
    let window_ns = monotonic_ns() - looked_ns;
    let second = Look::take(monotonic_ns() + total_ns / LOOK_PART);

    let used = gained_ns(&first, &second);
    let incomplete = first.incomplete().or_else(|| second.incomplete());
    let visible_ns: u64 = used.values().sum();
    let all = before.get(&None).zip(after.get(&None)).filter(|_| incomplete.is_none());
    let hidden = all.map(|(before, after)| {
        100.0 * after.saturating_sub(*before).saturating_sub(visible_ns) as f64 / window_ns.max(1) as f64
    });
    let is_other = |((pid, _), _): &(&(u32, u32), &u64)| *pid != std::process::id();
    let others_ns: u64 = used.iter().filter(is_other).map(|(_, ns)| *ns).sum();
    Live {
        window_ns,
        cpus: after.keys().flatten().count(),
        others_percent: 100.0 * others_ns as f64 / window_ns.max(1) as f64,
        speed_spread_percent: steady.spread_percent(),
        idle,
        consumers: consumers(&used, window_ns, incomplete.clone()),
        hidden_percent: hidden,
        rt_above: real_time_above(&used, window_ns, incomplete),
        runnable: steady.mean_running,
    }
}

/// CPU of the calling thread, and the thread's CPU time so far, ns.
fn own() -> Option<(usize, u64)> {
    let tid = machmeter_sys::thread::tid() as u32;
    Some((machmeter_sys::affinity::current_cpu()?, procfs::cpu_ns(std::process::id(), tid)?))
}

/// CPUs on which other threads used at most two ticks; rounding alone can count that much. The meter's own time is subtracted on its CPU. If the
/// meter changed its CPU, both CPUs are left out.
fn idle(
    before: &Busy,
    after: &Busy,
    own_before: Option<(usize, u64)>,
    own_after: Option<(usize, u64)>,
) -> CpuSet {
    let (Some((from, used_before)), Some((to, used_after))) = (own_before, own_after) else {
        return CpuSet::default();
    };
    let by_others = |cpu: usize| {
        let gained = after.get(&Some(cpu))?.saturating_sub(*before.get(&Some(cpu))?);
        let own_ns = if cpu == to { used_after.saturating_sub(used_before) } else { 0 };
        (from == to || (cpu != from && cpu != to)).then(|| gained.saturating_sub(own_ns))
    };
    let cpus = after.keys().flatten().copied();
    cpus.filter(|cpu| by_others(*cpu).is_some_and(|ns| ns <= 2 * NS_PER_TICK)).collect()
}

/// CPU time between two scans of each thread in the second scan, ns. A thread that began in between counts from 0.
fn gained_ns(first: &Look, second: &Look) -> BTreeMap<(u32, u32), u64> {
    let gained = |(thread, ns): (&(u32, u32), &u64)| {
        (*thread, ns.saturating_sub(first.cpu_ns.get(thread).copied().unwrap_or(0)))
    };
    second.cpu_ns.iter().map(gained).collect()
}

fn consumers(
    used: &BTreeMap<(u32, u32), u64>,
    window_ns: u64,
    incomplete: Option<String>,
) -> Result<Vec<Consumer>, String> {
    let own = std::process::id();
    let mut by_process: BTreeMap<u32, u64> = BTreeMap::new();
    for ((pid, _), ns) in used.iter().filter(|((pid, _), ns)| *pid != own && **ns > 0) {
        *by_process.entry(*pid).or_default() += ns;
    }
    let mut largest: Vec<(u32, u64)> = by_process.into_iter().collect();
    largest.sort_by_key(|(pid, ns)| (std::cmp::Reverse(*ns), *pid));
    let named = largest.into_iter().take(10).map(|(pid, ns)| Consumer {
        pid,
        comm: Stat::of_thread(pid, pid).map_or_else(|| "ended".to_owned(), |s| s.comm),
        cpu_percent: 100.0 * ns as f64 / window_ns.max(1) as f64,
    });
    let named: Vec<Consumer> = named.collect();
    match incomplete {
        Some(why) if named.first().is_none_or(|c| c.cpu_percent <= NOTEWORTHY_PERCENT) => Err(why),
        _ => Ok(named),
    }
}

fn real_time_above(
    used: &BTreeMap<(u32, u32), u64>,
    window_ns: u64,
    incomplete: Option<String>,
) -> Result<Vec<RealTimeTask>, String> {
    let own = std::process::id();
    let ours = Stat::of_thread(own, machmeter_sys::thread::tid() as u32);
    let our_priority = ours.filter(|s| s.real_time().is_some()).map_or(0, |s| s.priority);
    let mut above = Vec::new();
    for ((pid, tid), ns) in used.iter().filter(|((pid, _), _)| *pid != own) {
        let Some(stat) = Stat::of_thread(*pid, *tid) else { continue };
        let Some(policy) = stat.real_time().filter(|p| *p == "deadline" || stat.priority > our_priority)
        else {
            continue;
        };
        above.push(RealTimeTask {
            tid: *tid,
            policy: policy.to_owned(),
            cpus: procfs::allowed_cpus(*pid, *tid).unwrap_or_default(),
            cpu_percent: 100.0 * *ns as f64 / window_ns.max(1) as f64,
            comm: stat.comm,
            priority: stat.priority,
            kernel: stat.kernel,
        });
    }
    // Every kernel has real-time threads. If the kernel's threads are hidden, so are the threads of other users.
    let kernel_is_seen = Stat::of_thread(KTHREADD, KTHREADD).is_some_and(|s| s.kernel);
    let incomplete = incomplete.or_else(|| {
        (!kernel_is_seen).then(|| "threads of other users are hidden (container or hidepid)".to_owned())
    });
    above.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent).then(a.tid.cmp(&b.tid)));
    match incomplete {
        Some(why) if above.iter().all(|t| t.kernel) => Err(why),
        _ => Ok(above),
    }
}

/// Fastest turn of each block, ns, and the mean number of other threads that ran or waited meanwhile.
#[derive(Debug, Default)]
struct Steadiness {
    best_ns: Vec<f64>,
    mean_running: Option<f64>,
}

impl Steadiness {
    fn spread_percent(&self) -> Option<f64> {
        let mut sorted = self.best_ns.clone();
        sorted.sort_by(f64::total_cmp);
        if sorted.len() < FEWEST_BLOCKS {
            return None;
        }
        let at = |p| quantile(&sorted, p);
        let (low, middle, high) = (at(0.1)?, at(0.5)?, at(0.9)?);
        let spread = 100.0 * (high - low) / middle;
        spread.is_finite().then_some(spread)
    }
}

/// Repeats a fixed piece of arithmetic (20 000 dependent multiplications, about 20 us) until `end_ns`.
fn run_until(end_ns: u64) -> Steadiness {
    let mut steadiness = Steadiness::default();
    let (mut running, mut reads) = (0_u64, 0_u64);
    let mut now_ns = monotonic_ns();
    while now_ns < end_ns {
        let block_end_ns = (now_ns + BLOCK_NS).min(end_ns);
        let mut best_ns = u64::MAX;
        while now_ns < block_end_ns {
            turn();
            let after_ns = monotonic_ns();
            best_ns = best_ns.min(after_ns - now_ns);
            now_ns = after_ns;
        }
        steadiness.best_ns.push(best_ns as f64);
        if let Some(n) = procfs::running() {
            // The thread that reads the file runs, too.
            running += n.saturating_sub(1);
            reads += 1;
        }
        now_ns = monotonic_ns();
    }
    if reads > 0 {
        steadiness.mean_running = Some(running as f64 / reads as f64);
    }
    steadiness
}

#[inline(never)]
fn turn() {
    let mut x = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..20_000 {
        x = x.wrapping_mul(0x5851_F42D_4C95_7F2D).rotate_left(13);
    }
    black_box(x);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_spread_is_found() {
        let steady = |best_ns: Vec<f64>| Steadiness { best_ns, mean_running: None }.spread_percent();
        assert_eq!(steady(vec![20_000.0; 20]), Some(0.0));
        let wandering: Vec<f64> = (0..21).map(|i| 20_000.0 + 100.0 * f64::from(i)).collect();
        let spread = steady(wandering).unwrap();
        assert!((spread - 100.0 * 1600.0 / 21_000.0).abs() < 0.5, "{spread}");
        assert_eq!(steady(vec![20_000.0; 5]), None, "too few blocks say nothing");
    }

    #[test]
    fn a_busy_process_is_found_and_named_within_the_time() {
        let mut burner =
            std::process::Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(50));
        let mut found = false;
        let mut shortest_ns = u64::MAX;
        // On a busy machine the burner may get no CPU for a while.
        for _ in 0..20 {
            let began_ns = monotonic_ns();
            let live = sample(Duration::from_secs(5));
            shortest_ns = shortest_ns.min(monotonic_ns() - began_ns);
            found |=
                live.consumers.unwrap_or_default().iter().any(|c| c.pid == burner.id() && c.comm == "sh");
            if found {
                break;
            }
        }
        burner.kill().unwrap();
        burner.wait().unwrap();
        assert!(found, "a process that uses a whole CPU is among the ten largest");
        println!("{:.0} ms", shortest_ns as f64 / 1e6);
        assert!(shortest_ns < 3 * LONGEST_NS, "{shortest_ns} ns");
    }

    #[test]
    fn a_cpu_is_idle_if_only_the_meter_ran_there() {
        let busy = |times: [u64; 3]| (0..3).map(|cpu| (Some(cpu), times[cpu] * NS_PER_TICK)).collect();
        let (before, after): (Busy, Busy) = (busy([5, 5, 5]), busy([18, 18, 6]));
        let at = |cpu, ticks: u64| Some((cpu, ticks * NS_PER_TICK));
        assert_eq!(idle(&before, &after, at(1, 0), at(1, 13)).to_string(), "1-2");
        assert_eq!(idle(&before, &after, at(0, 0), at(1, 13)).to_string(), "2", "the meter moved");
        assert!(idle(&before, &after, None, at(1, 13)).is_empty(), "nothing is known of the meter");
    }

    #[test]
    fn a_look_that_ended_early_does_not_speak_for_the_system() {
        let look = Look::take(0);
        assert!(look.incomplete().unwrap().contains("only 0 of"));
        let none = BTreeMap::new();
        assert!(consumers(&none, 1, look.incomplete()).is_err());
        assert!(real_time_above(&none, 1, look.incomplete()).is_err());
        let heavy = BTreeMap::from([((u32::MAX, u32::MAX), 1_000_u64)]);
        assert_eq!(consumers(&heavy, 1_000, look.incomplete()).unwrap()[0].cpu_percent, 100.0);
    }
}
