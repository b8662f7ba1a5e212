//! Draws a time series, one strip per row: the range from minimum to maximum, the mean as a line, marks on top.

use machmeter_data::Unit;
use machmeter_data::shape::{Series, SeriesRow};

use super::STATIC_ROWS;
use super::frame::{Area, Size, numeric_ticks, x_axis, y_axis};
use crate::axis::{Scale, ends};
use crate::pictures::mean;
use crate::svg::{Anchor, Svg};

/// Columns of a static strip; more are not visible at the width of a page.
const COLUMNS: usize = 160;

pub(super) fn draw(series: &Series, title: &str, size: Size) -> String {
    let shown = series.rows.len().min(STATIC_ROWS);
    let strip = size.height / 2.6;
    let height = strip * shown.max(1) as f64 + 46.0;
    let mut svg = Svg::new(size.width, height, "chart", title);
    let whole = Area::of(Size { width: size.width, height });
    let buckets = series.rows.iter().map(|r| r.mean.len()).max().unwrap_or(0).max(1);
    let end_ns = series.start_ns + series.step_ns * buckets as f64;
    let xs = Scale::exact(series.start_ns, end_ns, false, whole.left, whole.right);
    // All rows share one scale of heights, so that they are comparable.
    let all = series.rows.iter().take(shown).flat_map(|r| r.min.iter().chain(&r.max).copied());
    for (i, row) in series.rows.iter().take(shown).enumerate() {
        let top = whole.top + strip * i as f64;
        let area = Area { top: top + 14.0, bottom: top + strip - 4.0, ..whole };
        let ys = Scale::fit(all.clone(), series.y.log, area.bottom, area.top);
        y_axis(&mut svg, area, &ys, series.y.unit);
        strip_of(&mut svg, series, row, area, &xs, &ys);
        svg.text("row", area.left + 4.0, area.top - 3.0, Anchor::Start, &row.name);
    }
    let ticks = numeric_ticks(&xs, Unit::Nanoseconds);
    let foot = Area { top: whole.top + strip * shown as f64 - 4.0, bottom: height - 38.0, ..whole };
    x_axis(&mut svg, foot, "time after start", &ticks);
    svg.finish()
}

fn strip_of(svg: &mut Svg, series: &Series, row: &SeriesRow, area: Area, xs: &Scale, ys: &Scale) {
    let n = row.min.len().min(row.mean.len()).min(row.max.len());
    let per_column = n.div_ceil(COLUMNS).max(1);
    let (mut upper, mut lower, mut middle) = (Vec::new(), Vec::new(), Vec::new());
    for at in (0..n).step_by(per_column) {
        let end = (at + per_column).min(n);
        let x = xs.at(series.start_ns + series.step_ns * (f64::midpoint(at as f64, end as f64)));
        upper.push((x, ys.at(ends(row.max[at..end].iter().copied()).1)));
        lower.push((x, ys.at(ends(row.min[at..end].iter().copied()).0)));
        middle.push((x, ys.at(mean(&row.mean[at..end]))));
    }
    svg.band("area c0", &upper, &lower);
    svg.polyline("line c0", &middle);
    for mark in &row.marks {
        let x = xs.at(mark.x);
        let y = mark.y.map_or(area.top, |y| ys.at(y));
        svg.path("mark", &format!("M{x:.1} {y:.1}m-3 -5h6l-3 5z"));
    }
}
