//! Gaps over 1 ms: how often a CPU stops for longer than a program with a deadline of 1 ms can bear, and the longest such gap.
//!
//! The rate counts the gaps of all CPUs over the time of all CPUs. Its interval is the exact one of a Poisson count, so that a
//! short run without such a gap shows no more than it can: after `T` CPU-seconds the rate may still be `3.7 / T`.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::summary::of_cpus;
use machmeter_data::{Interval, Metric};
use machmeter_stats::distribution::poisson_interval;

use super::figures::{CpuView, LEVEL};
use crate::attribute::activity_log::{ActivityLog, Source};
use crate::info;

/// A gap longer than this breaks a reaction time of 1 ms, ns.
pub(super) const LONG_NS: f64 = 1e6;
const POISSON: &str = "poisson";

/// Gaps over 1 ms per CPU-second, over all CPUs.
pub(super) fn rate(views: &[CpuView<'_>]) -> Option<Metric> {
    let seconds: f64 = views.iter().map(CpuView::wall_s).sum();
    if seconds <= 0.0 {
        return None;
    }
    let count = views.iter().map(count).sum::<u64>();
    let ends = poisson_interval(count, LEVEL)?.map(|gaps| gaps / seconds);
    let metric = Metric::new(
        &info::LONG_GAPS,
        params([("cpu", "all".into())]),
        count as f64 / seconds,
        "count per time",
        count,
    );
    Some(metric.with_ci(Interval::new(LEVEL, ends[0], ends[1], POISSON)))
}

/// Gaps over 1 ms of one CPU. A bucket of a histogram that spans 1 ms counts as longer.
fn count(view: &CpuView<'_>) -> u64 {
    view.all_durations().lots.iter().filter(|lot| lot.1 > LONG_NS).map(|lot| lot.2).sum()
}

/// The gaps over 1 ms and the longest gap, as the reason of a verdict: how many, when, on which CPU, caused by what.
pub(super) fn reason(views: &[CpuView<'_>], activity_log: &ActivityLog, rate: &Metric) -> String {
    let wall_s = views.iter().map(CpuView::wall_s).fold(f64::INFINITY, f64::min);
    let span = format!("in {} on {}", human(wall_s * 1e9, Unit::Nanoseconds), of_cpus(views.len()));
    let longest = views.iter().filter_map(|v| longest(v, activity_log)).max_by(|a, b| a.0.total_cmp(&b.0));
    let (ns, place) = longest.unwrap_or_default();
    let longest = human(ns, Unit::Nanoseconds);
    match rate.n {
        0 if ns > 0.0 => format!("no gap over 1 ms {span}; the longest was {longest}"),
        0 => format!("no gap over 1 ms {span}"),
        1 => format!("1 gap over 1 ms {span}: {longest}{place}"),
        n => format!("{n} gaps over 1 ms {span}, the longest {longest}{place}"),
    }
}

/// The longest gap of a CPU, ns, and its place and cause, if the list has it: `, CPU 0 at 3.21 s (timer tick)`.
fn longest(view: &CpuView<'_>, activity_log: &ActivityLog) -> Option<(f64, String)> {
    let longest_ns = view.all_durations().lots.last()?.1;
    let listed = view.durations_ns();
    let Some(at) = (0..listed.len())
        .max_by(|a, b| listed[*a].total_cmp(&listed[*b]))
        .filter(|at| listed[*at] >= longest_ns)
    else {
        return Some((longest_ns, format!(", {}", view.name())));
    };
    let start_ns = view.starts_s()[at] * 1e9;
    let when = if start_ns > 0.0 { human(start_ns, Unit::Nanoseconds) } else { "the start".to_owned() };
    let source = view.cpu.attributed.get(at).and_then(|a| activity_log.source(a.main));
    let cause = source.map_or(String::new(), |s| format!(" ({})", Source::full_name(s)));
    Some((longest_ns, format!(", {} at {when}{cause}", view.name())))
}
