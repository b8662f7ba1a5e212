//! Buffers and xruns: when would a player or a sound server with so many periods of buffer have run dry?

use machmeter_data::{Interval, Metric};
use machmeter_engine::stream::{Job, Overload, Stream};
use machmeter_stats::serial::share_interval;

use super::view::{CellView, LEVEL, method};
use crate::info;
use crate::tasks::{Kind, MOST_BUFFERS};

/// Longest buffer whose xruns the recording tells, periods: what a task gives up, a longer buffer would have played.
fn most_buffers(stream: &Stream) -> u32 {
    let given_up_after = match (stream.overload, stream.period_ns(), stream.deadline_ns()) {
        (Overload::Drop, _, _) => 1,
        (Overload::Skip, Some(period_ns), Some(deadline_ns)) => (deadline_ns / period_ns.max(1)) as u32,
        (Overload::Queue { most_periods }, _, _) if most_periods > 0 => most_periods,
        _ => MOST_BUFFERS,
    };
    given_up_after.clamp(1, MOST_BUFFERS)
}

/// `1 period`, `8 periods`.
pub(super) fn periods(n: usize) -> String {
    format!("{n} period{}", if n == 1 { "" } else { "s" })
}

/// Xruns per buffer of 1, 2, ... periods, as far as the recording tells; `None` where the task is not audio.
pub(super) fn xruns(view: &CellView<'_>) -> Option<Vec<usize>> {
    if view.kind() != Kind::Audio || view.jobs.is_empty() {
        return None;
    }
    view.stream().period_ns()?;
    Some((1..=most_buffers(view.stream())).map(|k| starts(view, k).iter().filter(|s| **s).count()).collect())
}

/// Whether a buffer of `k` periods ran dry at each release; until the stream has caught up it stays dry: one xrun.
fn starts(view: &CellView<'_>, k: u32) -> Vec<bool> {
    let limit_ns = view.stream().period_ns().unwrap_or(0) * u64::from(k);
    let late = |j: &Job| !j.ran() || j.response_ns > limit_ns;
    let mut out = Vec::with_capacity(view.jobs.len());
    for jobs in view.by_segment() {
        let mut before = false;
        for j in jobs {
            out.push(late(j) && !before);
            before = late(j);
        }
    }
    out
}

/// The smallest buffer without an xrun, periods; `None` when there is none among those counted.
pub(super) fn safe_buffer(xruns: &[usize]) -> Option<usize> {
    xruns.iter().position(|x| *x == 0).map(|i| i + 1)
}

pub(super) fn of_cell(view: &CellView<'_>) -> Vec<Metric> {
    let Some(counts) = xruns(view) else { return Vec::new() };
    let n = view.jobs.len();
    let like: Vec<f64> = view.jobs.iter().map(|j| j.response_ns as f64).collect();
    let mut out: Vec<Metric> = (1..)
        .zip(&counts)
        .map(|(k, count)| {
            let p = view.params_with("buffers", i64::from(k).into());
            let m = Metric::new(&info::XRUNS, p, *count as f64, "count", n as u64);
            let Ok(e) = share_interval(&starts(view, k), &like, &view.lengths, LEVEL) else { return m };
            let method = if *count == 0 { method::BOUND } else { method::SHARE };
            m.with_ci(Interval::new(LEVEL, e.interval.low * n as f64, e.interval.high * n as f64, method))
        })
        .collect();
    let known = periods(counts.len());
    out.extend((counts.len() as u32 + 1..=MOST_BUFFERS).map(|k| {
        let p = view.params_with("buffers", i64::from(k).into());
        let why = format!("the task drops jobs later than {known}, which a longer buffer would have played");
        Metric::rejected(&info::XRUNS, p, "none", &why)
    }));
    let estimator = "fewest periods without an xrun";
    out.push(match safe_buffer(&counts) {
        Some(k) => view.metric(&info::SAFE_BUFFER, k as f64, estimator, n),
        None => view.refuse(&info::SAFE_BUFFER, &format!("even {known} of buffer ran dry")),
    });
    out
}
