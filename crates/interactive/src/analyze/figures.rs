//! Lateness, deadlines and CPU of a cell.

use machmeter_data::{Interval, Metric};
use machmeter_engine::stream::Job;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::serial::{mean_interval, quantile_interval, ratio_interval, share_interval};
use machmeter_stats::spread::{mean, stddev};

use super::view::{CellView, LEVEL, Series, method, with_estimate};
use crate::info;

pub(super) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];
/// Quantiles of lateness that are metrics of their own, with intervals.
pub(super) const OWN_QUANTILES: [f64; 3] = [0.95, 0.99, 0.999];

pub(super) fn of_cell(view: &CellView<'_>) -> Vec<Metric> {
    if view.jobs.is_empty() {
        return vec![view.refuse(&info::LATENESS, "no segment was recorded whole")];
    }
    let mut out = vec![lateness(view), jitter(view)];
    out.extend(lateness_quantiles(view));
    out.extend(met(view));
    out.push(of_desired_cpu(view));
    out.extend(counts(view));
    out
}

pub(super) fn lateness_series(view: &CellView<'_>) -> Series {
    view.series(|j| Some(j.lateness_ns(view.stream()) as f64))
}

fn lateness(view: &CellView<'_>) -> Metric {
    let series = lateness_series(view);
    let xs = &series.values;
    let m = view.metric(&info::LATENESS, mean(xs).unwrap_or(f64::NAN), "mean", xs.len());
    let m = with_estimate(m, &mean_interval(xs, &series.lengths, LEVEL), method::MEAN);
    view.with_blocks(with_tail(m, xs), xs.len(), |block| mean(&xs[block]))
}

/// Adds the quantiles that at least one sample lies beyond, and the maximum.
pub(super) fn with_tail(metric: Metric, xs: &[f64]) -> Metric {
    let Some(s) = sorted(xs).ok().filter(|s| !s.is_empty()) else { return metric };
    let shown: Vec<(f64, f64)> = QUANTILES
        .iter()
        .filter(|q| (1.0 - **q) * s.len() as f64 >= 1.0)
        .filter_map(|q| Some((*q, quantile(&s, *q)?)))
        .collect();
    metric.with_quantiles(&shown).with_max(s[s.len() - 1])
}

fn jitter(view: &CellView<'_>) -> Metric {
    let series = lateness_series(view);
    let xs = &series.values;
    let Some(sd) = stddev(xs) else {
        return view.refuse(&info::JITTER, "a deviation needs two releases at least");
    };
    let center = mean(xs).unwrap_or(0.0);
    let unbiased = xs.len() as f64 / (xs.len() as f64 - 1.0);
    let squares: Vec<f64> = xs.iter().map(|x| (x - center).powi(2) * unbiased).collect();
    let e = mean_interval(&squares, &series.lengths, LEVEL).map(|mut e| {
        (e.interval.low, e.interval.high) = (e.interval.low.max(0.0).sqrt(), e.interval.high.sqrt());
        e
    });
    let m = view.metric(&info::JITTER, sd, "standard deviation", xs.len());
    with_estimate(m, &e, method::MEAN)
}

/// `interactive.lateness_quantile`: what lies in the tail, with its interval or without one where it rests on too few samples.
fn lateness_quantiles(view: &CellView<'_>) -> Vec<Metric> {
    let series = lateness_series(view);
    let xs = &series.values;
    let Ok(s) = sorted(xs) else { return Vec::new() };
    let n = s.len();
    let one = |q: f64| {
        let p = view.params_with("p", (q * 100.0).to_string().into());
        let value = quantile(&s, q).unwrap_or(f64::NAN);
        let m = Metric::new(&info::LATENESS_QUANTILE, p, value, "quantile", n as u64);
        let m = with_estimate(m, &quantile_interval(xs, q, &series.lengths, LEVEL), method::RANK);
        let mut m = view.with_blocks(m, n, |block| {
            let enough = (1.0 - q) * block.len() as f64 >= 1.0;
            quantile(&sorted(&xs[block]).ok().filter(|_| enough)?, q)
        });
        if m.ci.is_none() {
            m.flag("W314");
        }
        m
    };
    // A quantile that less than one sample lies beyond is the maximum in disguise.
    OWN_QUANTILES.into_iter().filter(|q| (1.0 - q) * n as f64 >= 1.0).map(one).collect()
}

/// Whether each release met its deadline, in order; `None` for streams without deadlines.
pub(super) fn met_flags(view: &CellView<'_>) -> Option<Vec<bool>> {
    view.stream().deadline_ns()?;
    Some(view.jobs.iter().map(|j| j.met(view.stream()) == Some(true)).collect())
}

fn met(view: &CellView<'_>) -> Option<Metric> {
    let flags = met_flags(view)?;
    let hits: Vec<f64> = flags.iter().map(|f| f64::from(*f)).collect();
    let value = mean(&hits).unwrap_or(f64::NAN);
    let like: Vec<f64> = view.jobs.iter().map(|j| j.response_ns as f64).collect();
    let m = view.metric(&info::MET, value, "share of scheduled releases", flags.len());
    let kind = if value == 0.0 || value == 1.0 { method::BOUND } else { method::SHARE };
    let m = with_estimate(m, &share_interval(&flags, &like, &view.lengths, LEVEL), kind);
    Some(view.with_blocks(m, hits.len(), |block| mean(&hits[block])))
}

/// CPU got over CPU asked for; of what never sleeps over wall time; of unknown demands jobs executed over jobs due.
/// What a job got beyond its request makes up for no other.
pub(super) fn of_desired_cpu(view: &CellView<'_>) -> Metric {
    let each = |of: &dyn Fn(&Job) -> f64| view.jobs.iter().map(of).collect::<Vec<f64>>();
    let asked: Option<Vec<f64>> = view.jobs.iter().map(|j| view.asked_ns(j)).collect();
    let cpu = |j: &Job| j.cpu_ns as f64;
    let (num, den, estimator) = match asked {
        _ if view.back_to_back() => (each(&cpu), each(&|j| j.response_ns as f64), "CPU got over wall time"),
        Some(asked) => {
            let got = view.jobs.iter().zip(&asked).map(|(j, a)| cpu(j).min(*a)).collect();
            (got, asked, "CPU got over CPU asked for")
        }
        None => (each(&|j| f64::from(j.ran())), each(&|_| 1.0), "jobs executed over jobs due"),
    };
    let (sum_num, sum_den): (f64, f64) = (num.iter().sum(), den.iter().sum());
    if sum_den <= 0.0 {
        return view.refuse(&info::DESIRED_CPU, "no CPU time was requested");
    }
    let m = view.metric(&info::DESIRED_CPU, sum_num / sum_den, estimator, num.len());
    let mut m = with_estimate(m, &ratio_interval(&num, &den, &view.lengths, LEVEL), method::MEAN);
    // Nobody gets more than all.
    if let Some(ci) = &m.ci {
        m.ci = Interval::new(ci.level, ci.low, ci.high.min(1.0), &ci.method);
    }
    view.with_blocks(m, num.len(), |block| {
        let below: f64 = den[block.clone()].iter().sum();
        (below > 0.0).then(|| num[block].iter().sum::<f64>() / below)
    })
}

fn counts(view: &CellView<'_>) -> Vec<Metric> {
    let scheduled: u64 = view.segments.iter().map(|s| s.scheduled).sum();
    let recorded = view.jobs.iter().filter(|j| j.ran()).count();
    let dropped = view.jobs.len() - recorded;
    let metric = |info, value: f64| view.metric(info, value, "count", view.jobs.len());
    let mut out = vec![
        metric(&info::SCHEDULED, scheduled as f64),
        metric(&info::RECORDED, recorded as f64),
        metric(&info::DROPPED, dropped as f64),
    ];
    out.extend(longest_miss_run(view).map(|run| metric(&info::MISS_RUN, run as f64)));
    out
}

/// Longest run of consecutive misses within a segment; `None` for streams without deadlines.
pub(super) fn longest_miss_run(view: &CellView<'_>) -> Option<usize> {
    view.stream().deadline_ns()?;
    let of = |jobs: &[Job]| {
        let (mut run, mut longest) = (0, 0);
        for j in jobs {
            run = if j.met(view.stream()) == Some(true) { 0 } else { run + 1 };
            longest = longest.max(run);
        }
        longest
    };
    view.by_segment().map(of).max()
}

pub(super) fn median_metric(
    view: &CellView<'_>,
    info: &machmeter_data::MetricInfo,
    series: &Series,
    why_not: &str,
) -> Metric {
    let xs = &series.values;
    let Some(value) = median_of(xs) else { return view.refuse(info, why_not) };
    let m = view.metric(info, value, "median", xs.len());
    let m = with_estimate(m, &quantile_interval(xs, 0.5, &series.lengths, LEVEL), method::RANK);
    with_tail(m, xs)
}
