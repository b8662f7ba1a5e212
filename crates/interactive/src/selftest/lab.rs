//! One CPU, on which a task is recorded while a disturber works; and how quiet the machine was meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Scope;

use machmeter_engine::selftest::machine::{self, STEAL};
use machmeter_engine::selftest::percent;
use machmeter_engine::stream::{Job, Stream};
use machmeter_engine::{Attributes, Progress, deadline};
use machmeter_stats::random::Random;
use machmeter_sys::counters;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{self, ScopedPlacedThread, spawn_placed_scoped};
use machmeter_sys::topology::Topology;

use super::Options;
use super::witness::{Gaps, MOST_GAPS, Seen, compare, watch};
use crate::oracle::{Away, simulate};
use crate::samples::Segment;
use crate::worker::{TaskProcess, TaskRequest};

pub(super) const OTHER: Policy = Policy::Other { nice: 0 };
/// From the order to begin until the first release, ns: the disturber is at work before.
const LEAD_NS: u64 = 60_000_000;
/// A task may answer so long after its end, ns.
const ANSWER_NS: u64 = 3_000_000_000;

pub(super) struct Lab<'a> {
    pub(super) cpu: usize,
    /// A CPU beside it for a disturber that is not to be in the way.
    pub(super) beside: Option<usize>,
    pub(super) quick: bool,
    pub(super) trials: Vec<Trial>,
    /// What a wake-up costs here before the kernel counts the thread as waiting, ns.
    pub(super) wake_cost_ns: f64,
    /// What waking up and going to sleep cost together at that time, by the third party, ns.
    pub(super) around_job_ns: Option<f64>,
    random: Random,
    pub(super) progress: &'a dyn Progress,
}

/// A segment, with what was done to the task by the disturber's own log.
pub(super) struct Trial {
    pub(super) what: String,
    pub(super) disturber: &'static str,
    pub(super) stream: Stream,
    pub(super) segment: Segment,
    pub(super) log: Log,
    /// The jobs as they should have been, by the simulation on the log and with what a wake-up costs.
    pub(super) expected: Vec<Job>,
    /// Which of those nothing but the disturber touched; `None` where that is not known.
    pub(super) seen: Option<Seen>,
    pub(super) around: Around,
    pub(super) calibration_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    /// When the task could not have the CPU; monotonic time, then counted from the segment's start.
    pub(super) away: Vec<Away>,
    /// When the log does not know exactly what was true; ascending.
    pub(super) unsure: Vec<Away>,
}

pub(super) struct Scene<'a> {
    pub(super) pid: i32,
    pub(super) tid: i32,
    /// When it may begin, ns (monotonic).
    pub(super) origin_ns: u64,
    pub(super) stop: &'a AtomicBool,
}
pub(super) struct Disturber<'a> {
    pub(super) name: &'static str,
    pub(super) cpu: Option<usize>,
    pub(super) policy: Policy,
    /// Whether its log tells when the task could not have the CPU.
    pub(super) logs: bool,
    pub(super) work: &'a (dyn Fn(&Scene<'_>) -> Log + Sync),
}

/// What the kernel's counters say of the CPU during a trial.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Around {
    /// Shares of the time: taken by the hypervisor; busy, whoever it was.
    pub(super) steal: f64,
    pub(super) busy: f64,
    /// Share that only kept the CPU awake.
    pub(super) awake: f64,
    /// What a wake-up cost when nothing was in the way, ns: as it did alone, and as much more as the third party saw.
    pub(super) wake_cost_ns: f64,
}

impl Scene<'_> {
    /// Has a `burst` at each beat of `period_ns` until one is the last. Passed beats are left out: no two without a pause.
    pub(super) fn at_beats(&self, phase_ns: u64, period_ns: u64, mut burst: impl FnMut() -> Option<()>) {
        let mut beat = 0;
        loop {
            thread::nanosleep_until(self.origin_ns + phase_ns + beat * period_ns);
            if self.stop.load(Ordering::Relaxed) || burst().is_none() {
                return;
            }
            let since_ns = thread::monotonic_ns().saturating_sub(self.origin_ns + phase_ns);
            beat = (beat + 1).max(since_ns / period_ns + 1);
        }
    }
}

/// Sets a flag when a scope is left, however it is left.
struct Stopping<'a>(&'a AtomicBool);

impl Drop for Stopping<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a> Lab<'a> {
    pub(super) fn open(options: &Options, progress: &'a dyn Progress) -> Result<Self, String> {
        let topology = Topology::host().map_err(|e| e.to_string())?;
        let (allowed, cpu) = machine::cpus(&topology, options.cpu)?;
        Ok(Self {
            cpu,
            beside: allowed.iter().find(|c| *c != cpu),
            quick: options.quick,
            trials: Vec::new(),
            wake_cost_ns: 0.0,
            around_job_ns: None,
            random: Random::new(options.seed),
            progress,
        })
    }

    pub(super) fn length_ns(&self) -> u64 {
        if self.quick { 1_500_000_000 } else { 8_000_000_000 }
    }

    pub(super) fn phase_ns(&mut self, period_ns: u64) -> u64 {
        self.random.below(period_ns as usize) as u64
    }

    /// Records `stream` under `policy` for `length_ns` while the disturber works.
    pub(super) fn record(
        &mut self,
        what: &str,
        stream: &Stream,
        policy: Policy,
        length_ns: u64,
        disturber: Option<&Disturber<'_>>,
    ) -> Result<&Trial, String> {
        self.progress.step(&format!("  {what}"));
        let attributes = Attributes {
            policy: Some(policy.to_string()),
            cpus: Some(self.cpu.to_string()),
            ..Attributes::default()
        };
        let request = TaskRequest { stream: stream.clone(), attributes, seed: self.random.bits() };
        let mut task = TaskProcess::start(&request)?;
        let stop = AtomicBool::new(false);
        let start_ns = thread::monotonic_ns() + LEAD_NS;
        let ready = task.ready.clone();
        let scene =
            Scene { pid: ready.pid, tid: ready.tids[0], origin_ns: start_ns - LEAD_NS / 2, stop: &stop };
        let (segment, mut log, gaps, mut around) = std::thread::scope(|scope| {
            let stopping = Stopping(&stop);
            let running = disturber
                .map(|d| spawn_placed_scoped(scope, d.name, d.cpu, d.policy, || (d.work)(&scene)))
                .transpose()
                .map_err(|e| e.to_string())?;
            let cpus = std::iter::once(self.cpu).chain(self.beside.filter(|_| disturber.is_some()));
            let keepers: Vec<_> = cpus.map(|cpu| keep_awake(scope, cpu, &stop)).collect::<Result<_, _>>()?;
            let before = counters::cpu_times().map_err(|e| e.to_string())?;
            task.go(start_ns, length_ns)?;
            wait_for(start_ns + length_ns, &mut task);
            let segment = task.collect(ANSWER_NS);
            let after = counters::cpu_times().map_err(|e| e.to_string())?;
            drop(stopping);
            let gaps = keepers.into_iter().map(ScopedPlacedThread::join).next().unwrap_or_default();
            let spent = after.since(&before).on_cpu(self.cpu).copied().unwrap_or_default();
            let [steal, busy, awake] = [spent.steal_ns, spent.busy_ns, gaps.cpu_ns]
                .map(|ns| ns as f64 / (length_ns + LEAD_NS) as f64);
            let around = Around { steal, busy, awake, wake_cost_ns: self.wake_cost_ns };
            let log = running.map(ScopedPlacedThread::join).unwrap_or_default();
            Ok::<_, String>((segment?, log, gaps, around))
        })?;
        let from_start = |spans: &[Away]| -> Vec<Away> {
            let since = |ns: u64| ns.saturating_sub(segment.start_ns);
            spans.iter().map(|s| (since(s.0), since(s.1))).collect()
        };
        log = Log { away: from_start(&log.away), unsure: from_start(&log.unsure) };
        let simulated =
            |wake_cost_ns: f64| simulate(stream, &log.away, segment.length_ns, wake_cost_ns as u64);
        let mut expected = simulated(0.0)?;
        let known = gaps.gaps.len() < MOST_GAPS && disturber.is_none_or(|d| d.logs);
        let takes_cpu = disturber.is_some_and(|d| d.cpu == Some(self.cpu));
        let seen = known.then(|| compare(&expected, &log, takes_cpu, &from_start(&gaps.gaps)));
        let around_job_ns = seen.as_ref().and_then(|s| s.around_job_ns);
        if let Some((now_ns, alone_ns)) = around_job_ns.zip(self.around_job_ns) {
            around.wake_cost_ns = (around.wake_cost_ns + now_ns - alone_ns).max(0.0);
        }
        if around.wake_cost_ns.is_finite() {
            expected = simulated(around.wake_cost_ns)?;
        }
        self.trials.push(Trial {
            what: what.to_owned(),
            disturber: disturber.map_or("", |d| d.name),
            stream: stream.clone(),
            segment,
            log,
            expected,
            seen,
            around,
            calibration_ns: ready.calibration_ns,
        });
        self.trials.last().ok_or_else(|| "nothing was recorded".to_owned())
    }
}

impl Trial {
    /// Share of the segment in which others than the task had the CPU, the disturber among them.
    pub(super) fn others(&self) -> f64 {
        let own_ns = self.segment.on_cpu_ns.unwrap_or(0) as f64;
        let own = own_ns / self.segment.length_ns.max(1) as f64;
        (self.around.busy - self.around.awake - own).max(0.0)
    }

    /// Those of `jobs` that nothing but the disturber touched; `None` where that is not known, or they are less than half.
    pub(super) fn judged(&self, jobs: &[Job]) -> Option<Vec<Job>> {
        let undisturbed = &self.seen.as_ref()?.undisturbed;
        let those: Vec<Job> = jobs.iter().zip(undisturbed).filter(|(_, u)| **u).map(|(j, _)| *j).collect();
        (2 * those.len() >= undisturbed.len()).then_some(those)
    }

    /// Why the hypervisor was in the way, if it was.
    pub(super) fn stolen(&self) -> Option<String> {
        let (taken, bound) = (percent(self.around.steal), percent(STEAL));
        let why = || format!("the hypervisor took {taken} of the CPU (bound {bound})");
        (self.around.steal > STEAL).then(why)
    }
}

/// Watches a CPU below everything else, which keeps it awake: a host lets an idle virtual CPU wait (up to hundreds of us).
fn keep_awake<'scope>(
    scope: &'scope Scope<'scope, '_>,
    cpu: usize,
    stop: &'scope AtomicBool,
) -> Result<ScopedPlacedThread<'scope, Gaps>, String> {
    spawn_placed_scoped(scope, "mm-awake", Some(cpu), Policy::Idle, || watch(stop)).map_err(|e| e.to_string())
}

/// Sleeps until then; a signal ends the segment.
fn wait_for(until_ns: u64, task: &mut TaskProcess) {
    while thread::monotonic_ns() < until_ns {
        if deadline::stop_requested() {
            task.stop();
            return;
        }
        thread::nanosleep_until(until_ns.min(thread::monotonic_ns() + 100_000_000));
    }
}
