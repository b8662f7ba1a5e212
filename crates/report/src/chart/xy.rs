//! Draws charts on two numeric axes: percentile curves, curves with marks, scatter of groups.

use machmeter_data::Unit;
use machmeter_data::shape::{Curve, Distribution, DistributionRow, Mark, Scatter};

use super::frame::{Area, Size, numeric_ticks, x_axis, y_axis};
use crate::axis::{Scale, ends};
use crate::label;
use crate::svg::{Anchor, Svg};

const COLORS: usize = 8;
const CURVE_POINTS: usize = 200;
/// Curves with fewer points get a symbol at each, and no line joins points of a curve with levels beyond this ratio.
const FEW: usize = 12;
const FAR: f64 = 4.0;
const GROUP_POINTS: usize = 120;

/// Style classes of the `i`-th line. When the colors repeat, the dashes differ.
pub(crate) fn line_class(i: usize) -> String {
    format!("line c{} d{}", i % COLORS, (i + 3 * (i / COLORS)) % COLORS)
}

/// Position of a probability on the axis 1/(1-p); the maximum is at the number of samples.
pub(super) fn tail_position(p: f64, n: u64) -> f64 {
    let end = (n.max(2)) as f64;
    if p >= 1.0 { end } else { (1.0 / (1.0 - p)).clamp(1.0, end) }
}

/// Draws percentile curves over 1/(1-p).
pub(crate) fn distribution(d: &Distribution, title: &str, size: Size) -> String {
    let area = Area::of(size);
    let mut svg = Svg::new(size.width, size.height, "chart", title);
    let places =
        |r: &DistributionRow| r.quantiles.iter().map(|(p, v)| (tail_position(*p, r.n), *v)).collect();
    let rows: Vec<Vec<(f64, f64)>> = d.rows.iter().map(places).collect();
    let limits: Vec<(f64, &str)> = d.limits.iter().filter_map(|m| Some((m.y?, m.label.as_str()))).collect();
    let values = rows.iter().flatten().map(|(_, v)| *v).chain(limits.iter().map(|l| l.0));
    let right = rows.iter().flatten().map(|(x, _)| *x).fold(10.0, f64::max);
    let xs = Scale::exact(1.0, right, true, area.left, area.right);
    let ys = Scale::fit(values, true, area.bottom, area.top);
    let nines = [0.0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999_999, 0.999_999_9];
    let shown = nines.iter().filter(|p| 1.0 / (1.0 - **p) <= right * 1.001);
    let ticks: Vec<(f64, String)> = shown.map(|p| (xs.at(1.0 / (1.0 - p)), label::percentile(*p))).collect();
    y_axis(&mut svg, area, &ys, d.value.unit);
    x_axis(&mut svg, area, &format!("share of samples at or below the {}", d.value.label), &ticks);
    for (i, row) in rows.iter().enumerate() {
        let points: Vec<(f64, f64)> = row.iter().map(|(x, v)| (xs.at(*x), ys.at(*v))).collect();
        let limit = ((size.width * 0.6) as usize / rows.len().max(1)).clamp(20, CURVE_POINTS);
        svg.polyline(&line_class(i), &thin(&points, limit));
    }
    for &(value, label) in &limits {
        let y = ys.at(value);
        svg.line("mark-line", (area.left, y), (area.right, y));
        // The label of the lowest limit is below its line, so that labels of close limits do not overlap.
        let beside = if limits.iter().all(|l| value <= l.0) { 12.0 } else { -4.0 };
        svg.text("mark-label", area.left + 6.0, y + beside, Anchor::Start, label);
    }
    svg.finish()
}

/// Draws curves. A curve with few points gets a symbol at each. No line crosses the end of a level or joins points that are far apart.
pub(crate) fn curve(c: &Curve, title: &str, size: Size) -> String {
    let area = Area { top: 34.0, ..Area::of(size) };
    let mut svg = Svg::new(size.width, size.height, "chart", title);
    let xs = x_scale(c, area);
    let ys = Scale::fit(c.rows.iter().flat_map(|r| r.y.iter().copied()), c.y.log, area.bottom, area.top);
    y_axis(&mut svg, area, &ys, c.y.unit);
    x_axis(&mut svg, area, &c.x.label, &numeric_ticks(&xs, c.x.unit));
    shade_levels(&mut svg, area, &xs, &c.marks);
    for (i, row) in c.rows.iter().enumerate() {
        let seen = |(x, y): &(f64, f64)| (!xs.log || *x > 0.0) && (!ys.log || *y > 0.0);
        let values: Vec<(f64, f64)> = row.x.iter().copied().zip(row.y.iter().copied()).filter(seen).collect();
        for part in parts(&values, c) {
            let points: Vec<(f64, f64)> = part.iter().map(|(x, y)| (xs.at(*x), ys.at(*y))).collect();
            svg.polyline(&line_class(i), &thin(&points, CURVE_POINTS));
        }
        if values.len() < FEW {
            let outlines: String = values.iter().map(|(x, y)| symbol(i, xs.at(*x), ys.at(*y))).collect();
            svg.path(&format!("point c{}", i % COLORS), &outlines);
        }
    }
    vertical_marks(&mut svg, area, &xs, &c.marks);
    svg.finish()
}

/// Runs of points that a line joins: the whole curve if it has no levels, else points of one level that are close together.
fn parts<'v>(values: &'v [(f64, f64)], c: &Curve) -> Vec<&'v [(f64, f64)]> {
    let edges: Vec<f64> = c.marks.iter().filter(|m| m.edge).map(|m| m.x).collect();
    let is_one = |a: &(f64, f64), b: &(f64, f64)| {
        edges.is_empty() || b.0 <= a.0 * FAR && !edges.iter().any(|e| a.0 <= *e && *e < b.0)
    };
    values.chunk_by(is_one).filter(|part| part.len() > 1).collect()
}

/// Shades every second level.
fn shade_levels(svg: &mut Svg, area: Area, xs: &Scale, marks: &[Mark]) {
    let mut edges: Vec<f64> = marks.iter().filter(|m| m.edge).map(|m| xs.at(m.x)).collect();
    edges.sort_by(f64::total_cmp);
    edges.push(area.right);
    for pair in edges.chunks_exact(2) {
        svg.rect("level", pair[0], area.top, pair[1] - pair[0], area.height());
    }
}

/// The scale of x. Sizes span exactly their range, because a power of two is seldom at the end of a decade; other values get round ends.
fn x_scale(c: &Curve, area: Area) -> Scale {
    let values = || c.rows.iter().flat_map(|r| r.x.iter().copied());
    if c.x.unit == Unit::Bytes && c.x.log {
        let (low, high) = ends(values().filter(|v| *v > 0.0 && v.is_finite()));
        if low < high {
            return Scale::exact(low, high, true, area.left, area.right);
        }
    }
    Scale::fit(values(), c.x.log, area.left, area.right)
}

/// Draws named vertical lines. A label that would overlap another moves to the second line, or is left out.
fn vertical_marks(svg: &mut Svg, area: Area, xs: &Scale, marks: &[Mark]) {
    let mut sorted: Vec<&Mark> = marks.iter().collect();
    sorted.sort_by(|a, b| a.x.total_cmp(&b.x));
    let mut free = [f64::NEG_INFINITY; 2];
    for m in sorted {
        let x = xs.at(m.x);
        svg.line("mark-line", (x, area.top), (x, area.bottom));
        let half = m.label.chars().count() as f64 * 3.1;
        let center = x.clamp(area.left + half, (area.right - half).max(area.left + half));
        if let Some(row) = (0..free.len()).find(|r| center - half > free[*r]) {
            free[row] = center + half + 6.0;
            svg.text("mark-label", center, area.top - 6.0 - 12.0 * row as f64, Anchor::Middle, &m.label);
        }
    }
}

/// Draws the points of groups, each group with its own color and symbol.
pub(super) fn scatter(s: &Scatter, title: &str, size: Size) -> String {
    let area = Area::of(size);
    let mut svg = Svg::new(size.width, size.height, "chart", title);
    let all = || s.groups.iter().flat_map(|g| g.points.iter());
    let xs = Scale::fit(all().map(|p| p.0), s.x.log, area.left, area.right);
    let ys = Scale::fit(all().map(|p| p.1), s.y.log, area.bottom, area.top);
    y_axis(&mut svg, area, &ys, s.y.unit);
    x_axis(&mut svg, area, &s.x.label, &numeric_ticks(&xs, s.x.unit));
    for (i, group) in s.groups.iter().enumerate() {
        let points: Vec<(f64, f64)> = group.points.iter().map(|(x, y)| (xs.at(*x), ys.at(*y))).collect();
        let shown = thin(&points, GROUP_POINTS);
        // A line without length shows only its round or square cap. Its markup is a quarter of that of an outline.
        match i % COLORS {
            0 => svg.dots("line dot c0", &shown),
            1 => svg.dots("line square c1", &shown),
            color => {
                let outlines: String = shown.iter().map(|(x, y)| symbol(i, *x, *y)).collect();
                svg.path(&format!("point c{color}"), &outlines);
            }
        }
    }
    svg.text("name", area.left + 4.0, area.top + 9.0, Anchor::Start, &s.y.label);
    svg.finish()
}

/// Path of the `i`-th symbol around a point.
pub(crate) fn symbol(i: usize, x: f64, y: f64) -> String {
    let shape = match i % COLORS {
        0 => "m-3 0a3 3 0 1 0 6 0a3 3 0 1 0 -6 0z",
        1 => "m-2.7 -2.7h5.4v5.4h-5.4z",
        2 => "m0 -3.6l3.4 6h-6.8z",
        3 => "m0 -3.8l3.8 3.8l-3.8 3.8l-3.8 -3.8z",
        4 => "m-1 -3.5h2v2.5h2.5v2h-2.5v2.5h-2v-2.5h-2.5v-2h2.5z",
        5 => "m0 3.6l3.4 -6h-6.8z",
        6 => "m-3.5 -1.2h7v2.4h-7z",
        _ => "m-1.2 -3.5h2.4v7h-2.4z",
    };
    format!("M{x:.1} {y:.1}{shape}")
}

/// At most `limit` points, with the extremes of every stretch kept.
fn thin(points: &[(f64, f64)], limit: usize) -> Vec<(f64, f64)> {
    if points.len() <= limit {
        return points.to_vec();
    }
    let stretch = (points.len() * 2).div_ceil(limit).max(2);
    let mut kept = Vec::with_capacity(limit + 2);
    for part in points.chunks(stretch) {
        let by_y = |a: &usize, b: &usize| part[*a].1.total_cmp(&part[*b].1);
        let highest = (0..part.len()).min_by(by_y).unwrap_or(0);
        let lowest = (0..part.len()).max_by(by_y).unwrap_or(0);
        kept.push(part[highest.min(lowest)]);
        if highest != lowest {
            kept.push(part[highest.max(lowest)]);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_the_spikes() {
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|i| (f64::from(i), 1.0)).collect();
        points[7_777].1 = 99.0;
        let kept = thin(&points, 300);
        assert!(kept.len() <= 300, "{}", kept.len());
        assert!(kept.iter().any(|p| p.1 == 99.0));
    }

    #[test]
    fn the_maximum_stands_at_the_number_of_samples() {
        assert_eq!(tail_position(1.0, 1000), 1000.0);
        assert!((tail_position(0.99, 1000) - 100.0).abs() < 1e-9);
        assert_eq!(tail_position(0.999_999, 1000), 1000.0);
    }
}
