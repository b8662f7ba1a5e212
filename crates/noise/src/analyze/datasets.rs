//! What to draw: time line, heat map, percentile curve, size-rate scatter.

use std::collections::BTreeMap;

use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{
    Axis, Distribution, DistributionRow, Mark, Matrix, Scatter, ScatterGroup, Series, SeriesRow, four_digits,
};
use machmeter_data::{Dataset, Shape};

use super::figures::CpuView;
use super::sources::group;
use crate::attribute::activity_log::{ActivityLog, Source};
use crate::attribute::matching::{Attributed, Part};

/// Buckets of the time line at most, over all rows together at least 60 each.
const TIMELINE_POINTS: usize = 1000;
const HEAT_COLUMNS: usize = 200;
const MARKS: usize = 12;
/// Each step to the right of the percentile curve is ten times rarer.
const QUANTILES_PER_DECADE: u32 = 10;
/// Buckets per decade of the size-rate scatter.
const PER_DECADE: f64 = 8.0;

/// Share of each window's time lost to gaps and slowdown, in order: what is missing to an undisturbed count.
pub fn lost(view: &CpuView<'_>) -> Vec<f64> {
    let w = view.setup.schedule.window_ticks as f64;
    let reference = view.split.reference_ticks;
    if view.cpu.counts.is_empty() || reference <= 0.0 {
        return view.split.stolen_ticks().iter().map(|s| (s / w).clamp(0.0, 1.0)).collect();
    }
    let own = |k: usize| view.cpu.sums.get(k).map_or(0.0, |s| f64::from(s.own_ticks));
    let lost = |(k, n): (usize, &u32)| (1.0 - (f64::from(*n) * reference + own(k)) / w).clamp(0.0, 1.0);
    view.cpu.counts.iter().enumerate().map(lost).collect()
}

/// Windows of the longest recording, and how many of them, and how much time, a bucket holds when `most` of these are wanted.
fn buckets(views: &[CpuView<'_>], most: usize) -> Option<(usize, usize, f64)> {
    let windows = views.iter().map(|v| v.split.detour_ticks.len()).max()?;
    let each = windows.div_ceil(most).max(1);
    Some((windows, each, views[0].setup.window_ns() * each as f64))
}
pub fn timeline(views: &[CpuView<'_>], activity_log: &ActivityLog) -> Option<Dataset> {
    let (_, per_bucket, step_ns) = buckets(views, TIMELINE_POINTS.checked_div(views.len())?.clamp(60, 1200))?;
    let rows = views
        .iter()
        .map(|v| {
            let lost = lost(v);
            let parts = || lost.chunks(per_bucket);
            SeriesRow {
                name: v.name(),
                min: parts().map(|p| four_digits(p.iter().copied().fold(1.0, f64::min))).collect(),
                mean: parts().map(|p| four_digits(p.iter().sum::<f64>() / p.len() as f64)).collect(),
                max: parts().map(|p| four_digits(p.iter().copied().fold(0.0, f64::max))).collect(),
                marks: marks(v, activity_log),
            }
        })
        .collect();
    Some(Dataset::new(
        "noise.timeline",
        "Time lost over time",
        "Share of each window's time that the loop did not get, by gaps or by running slower. The band spans the smallest and the \
         largest window of each bucket, so that no extreme is hidden; marks are the longest gaps.",
        Shape::Series(Series { start_ns: 0.0, step_ns, y: Axis::linear("time lost", Unit::One), rows }),
    ))
}

fn marks(view: &CpuView<'_>, activity_log: &ActivityLog) -> Vec<Mark> {
    let attributed = &view.cpu.attributed;
    let durations = view.durations_ns();
    let starts = view.starts_s();
    let mut order: Vec<usize> = (0..durations.len()).collect();
    order.sort_by(|a, b| durations[*b].total_cmp(&durations[*a]));
    order.truncate(MARKS);
    order.sort_unstable();
    let ns = view.setup.ns_per_tick();
    order
        .into_iter()
        .map(|i| {
            let what = attributed.get(i).and_then(|a| activity_log.source(a.main));
            let parts = attributed.get(i).map_or(String::new(), |a| describe(a, activity_log, ns));
            Mark {
                x: brief_time(starts[i] * 1e9),
                label: human(durations[i], Unit::Nanoseconds),
                detail: format!("{}{parts}", what.map_or("unknown".to_owned(), Source::full_name)),
                ..Mark::default()
            }
        })
        .collect()
}

fn brief_time(ns: f64) -> f64 {
    (ns / 100.0).round() * 100.0
}

fn describe(a: &Attributed, activity_log: &ActivityLog, ns: f64) -> String {
    let mut parts: Vec<&Part> = a.parts.iter().filter(|p| p.ticks > 0).collect();
    parts.sort_by_key(|p| std::cmp::Reverse(p.ticks));
    if parts.is_empty() {
        return String::new();
    }
    let list: Vec<String> = parts
        .iter()
        .take(4)
        .filter_map(|p| {
            let source = activity_log.source(p.source)?;
            Some(format!("{} {}", source.full_name(), human(p.ticks as f64 * ns, Unit::Nanoseconds)))
        })
        .collect();
    format!(
        " (entry {}, {}, exit {})",
        human(a.entry_ticks as f64 * ns, Unit::Nanoseconds),
        list.join(", "),
        human(a.exit_ticks as f64 * ns, Unit::Nanoseconds)
    )
}

/// Heat map CPU by time, so that what hits several CPUs at once is visible.
pub fn heat(views: &[CpuView<'_>]) -> Option<Dataset> {
    let (windows, per_column, step_ns) = buckets(views, HEAT_COLUMNS)?;
    let columns = (0..windows.div_ceil(per_column)).map(|c| c as f64 * step_ns).collect();
    let values = views
        .iter()
        .map(|v| {
            lost(v)
                .chunks(per_column)
                .map(|p| Some(four_digits(p.iter().sum::<f64>() / p.len() as f64)))
                .collect()
        })
        .collect();
    Some(Dataset::new(
        "noise.heat",
        "CPU by time",
        "Share of time lost per CPU and slice of the run. A vertical line is something that hit several CPUs at once.",
        Shape::Matrix(Matrix {
            x: Axis::linear("time", Unit::Nanoseconds),
            columns,
            column_names: Vec::new(),
            rows: views.iter().map(CpuView::name).collect(),
            cell: Axis::linear("time lost", Unit::One),
            values,
            range: None,
        }),
    ))
}

pub fn percentiles(views: &[CpuView<'_>]) -> Option<Dataset> {
    let rows: Vec<DistributionRow> = views
        .iter()
        .filter_map(|v| {
            let all = v.all_durations();
            let longest = all.lots.last()?.1;
            let at = |p| all.quantile(p).unwrap_or(0.0);
            Some(DistributionRow::of(v.name(), all.n, QUANTILES_PER_DECADE, at, longest))
        })
        .collect();
    let caption = "Percentiles of the duration of gaps; each step to the right is ten times rarer.";
    distribution("noise.percentiles", "Gap durations", caption.to_owned(), rows)
}
pub(crate) fn distribution(
    id: &str,
    title: &str,
    caption: String,
    rows: Vec<DistributionRow>,
) -> Option<Dataset> {
    let value = Axis::log("duration", Unit::Nanoseconds);
    let shape = |rows| Shape::Distribution(Distribution { value, rows, limits: Vec::new() });
    (!rows.is_empty()).then(|| Dataset::new(id, title, caption, shape(rows)))
}

pub fn scatter(views: &[CpuView<'_>], activity_log: &ActivityLog) -> Option<Dataset> {
    let wall_s: f64 = views.iter().map(CpuView::wall_s).sum();
    let mut cells: BTreeMap<String, (f64, BTreeMap<i32, u64>)> = BTreeMap::new();
    for v in views {
        for (i, d) in v.durations_ns().iter().enumerate() {
            let main = v.cpu.attributed.get(i).and_then(|a| activity_log.source(a.main));
            let name = main.map_or_else(|| "unknown".to_owned(), |s| group(s).0);
            let bucket = (d.max(1.0).log10() * PER_DECADE).floor() as i32;
            let entry = cells.entry(name).or_default();
            entry.0 += d;
            *entry.1.entry(bucket).or_default() += 1;
        }
    }
    let mut groups: Vec<(f64, ScatterGroup)> = cells
        .into_iter()
        .map(|(name, (total, buckets))| {
            let points = buckets
                .into_iter()
                .map(|(b, n)| {
                    (
                        four_digits(10f64.powf((f64::from(b) + 0.5) / PER_DECADE)),
                        four_digits(n as f64 / wall_s),
                    )
                })
                .collect();
            (total, ScatterGroup { name, points })
        })
        .collect();
    groups.sort_by(|a, b| b.0.total_cmp(&a.0));
    // Beyond eight colors nobody can tell groups apart: the small ones become one.
    if groups.len() > 8 {
        let mut rest: BTreeMap<u64, (f64, f64)> = BTreeMap::new();
        for (_, g) in groups.drain(7..) {
            for (x, y) in g.points {
                rest.entry(x.to_bits()).or_insert((x, 0.0)).1 += y;
            }
        }
        groups.push((0.0, ScatterGroup { name: "others".to_owned(), points: rest.into_values().collect() }));
    }
    (!groups.is_empty()).then(|| {
        Dataset::new(
            "noise.scatter",
            "Gaps by size and rate",
            "Each point is a class of durations of one source: how long (right is longer) and how often per CPU (up is more \
             often). Programs that synchronize often fear the right side, throughput fears the upper right.",
            Shape::Scatter(Scatter {
                x: Axis::log("duration", Unit::Nanoseconds),
                y: Axis::log("rate per CPU", Unit::Hertz),
                groups: groups.into_iter().map(|g| g.1).collect(),
            }),
        )
    })
}
