//! Frames: time between them, both 1 % lows, stutters.

use machmeter_data::{Interval, Metric};
use machmeter_engine::stream::Release;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::serial::{quantile_interval, ratio_interval, share_interval};
use machmeter_stats::spread::mean;

use super::figures::median_metric;
use super::view::{CellView, LEVEL, Series, method, with_estimate};
use crate::info;
use crate::tasks::Kind;

/// A frame that takes longer than this many of the task's own frame times is a stutter: it is late by half a frame.
const STUTTER: f64 = 1.5;
/// Frames from which on the slowest hundredth is more than one frame.
const FRAMES_FOR_LOWS: usize = 100;

/// Times between the ends of consecutive executed frames, ns; none across segments.
pub(super) fn frame_times(view: &CellView<'_>) -> Series {
    let mut out = Series::default();
    for jobs in view.by_segment() {
        let ends: Vec<u64> = jobs.iter().filter(|j| j.ran()).map(|j| j.release_ns + j.response_ns).collect();
        out.values.extend(ends.windows(2).map(|w| w[1].saturating_sub(w[0]) as f64));
        out.lengths.push(ends.len().saturating_sub(1));
    }
    out
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Frames {
    /// Rate at the 99th percentile of frame times, Hz.
    pub(super) low_percentile_hz: f64,
    /// Rate of the mean of the slowest 1 %, Hz.
    pub(super) low_tail_mean_hz: f64,
    /// Frames that came later than half of the task's own frame time.
    pub(super) stutters: usize,
    pub(super) time_s: f64,
    pub(super) median_ns: f64,
    /// The task's own, ns.
    pub(super) own_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) n: usize,
}

/// The figures; `None` where the task has no frames or fewer than two were shown.
pub(super) fn frames(view: &CellView<'_>) -> Option<Frames> {
    if view.kind() != Kind::Frames {
        return None;
    }
    let times = frame_times(view).values;
    let s = sorted(&times).ok()?;
    let (median_ns, p99_ns) = (median_of(&s)?, quantile(&s, 0.99)?);
    let own_ns = own_ns(view).unwrap_or(median_ns);
    let slowest = s.len().div_ceil(100);
    let tail_ns = mean(&s[s.len() - slowest..])?;
    Some(Frames {
        low_percentile_hz: 1e9 / p99_ns,
        low_tail_mean_hz: 1e9 / tail_ns,
        stutters: s.iter().filter(|t| **t > STUTTER * own_ns).count(),
        time_s: s.iter().sum::<f64>() / 1e9,
        median_ns,
        own_ns,
        p99_ns,
        n: s.len(),
    })
}

/// Undisturbed time from frame to frame, ns. The frames cannot tell: where most are late, lateness is their median.
fn own_ns(view: &CellView<'_>) -> Option<f64> {
    match view.stream().release {
        Release::Closed { think_ns } => {
            let cpu: Vec<f64> = view.jobs.iter().filter(|j| j.ran()).map(|j| j.cpu_ns as f64).collect();
            Some(median_of(&cpu)? + think_ns as f64)
        }
        _ => view.stream().period_ns().map(|p| p as f64),
    }
}

pub(super) fn of_cell(view: &CellView<'_>) -> Vec<Metric> {
    if view.kind() != Kind::Frames || view.jobs.is_empty() {
        return Vec::new();
    }
    let Some(f) = frames(view) else {
        return vec![view.refuse(&info::FRAME_TIME, "fewer than two frames were executed")];
    };
    let times = frame_times(view);
    let mut out = vec![median_metric(view, &info::FRAME_TIME, &times, "no frame was executed")];
    out.extend(lows(view, &f, &times));
    out.push(stutters(view, &f, &times));
    out
}

fn lows(view: &CellView<'_>, f: &Frames, times: &Series) -> [Metric; 2] {
    let low = |definition: &str, value: f64, estimator: &str| {
        let p = view.params_with("definition", definition.into());
        let mut m = Metric::new(&info::LOW_RATE, p, value, estimator, f.n as u64);
        if f.n < FRAMES_FOR_LOWS {
            m.flag("W314");
        }
        m
    };
    let mut first = low("percentile", f.low_percentile_hz, "rate at the 99th percentile of frame times");
    if let Ok(e) = quantile_interval(&times.values, 0.99, &times.lengths, LEVEL) {
        first.n_eff = Some(e.n_eff);
        let (low, high) = (1e9 / e.interval.high, 1e9 / e.interval.low);
        first = first.with_ci(Interval::new(LEVEL, low, high, method::RANK));
    }
    [first, low("tail-mean", f.low_tail_mean_hz, "rate of the mean of the slowest 1 %")]
}

fn stutters(view: &CellView<'_>, f: &Frames, times: &Series) -> Metric {
    let is: Vec<bool> = times.values.iter().map(|t| *t > STUTTER * f.own_ns).collect();
    let flags: Vec<f64> = is.iter().map(|s| f64::from(*s)).collect();
    let seconds: Vec<f64> = times.values.iter().map(|t| t / 1e9).collect();
    let rate = f.stutters as f64 / f.time_s;
    let m = view.metric(&info::STUTTERS, rate, "count per time", f.n);
    if f.stutters > 0 {
        return with_estimate(m, &ratio_interval(&flags, &seconds, &times.lengths, LEVEL), method::MEAN);
    }
    let Ok(e) = share_interval(&is, &times.values, &times.lengths, LEVEL) else { return m };
    m.with_ci(Interval::new(LEVEL, 0.0, e.interval.high * f.n as f64 / f.time_s, method::BOUND))
}
