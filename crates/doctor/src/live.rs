//! What a look at the running machine adds to its files: who runs, under which policy, and how steady the speed is. Takes
//! at most 200 ms and needs no rights; what cannot be seen is stated.

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

/// Longest time that [`sample`] takes, both looks at all threads included.
pub const LONGEST_NS: u64 = 200_000_000;
/// Each look at all threads may take this share of the time, as 1/n.
const LOOK_PART: u64 = 3;
/// A consumer above this is worth a name even when not all processes could be looked at.
const NOTEWORTHY_PERCENT: f64 = 5.0;
/// The speed is the best turn of each block of this length.
const BLOCK_NS: u64 = 5_000_000;
const FEWEST_BLOCKS: usize = 6;
/// The parent of all kernel threads has this number where the process is in the initial PID namespace.
const KTHREADD: u32 = 2;

#[derive(Debug, Clone, PartialEq)]
pub struct Live {
    /// Time between the two looks, ns.
    pub window_ns: u64,
    /// Spread of the speed of fixed work between blocks of time (10 % to 90 % quantile against the median), percent.
    pub speed_spread_percent: Option<f64>,
    /// CPUs on which no thread of others ran for a noteworthy time.
    pub idle: CpuSet,
    /// Other processes by CPU time, the largest first; or why they could not be seen.
    pub consumers: Result<Vec<Consumer>, String>,
    /// CPUs of the machine.
    pub cpus: usize,
    /// CPU time of all other processes that can be seen, percent of one CPU.
    pub others_percent: f64,
    /// CPU time that no visible process owns, percent of one CPU.
    pub hidden_percent: Option<f64>,
    /// Real-time threads of other processes with a higher priority than ours; or why they could not be seen.
    pub rt_above: Result<Vec<RealTimeTask>, String>,
    /// Mean number of other threads that run or wait for a CPU.
    pub runnable: Option<f64>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Consumer {
    pub pid: u32,
    pub comm: String,
    /// CPU time of all its threads, percent of one CPU.
    pub cpu_percent: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RealTimeTask {
    pub tid: u32,
    pub comm: String,
    /// `fifo`, `rr`, `deadline`.
    pub policy: String,
    /// 1 to 99; 0 for `deadline`, which is above all.
    pub priority: u32,
    pub cpus: CpuSet,
    /// CPU time, percent of one CPU.
    pub cpu_percent: f64,
    /// Whether it belongs to the kernel.
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
    /// By (process, thread): CPU time, ns.
    cpu_ns: BTreeMap<(u32, u32), u64>,
    /// Processes listed and processes looked at in time.
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

    /// Why this look does not speak for the whole system, if it does not.
    fn incomplete(&self) -> Option<String> {
        if self.listed == 0 {
            return Some("/proc shows no process".to_owned());
        }
        let (seen, all) = (self.looked_at, self.listed);
        (seen < all).then(|| format!("only {seen} of {all} processes could be looked at in the time allowed"))
    }
}

/// Looks at all threads twice, at most `duration` (and 200 ms) apart, and times a loop on the caller's CPU in between.
pub fn sample(duration: Duration) -> Live {
    let total_ns = u64::try_from(duration.as_nanos()).unwrap_or(LONGEST_NS).min(LONGEST_NS);
    let began_ns = monotonic_ns();
    let first = Look::take(began_ns + total_ns / LOOK_PART);
    let looked_ns = monotonic_ns();
    let (before, own_before) = (procfs::busy_ns(), own());
    // The second look costs what the first did.
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

/// The CPU this thread is on, and its CPU time so far, ns.
fn own() -> Option<(usize, u64)> {
    let tid = machmeter_sys::thread::tid() as u32;
    Some((machmeter_sys::affinity::current_cpu()?, procfs::cpu_ns(std::process::id(), tid)?))
}

/// CPUs that others used for two units of the kernel's count at most, which is what rounding makes of nothing. That of the meter counts
/// if it stayed there; its own time is taken off.
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

/// CPU time between two looks of each thread that was there in the second, ns. A thread that began meanwhile counts from 0.
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
    // Every kernel has real-time threads of its own. Who cannot see the kernel's threads cannot see those of others.
    let kernel_is_seen = Stat::of_thread(KTHREADD, KTHREADD).is_some_and(|s| s.kernel);
    let incomplete = incomplete.or_else(|| {
        (!kernel_is_seen).then(|| "threads of others are hidden from here (container or hidepid)".to_owned())
    });
    above.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent).then(a.tid.cmp(&b.tid)));
    match incomplete {
        Some(why) if above.iter().all(|t| t.kernel) => Err(why),
        _ => Ok(above),
    }
}

/// Best time of a turn in each block, and how many others ran meanwhile.
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

/// Repeats a fixed piece of arithmetic (a chain of multiplications, about 20 us) until `end_ns`.
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
            // The reader itself runs.
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
