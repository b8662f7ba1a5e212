//! What must hold in every recording: each release accounted for, the CPU time asked for, a split that closes.

use std::sync::atomic::Ordering;

use machmeter_engine::stream::{Job, Overload};
use machmeter_stats::quantile::median_of;

use super::judge::waited_ns;
use super::lab::{Disturber, Lab, Log, OTHER, Scene, Trial};
use super::point::periodic;
use machmeter_engine::selftest::{SelfCheck, State, percent};

/// Bars: CPU time of the median job, calibration, closing of the split, agreement with the kernel.
const CPU: f64 = 0.01;
const CALIBRATION_NS: u64 = 500_000_000;
const CLOSES_NS: i64 = 1_000;
const ACCOUNT: f64 = 0.02;
const ACCOUNT_NS_PER_S: f64 = 1e6;

/// What the clocks of a task and the third party may differ by, with their loops, ns.
const CLOCK_NS: f64 = 10_000.0;
/// Times that the task alone is recorded until the machine was quiet.
const ALONE: usize = 4;

/// A task alone: what a wake-up costs here. Its lateness has to fit into what the third party lost.
pub(super) fn alone(lab: &mut Lab<'_>) -> SelfCheck {
    let (id, what) = ("alone.wake", format!("nothing injected, a task {OTHER}, 1 ms of CPU every 5 ms"));
    let bar = "median lateness not above what the third party lost, and 10 us";
    let length_ns = if lab.quick { 1_000_000_000 } else { 3_000_000_000 };
    let stream = periodic(5_000, 1_000, Overload::Drop);
    (lab.wake_cost_ns, lab.around_job_ns) = (f64::INFINITY, None);
    for _ in 0..ALONE {
        let trial = match lab.record(&what, &stream, OTHER, length_ns, None) {
            Ok(trial) => trial,
            Err(why) => return SelfCheck::not_shown(id, &what, bar, why),
        };
        let jobs = trial.judged(&trial.segment.jobs);
        let waits: Vec<f64> = jobs.iter().flatten().filter(|j| j.slept()).map(|j| j.wake_ns as f64).collect();
        let Some(median_ns) = median_of(&waits) else { continue };
        let others = percent(trial.others());
        // Nearly all of it passes before the kernel counts the thread as waiting: the timer, its interrupt.
        let cost_ns = waits.iter().sum::<f64>() / waits.len() as f64;
        let around_job_ns = trial.seen.as_ref().and_then(|s| s.around_job_ns);
        let releases = trial.segment.jobs.len();
        (lab.wake_cost_ns, lab.around_job_ns) = (cost_ns, around_job_ns);
        let Some(around_ns) = around_job_ns else { continue };
        let truth = format!(
            "{releases} releases; a third party lost the CPU for {:.1} us more than the job needed",
            around_ns / 1e3
        );
        let found = format!(
            "lateness {:.1} us in the median, {:.1} us on average of {} undisturbed wake-ups; others had {others} of the CPU",
            median_ns / 1e3,
            cost_ns / 1e3,
            waits.len()
        );
        let state = State::of(median_ns <= around_ns + CLOCK_NS);
        return SelfCheck::new(id, &what, bar, truth, found, state);
    }
    let why =
        format!("something else had the CPU in {ALONE} recordings; it is not known what a wake-up costs");
    SelfCheck::not_shown(id, &what, bar, why)
}

/// A task beside a thread of the same policy: waits that only the kernel knows. A check where it was not recorded.
pub(super) fn beside_a_spinner(lab: &mut Lab<'_>) -> Option<SelfCheck> {
    let what = format!("a spinning thread on the CPU of a task, both {OTHER}, 3 ms of CPU every 10 ms");
    let stream = periodic(10_000, 3_000, Overload::Queue { most_periods: 8 });
    let work = |scene: &Scene<'_>| {
        while !scene.stop.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        Log::default()
    };
    let disturber =
        Disturber { name: "mm-spin", cpu: Some(lab.cpu), policy: OTHER, logs: false, work: &work };
    let length_ns = if lab.quick { 2_000_000_000 } else { 8_000_000_000 };
    let refused = lab.record(&what, &stream, OTHER, length_ns, Some(&disturber)).err()?;
    Some(SelfCheck::not_shown("account.spin", &what, "-", refused))
}
pub(super) fn of_all(lab: &Lab<'_>) -> Vec<SelfCheck> {
    let trials = &lab.trials;
    if trials.is_empty() {
        let what = "everything recorded above";
        return vec![SelfCheck::not_shown("releases", what, "-", "nothing was recorded")];
    }
    let mut checks = vec![releases(trials), cpu(trials), calibration(trials), closes(trials)];
    checks.extend(["spin", "hog"].iter().filter_map(|name| account(name, trials)));
    checks
}

fn releases(trials: &[Trial]) -> SelfCheck {
    let of = |t: &Trial| {
        let jobs = &t.segment.jobs;
        let due = t.stream.period_ns().map_or(0, |p| t.segment.length_ns.div_ceil(p));
        let numbered = jobs.iter().zip(0_u64..).all(|(j, k)| j.number == k);
        let whole = t.segment.trouble.is_none() && numbered && due == jobs.len() as u64;
        (due, jobs.iter().filter(|j| j.ran()).count(), jobs.iter().filter(|j| !j.ran()).count(), whole)
    };
    let all: Vec<_> = trials.iter().map(of).collect();
    let broken = all.iter().filter(|a| !a.3).count();
    let what = format!("{} segments", trials.len());
    let truth = format!("{} releases by the clock", all.iter().map(|a| a.0).sum::<u64>());
    let (executed, dropped) = all.iter().fold((0, 0), |sum, a| (sum.0 + a.1, sum.1 + a.2));
    let found =
        format!("{executed} executed + {dropped} dropped; {broken} segments in which they do not add up");
    let bar = "executed + dropped = scheduled, exactly, in every segment";
    SelfCheck::new("releases", &what, bar, truth, found, State::of(broken == 0))
}

/// Of undisturbed jobs: what a hypervisor takes in the middle of one is counted as the job's CPU time, however short.
fn cpu(trials: &[Trial]) -> SelfCheck {
    let what = "CPU time per job by the thread's clock, median of each segment";
    let bar = "within 1 % of what was asked for";
    let of = |t: &Trial| {
        if t.stolen().is_some() {
            return None;
        }
        let share = |j: &Job| Some(j.cpu_ns as f64 / t.stream.cpu_ns(j.number)? as f64);
        let shares: Vec<f64> =
            t.judged(&t.segment.jobs)?.iter().filter(|j| j.ran()).filter_map(share).collect();
        Some((median_of(&shares)? - 1.0, shares.len()))
    };
    let all: Vec<(f64, usize)> = trials.iter().filter_map(of).collect();
    let Some((worst, _)) = all.iter().max_by(|a, b| a.0.abs().total_cmp(&b.0.abs())) else {
        let why = "in every segment the hypervisor or something else had the CPU";
        return SelfCheck::not_shown("cpu", what, bar, why);
    };
    let found = format!(
        "the worst of {} segments {:+.3} %, of {} undisturbed jobs in all; {} more segments were disturbed or it is not known",
        all.len(),
        worst * 100.0,
        all.iter().map(|a| a.1).sum::<usize>(),
        trials.len() - all.len()
    );
    let truth = "as much as was asked for".to_owned();
    SelfCheck::new("cpu", what, bar, truth, found, State::of(worst.abs() <= CPU))
}

fn calibration(trials: &[Trial]) -> SelfCheck {
    let longest_ns = trials.iter().map(|t| t.calibration_ns).max().unwrap_or(0);
    let (what, bar) = ("calibration of every task's process", "at most 500 ms");
    let truth = format!("{} processes", trials.len());
    let found = format!("the longest took {:.1} ms", longest_ns as f64 / 1e6);
    SelfCheck::new("calibration", what, bar, truth, found, State::of(longest_ns <= CALIBRATION_NS))
}

fn closes(trials: &[Trial]) -> SelfCheck {
    let jobs = || trials.iter().flat_map(|t| &t.segment.jobs).filter(|j| j.ran());
    let least_ns = jobs().map(Job::preempt_ns).min().unwrap_or(0);
    let what = "waiting + preempted + CPU time = response, of every executed job";
    let truth = format!("{} jobs: no part is negative", jobs().count());
    let found = format!("the smallest part that is left over is {least_ns} ns");
    SelfCheck::new("split", what, "not below -1 us", truth, found, State::of(least_ns >= -CLOSES_NS))
}

/// Whether the waits beside a spinning thread are not shown yet, though the kernel accounts for them.
pub(super) fn spinner_is_open(lab: &Lab<'_>) -> bool {
    let accounted = lab.trials.iter().all(|t| t.segment.run_delay_ns.is_some());
    accounted && account("spin", &lab.trials).is_some_and(|c| c.state == State::NotShown)
}

/// Waits by the jobs, less what a wake-up costs before the kernel counts, against the kernel's account; without steal.
fn account(disturber: &str, trials: &[Trial]) -> Option<SelfCheck> {
    let id = format!("account.{disturber}");
    let what = "waits by the jobs against the kernel's run delay of the same thread";
    let bar = "within 2 % + 1 ms per second";
    let mut trials: Vec<&Trial> =
        trials.iter().filter(|t| t.disturber.strip_prefix("mm-") == Some(disturber)).collect();
    let first = *trials.first()?;
    trials.retain(|t| t.stolen().is_none() && t.around.wake_cost_ns.is_finite());
    if trials.is_empty() {
        let unknown = || "it is not known what a wake-up costs here: something else had the CPU".to_owned();
        return Some(SelfCheck::not_shown(&id, what, bar, first.stolen().unwrap_or_else(unknown)));
    }
    let kernel: Option<u64> = trials.iter().map(|t| t.segment.run_delay_ns).sum();
    let Some(kernel_ns) = kernel else {
        let why = "the kernel does not account run delay (schedstat)";
        return Some(SelfCheck::not_shown(&id, what, bar, why));
    };
    let kernel_ns = kernel_ns as f64;
    let wakes = |t: &Trial| t.segment.jobs.iter().filter(|j| j.slept()).count() as f64;
    let raw_ns = trials.iter().map(|t| waited_ns(&t.segment.jobs)).sum::<i64>() as f64;
    let off_ns = trials.iter().map(|t| wakes(t) * t.around.wake_cost_ns).sum::<f64>();
    let jobs_ns = raw_ns - off_ns;
    let seconds: f64 = trials.iter().map(|t| t.segment.length_ns as f64 / 1e9).sum();
    let met = (jobs_ns - kernel_ns).abs() <= ACCOUNT * kernel_ns + ACCOUNT_NS_PER_S * seconds;
    let found = format!(
        "{:.2} ms by the jobs, {:+.2} % ({:.2} ms before {:.2} ms for {} wake-ups are taken off)",
        jobs_ns / 1e6,
        (jobs_ns / kernel_ns.max(1.0) - 1.0) * 100.0,
        raw_ns / 1e6,
        off_ns / 1e6,
        trials.iter().map(|t| wakes(t)).sum::<f64>()
    );
    let truth = format!("{:.2} ms in {seconds:.1} s by the kernel", kernel_ns / 1e6);
    Some(SelfCheck::new(&id, what, bar, truth, found, State::of(met)))
}
