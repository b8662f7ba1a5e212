//! Where the time of a job went: waiting to be woken, kept from the CPU, working; what the kernel says of it, and what the
//! loads got done beside it: the price of latency.

use std::collections::BTreeMap;

use machmeter_data::{Interval, Metric};
use machmeter_engine::stream::{Fate, Job};
use machmeter_stats::distribution::t_quantile;
use machmeter_stats::quantile::median_of;
use machmeter_stats::serial::mean_interval;
use machmeter_stats::spread::{mean, stddev};

use super::figures::{median_metric, with_tail};
use super::view::{CellView, LEVEL, method, with_estimate};
use crate::info;

/// Jobs whose CPU time exceeds their response by more than this, ns, and a hundredth of the response are impossible.
const CLOCKS_NS: f64 = 20_000.0;

/// Wake-up cost of each task when nothing disturbs it: the median under load none, ns per job that slept.
pub(super) fn undisturbed(views: &[CellView<'_>]) -> BTreeMap<String, f64> {
    let alone = views.iter().filter(|v| v.cell.load == "none");
    alone.filter_map(|v| Some((v.cell.task.clone(), median_of(&wakes(v).values)?))).collect()
}

fn wakes(view: &CellView<'_>) -> super::view::Series {
    view.series(|j| (j.fate == Fate::Ran).then_some(j.wake_ns as f64))
}

/// Wake, preemption, CPU and response of the executed jobs, and the comparison with the kernel's account.
pub(super) fn of_cell(view: &CellView<'_>, undisturbed_ns: Option<f64>) -> Vec<Metric> {
    if view.jobs.is_empty() {
        return Vec::new();
    }
    let mut out = Vec::new();
    if !view.back_to_back() {
        out.push(median_metric(view, &info::WAKE, &wakes(view), "no executed job slept before its release"));
    }
    out.push(preempt(view));
    let cpu = view.series(|j| j.ran().then_some(j.cpu_ns as f64));
    out.push(median_metric(view, &info::CPU, &cpu, "no job was executed"));
    let response = view.series(|j| j.ran().then_some(j.response_ns as f64));
    out.push(median_metric(view, &info::RESPONSE, &response, "no job was executed"));
    out.extend(kernel_wait(view, undisturbed_ns));
    out
}

fn preempt(view: &CellView<'_>) -> Metric {
    let series = view.series(|j| j.ran().then_some(j.preempt_ns() as f64));
    let n = series.values.len();
    let impossible = view.jobs.iter().filter(|j| j.ran() && is_impossible(j)).count();
    if impossible * 100 > n {
        let why = format!("{impossible} of {n} jobs used more CPU time than they took: the clocks disagree");
        return view.refuse(&info::PREEMPT, &why);
    }
    // What is below zero is the resolution of two clocks.
    let xs: Vec<f64> = series.values.iter().map(|x| x.max(0.0)).collect();
    let Some(value) = mean(&xs) else { return view.refuse(&info::PREEMPT, "no job was executed") };
    let m = view.metric(&info::PREEMPT, value, "mean", n);
    let m = with_estimate(m, &mean_interval(&xs, &series.lengths, LEVEL), method::MEAN);
    with_tail(m, &xs)
}

fn is_impossible(job: &Job) -> bool {
    (job.preempt_ns() as f64) < -CLOCKS_NS - job.response_ns as f64 / 100.0
}

/// Waits of a cell by both accounts, ns, over the segments whose run delay the kernel told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Accounts {
    /// As recorded, less the undisturbed cost of the wake-ups.
    pub(super) recorded_ns: f64,
    /// What the kernel must have counted at least: waits of threads that had begun, less own cost and what the hypervisor took.
    pub(super) least_ns: f64,
    /// And at most: those and all waits to be woken, of which only the part on the run queue is the kernel's.
    pub(super) most_ns: f64,
    pub(super) kernel_ns: f64,
    pub(super) length_ns: f64,
    pub(super) jobs: usize,
}

/// Both accounts; `None` where the kernel told nothing.
pub(super) fn accounts(view: &CellView<'_>, undisturbed_ns: Option<f64>) -> Option<Accounts> {
    let mut out = Accounts::default();
    let preempted: Vec<f64> =
        view.jobs.iter().filter(|j| j.ran()).map(|j| j.preempt_ns().max(0) as f64).collect();
    // Looks at the clocks, which every job has. Where most jobs were preempted, too much: no alarm rather than a false one.
    let own_ns = median_of(&preempted).unwrap_or(0.0);
    for s in &view.segments {
        let Some(kernel) = s.run_delay_ns else { continue };
        let (waits, wakeups) = waits(&s.jobs);
        let ran = s.jobs.iter().filter(|j| j.ran()).count();
        let preempted: i64 = s.jobs.iter().filter(|j| j.ran()).map(Job::preempt_ns).sum();
        out.recorded_ns += waits as f64 - undisturbed_ns.unwrap_or(0.0) * wakeups as f64 + preempted as f64;
        out.least_ns += preempted as f64 - own_ns * ran as f64 - s.steal_ns.unwrap_or(0) as f64;
        out.most_ns += waits as f64 + preempted as f64;
        out.kernel_ns += kernel as f64;
        out.length_ns += s.length_ns as f64;
        out.jobs += s.jobs.len();
    }
    out.recorded_ns = out.recorded_ns.max(0.0);
    (out.jobs > 0).then_some(out)
}

/// Waits for the wake-ups of one segment, ns, and the wake-ups. While the job before worked, the task waited for no CPU:
/// of a late wake-up only what lies after that job's end counts, once.
pub(crate) fn waits(jobs: &[Job]) -> (u64, u64) {
    let (mut busy_until_ns, mut sum_ns, mut wakeups) = (0, 0, 0);
    for j in jobs {
        let head_start_ns = busy_until_ns.max(j.release_ns) - j.release_ns;
        let wait_ns = j.wake_ns.saturating_sub(head_start_ns);
        let slept = j.release_ns >= busy_until_ns && (j.fate == Fate::Ran || wait_ns > 0);
        sum_ns += wait_ns;
        wakeups += u64::from(slept);
        busy_until_ns = busy_until_ns.max(j.release_ns + j.response_ns);
    }
    (sum_ns, wakeups)
}

fn kernel_wait(view: &CellView<'_>, undisturbed_ns: Option<f64>) -> Option<Metric> {
    let a = accounts(view, undisturbed_ns)?;
    if a.kernel_ns <= 0.0 {
        return Some(view.refuse(&info::KERNEL_WAIT, "the kernel counted no wait at all"));
    }
    let ratio = a.recorded_ns / a.kernel_ns;
    Some(view.metric(&info::KERNEL_WAIT, ratio, "ratio of sums", a.jobs))
}

/// Segments from which on their rates make an interval.
const SEGMENTS_FOR_INTERVAL: usize = 3;

/// Work per second beside a task, Hz; `None` where the load counts none.
pub(super) fn rate_hz(view: &CellView<'_>) -> Option<f64> {
    let (work, ns) = view.segments.iter().fold((0_u64, 0_u64), |(w, t), s| (w + s.load_work, t + s.load_ns));
    (view.cell.load != "none" && ns > 0).then(|| work as f64 / (ns as f64 / 1e9))
}

/// The metric of a cell. Its blocks are the segments.
pub(super) fn load_work(view: &CellView<'_>) -> Option<Metric> {
    let value = rate_hz(view)?;
    let counted = view.segments.iter().filter(|s| s.load_ns > 0);
    let rates: Vec<f64> = counted.map(|s| s.load_work as f64 / (s.load_ns as f64 / 1e9)).collect();
    let n = rates.len();
    let m = view.metric(&info::LOAD_WORK, value, "work over time", n);
    if n < SEGMENTS_FOR_INTERVAL {
        return Some(m);
    }
    Some(m.with_ci(interval(&rates)).with_blocks(rates, view.length_ns() / n as f64))
}

fn interval(rates: &[f64]) -> Option<Interval> {
    let n = rates.len() as f64;
    let half = t_quantile(0.5 + LEVEL / 2.0, n - 1.0)? * stddev(rates)? / n.sqrt();
    let center = mean(rates)?;
    Interval::new(LEVEL, (center - half).max(0.0), center + half, "t over segments")
}
