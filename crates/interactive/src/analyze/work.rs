//! What the loads got done beside each task: the price of latency.

use machmeter_data::{Interval, Metric};
use machmeter_stats::distribution::t_quantile;
use machmeter_stats::spread::{mean, stddev};

use super::view::{CellView, LEVEL};
use crate::info;

/// Segments from which on their rates make an interval.
const SEGMENTS_FOR_INTERVAL: usize = 3;

/// Work per second beside a task, Hz; `None` where the load counts none.
pub(super) fn rate_hz(view: &CellView<'_>) -> Option<f64> {
    let (work, ns) = view.segments.iter().fold((0_u64, 0_u64), |(w, t), s| (w + s.load_work, t + s.load_ns));
    (view.cell.load != "none" && ns > 0).then(|| work as f64 / (ns as f64 / 1e9))
}

/// The metric of a cell. Its blocks are the segments.
pub(super) fn of_cell(view: &CellView<'_>) -> Option<Metric> {
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
