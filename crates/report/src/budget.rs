//! Merges the data of very large datasets, so that pages of large machines stay small.
//!
//! Merging keeps extremes, and the caption of a merged dataset says so. The JSON record beside the page keeps every value.

use std::collections::BTreeMap;

use machmeter_data::shape::{Curve, Distribution, Matrix, Series};
use machmeter_data::{Record, Shape};

use crate::pictures::mean;

/// Most numbers of a dataset that is embedded unmerged: over ten times what a machine with two CPUs produces.
const NUMBERS: usize = 20_000;

/// Most numbers of all percentile curves of one id together. There is one curve per task or class.
const CURVES: usize = 4_000;
/// Percentiles that tables show; merging keeps them.
const KEPT: [f64; 9] = [0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999, 0.9999, 0.99999];

pub(crate) fn apply(record: &mut Record) {
    let mut curves: BTreeMap<String, usize> = BTreeMap::new();
    for d in record.datasets.iter().filter(|d| matches!(d.shape, Shape::Distribution(_))) {
        *curves.entry(d.id.clone()).or_default() += numbers(&d.shape);
    }
    for d in &mut record.datasets {
        let merge = match d.shape {
            Shape::Distribution(_) => curves.get(&d.id).map_or(1, |n| n.div_ceil(CURVES)),
            _ => numbers(&d.shape).div_ceil(NUMBERS),
        };
        if merge < 2 {
            continue;
        }
        match &mut d.shape {
            Shape::Series(s) => series(s, merge),
            Shape::Distribution(x) => distribution(x, merge),
            Shape::Curve(c) => curve(c, merge),
            Shape::Matrix(m) => matrix(m, merge),
            Shape::Scatter(s) => s.groups.iter_mut().for_each(|g| g.points = every(&g.points, merge)),
            Shape::CostTable(_) | Shape::Decades(_) => continue,
        }
        let kept = "for this page, greatest values kept; the JSON record has every value.";
        d.caption += &format!(" (Merged {merge} to 1 {kept})");
    }
}

fn numbers(shape: &Shape) -> usize {
    match shape {
        Shape::Series(s) => s.rows.iter().map(|r| 3 * r.mean.len()).sum(),
        Shape::Distribution(d) => d.rows.iter().map(|r| 2 * r.quantiles.len()).sum(),
        Shape::Curve(c) => c.rows.iter().map(|r| 2 * r.x.len()).sum(),
        Shape::Scatter(s) => s.groups.iter().map(|g| 2 * g.points.len()).sum(),
        Shape::Matrix(m) => m.values.iter().map(Vec::len).sum(),
        Shape::CostTable(_) | Shape::Decades(_) => 0,
    }
}

/// Every `k`-th item and the last.
fn every<T: Clone>(items: &[T], k: usize) -> Vec<T> {
    let mut kept: Vec<T> = items.iter().step_by(k).cloned().collect();
    if items.len() > 1 && !(items.len() - 1).is_multiple_of(k) {
        kept.extend(items.last().cloned());
    }
    kept
}

fn folded(values: &[f64], k: usize, start: f64, f: fn(f64, f64) -> f64) -> Vec<f64> {
    values.chunks(k).map(|c| c.iter().copied().fold(start, f)).collect()
}

fn series(s: &mut Series, k: usize) {
    s.step_ns *= k as f64;
    for r in &mut s.rows {
        r.min = folded(&r.min, k, f64::INFINITY, f64::min);
        r.max = folded(&r.max, k, f64::NEG_INFINITY, f64::max);
        r.mean = r.mean.chunks(k).map(mean).collect();
    }
}

fn distribution(d: &mut Distribution, k: usize) {
    for r in &mut d.rows {
        let asked = KEPT.map(|p| r.quantiles.iter().position(|q| q.0 >= p - 1e-12));
        let last = r.quantiles.len().saturating_sub(1);
        let mut places = 0..;
        r.quantiles
            .retain(|_| places.next().is_none_or(|i| i % k == 0 || i == last || asked.contains(&Some(i))));
    }
}

/// Keeps the greatest of every `k` points, so that no line of a spectrum is lost.
fn curve(c: &mut Curve, k: usize) {
    for r in &mut c.rows {
        let points: Vec<(f64, f64)> = r.x.iter().copied().zip(r.y.iter().copied()).collect();
        let kept = points.chunks(k).filter_map(|p| p.iter().copied().max_by(|a, b| a.1.total_cmp(&b.1)));
        (r.x, r.y) = kept.unzip();
    }
}

fn matrix(m: &mut Matrix, k: usize) {
    // Columns that are things (another CPU) rather than times can't be merged without losing their names.
    if !m.column_names.is_empty() || m.columns.len() == m.rows.len() {
        return;
    }
    m.columns = m.columns.iter().copied().step_by(k).collect();
    for row in &mut m.values {
        *row = row.chunks(k).map(|c| c.iter().flatten().copied().reduce(f64::max)).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::Unit;
    use machmeter_data::shape::{Axis, CurveRow, DistributionRow, SeriesRow};

    #[test]
    fn merging_keeps_extremes_means_and_duration() {
        let row = SeriesRow {
            name: "r".into(),
            min: vec![3.0, 1.0, 2.0, 9.0],
            mean: vec![4.0, 6.0, 5.0, 9.0],
            max: vec![5.0, 7.0, 80.0, 9.0],
            marks: vec![],
        };
        let mut s = Series { start_ns: 0.0, step_ns: 10.0, y: Axis::linear("y", Unit::One), rows: vec![row] };
        series(&mut s, 2);
        let row = &s.rows[0];
        assert_eq!((s.step_ns, &row.min[..], &row.max[..]), (20.0, &[1.0, 2.0][..], &[7.0, 80.0][..]));
        assert_eq!(row.mean, [5.0, 7.0]);
    }

    #[test]
    fn a_spectral_line_survives() {
        let x: Vec<f64> = (0..100).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|v| if *v == 57.0 { 10.0 } else { 1.0 }).collect();
        let axis = || Axis::linear("x", Unit::Hertz);
        let mut c =
            Curve { x: axis(), y: axis(), rows: vec![CurveRow { name: "r".into(), x, y }], marks: vec![] };
        curve(&mut c, 7);
        assert_eq!(c.rows[0].x.len(), 15);
        assert!(c.rows[0].x.contains(&57.0) && c.rows[0].y.contains(&10.0));
    }

    #[test]
    fn merged_curves_keep_the_percentiles_that_tables_show() {
        let quantiles: Vec<(f64, f64)> = (0..=1000).map(|i| (f64::from(i) / 1000.0, f64::from(i))).collect();
        let row = DistributionRow { name: "r".into(), n: 1000, quantiles };
        let mut d =
            Distribution { value: Axis::log("y", Unit::Nanoseconds), rows: vec![row], limits: Vec::new() };
        distribution(&mut d, 40);
        let kept = &d.rows[0].quantiles;
        assert!(kept.len() < 40, "{}", kept.len());
        for p in [0.0, 0.5, 0.9, 0.95, 0.99, 0.999, 1.0] {
            assert!(kept.contains(&(p, (p * 1000.0_f64).round())), "{p}");
        }
    }

    #[test]
    fn the_last_point_stays() {
        assert_eq!(every(&[1, 2, 3, 4, 5, 6], 2), [1, 3, 5, 6]);
        assert_eq!(every(&[1, 2, 3], 2), [1, 3]);
    }
}
