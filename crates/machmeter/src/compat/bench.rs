//! Sets the machine up for a compatibility mode, as the original programs do.
//!
//! A run uses the first CPUs that it may use, one thread on each, under the policy with which the program was started.

use machmeter_data::Facts;
use machmeter_data::quantity::{Unit, human};
use machmeter_engine::placement::Priority;
use machmeter_engine::{Deadline, Host, Level, Loads, NoLoads, deadline, host};
use machmeter_noise::Quantum;
use machmeter_noise::samples::Samples;
use machmeter_noise::windows::{Turn, WindowRequest, calibrate, record_windows};
use machmeter_sys::clock::{Qualification, TickRate, qualify};
use machmeter_sys::guard::signals;
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread;
use machmeter_sys::topology::{CpuSet, Topology};

use crate::{Failure, Result, output, session};

/// Most entries in the list of gaps, per thread.
const GAPS_MOST: f64 = 4e6;
/// Gaps per second that fit into the list.
const GAPS_PER_SECOND: f64 = 20_000.0;

/// The machine with a qualified clock.
pub(super) struct Bench {
    topology: Topology,
    allowed: CpuSet,
    pub(super) cpus: CpuSet,
    clock: Qualification,
    priority: Priority,
}

impl Bench {
    /// Takes the first `threads` allowed CPUs, as requested by `option`; thread k gets the k-th. Without `policy`, the policy of the caller stays.
    /// Errors: too few CPUs, or no usable clock.
    pub(super) fn of_threads(option: &str, threads: usize, policy: Option<Policy>) -> Result<Self> {
        signals::install().map_err(Failure::cannot)?;
        let (topology, allowed, usable) = session::cpus("all")?;
        if threads > usable.len() {
            let most = usable.len();
            let why =
                format!("each thread needs its own CPU, but only {most} are allowed here (CPU {usable})");
            return Err(Failure::usage(format!("{option} {threads}: {why}")).help(format!("{option} {most}")));
        }
        let cpus: CpuSet = usable.iter().take(threads).collect();
        // A thread with a deadline policy can't be pinned.
        let inherited = || sched::current().ok().filter(|p| !matches!(p, Policy::Deadline { .. }));
        let policy = policy.or_else(inherited).unwrap_or(Policy::ordinary());
        let clock = qualify(&cpus.to_vec()).map_err(Failure::cannot)?;
        Ok(Self { topology, allowed, cpus, clock, priority: Priority::Asked(policy) })
    }

    /// The rate of ticks.
    pub(super) fn rate(&self) -> TickRate {
        self.clock.tick_rate()
    }

    /// A duration in ticks as text.
    pub(super) fn span(&self, ticks: f64) -> String {
        human(ticks * self.rate().ns_per_tick(), Unit::Nanoseconds)
    }

    /// Length of an undisturbed turn of the loop.
    pub(super) fn turn(&self, quantum: Quantum) -> Result<Turn> {
        Ok(calibrate(&self.host(&NoLoads), quantum)?)
    }

    /// Records `windows` windows of `window_ticks` on all CPUs at once.
    pub(super) fn record(
        &self,
        quantum: Quantum,
        window_ticks: u64,
        windows: usize,
        align: bool,
        threshold_ticks: u64,
    ) -> Result<Samples> {
        let seconds = self.rate().ns(window_ticks) * windows as f64 / 1e9;
        let gap_capacity = (seconds * GAPS_PER_SECOND).clamp(8192.0, GAPS_MOST) as usize;
        let request = WindowRequest { quantum, window_ticks, windows, align, threshold_ticks, gap_capacity };
        Ok(record_windows(&self.host(&NoLoads), &request)?)
    }

    /// Prints which windows are recorded next, and their duration.
    pub(super) fn announce(&self, name: &str, window_ticks: u64, windows: usize) {
        let [each, all] = [1, windows].map(|n| self.span(window_ticks as f64 * n as f64));
        output::say(&format!("{name}: {windows} windows of {each} on CPU {}: {all}", self.cpus));
    }

    /// Sleeps; ends early after a stop signal.
    pub(super) fn wait_ms(ms: u64) {
        let until_ns = thread::monotonic_ns() + ms * 1_000_000;
        while thread::monotonic_ns() < until_ns && !deadline::stop_requested() {
            thread::nanosleep_until(until_ns.min(thread::monotonic_ns() + 20_000_000));
        }
    }

    /// The host in the form for probes, with these loads.
    pub(super) fn host<'a>(&'a self, loads: &'a dyn Loads) -> Host<'a> {
        Host {
            cpus: self.cpus.clone(),
            allowed: self.allowed.clone(),
            topology: self.topology.clone(),
            clock: self.clock.clone(),
            rate: self.rate(),
            level: Level::Standard,
            priority: self.priority,
            seed: 0,
            dry_run: false,
            budget: Deadline::start(u64::MAX),
            fills_time: false,
            best_ever: &|_| None,
            open_record: &host::nothing_stored,
            loads,
            progress: &host::Silent,
        }
    }
}

pub(super) fn counts_of(samples: &Samples) -> Vec<Vec<i32>> {
    let mut counts: Vec<Vec<i32>> =
        samples.cpus.iter().map(|c| c.counts.iter().map(|n| *n as i32).collect()).collect();
    level_off(&mut counts);
    counts
}

/// The fields of `uname`: system, host, release, version, machine.
pub(super) fn uname(facts: &Facts) -> [String; 5] {
    [
        "Linux".to_owned(),
        fact(facts, "private.hostname"),
        fact(facts, "kernel.release"),
        fact(facts, "kernel.version"),
        std::env::consts::ARCH.to_owned(),
    ]
}

/// A fact in the form of the original programs.
pub(super) fn fact(facts: &Facts, key: &str) -> String {
    facts.text(key).unwrap_or("(unknown)").to_owned()
}

/// Cuts all lists to the length of the shortest. A signal can leave them unequal by one window.
pub(super) fn level_off<T>(lists: &mut [Vec<T>]) {
    let shortest = lists.iter().map(Vec::len).min().unwrap_or(0);
    for l in lists {
        l.truncate(shortest);
    }
}
