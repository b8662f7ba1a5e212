//! Copies a record for storage and display: every number finite, drawn values cut to visible digits.
//!
//! JSON has no NaN or infinity; a writer would turn them into `null` and make the document unreadable. Metrics already reject impossible values when they
//! are made. Any such value that this module finds is therefore a defect, and the copy names it instead of hiding it.

use std::fmt::Write as _;

use crate::shape::{Cell, Curve, Distribution, Mark, Matrix, Series};
use crate::{Dataset, Fact, FactState, FactValue, Facts, Interval, Metric, Record, Shape};

/// Digits of drawn values: one part in a million is far below a pixel.
const DRAWN_DIGITS: usize = 6;

/// Returns the copy. Metrics, facts and marks keep all their digits; values of datasets keep six.
pub fn record(source: &Record) -> Record {
    let mut r = source.clone();
    r.metrics.iter_mut().for_each(metric);
    facts(&mut r.machine.before);
    facts(&mut r.machine.after);
    r.clock = r.clock.filter(|c| {
        let optional = [c.kernel_deviation_ppm, c.cross_cpu_ticks].into_iter().flatten();
        [c.rate_hz, c.rate_error_ppm, c.read_cost_ticks].into_iter().chain(optional).all(f64::is_finite)
    });
    r.datasets.iter_mut().for_each(dataset);
    r
}

/// Rejects a value that is not finite, and drops the fields that depend on it.
fn metric(m: &mut Metric) {
    if m.value.is_some_and(|v| !v.is_finite()) {
        m.reject("the stored value is not a finite number");
    }
    let finite = |c: &Interval| c.low.is_finite() && c.high.is_finite() && c.level.is_finite();
    if !(m.ci.iter().all(finite) && m.earlier.iter().all(|e| finite(&e.own_ci))) {
        m.ci = None;
        m.earlier = None;
    }
    m.quantiles.retain(|_, v| v.is_finite());
    m.blocks.retain(|v| v.is_finite());
    m.follows_clock.take_if(|f| !f.is_finite());
    m.visits.take_if(|v| !v.quantile.is_finite() || !v.all().all(f64::is_finite));
    for optional in [&mut m.max, &mut m.n_eff, &mut m.block_ns, &mut m.apart_ns, &mut m.core_hz] {
        *optional = optional.filter(|v| v.is_finite());
    }
}

fn facts(facts: &mut Facts) {
    for fact in facts.0.values_mut() {
        if fact.value.as_ref().is_some_and(|v| !finite_fact(v)) {
            let why = "the stored value is not a finite number";
            *fact = Fact::missing(FactState::Unreadable, fact.source.clone(), why);
        }
    }
}

fn finite_fact(value: &FactValue) -> bool {
    match value {
        FactValue::Float(f) => f.is_finite(),
        FactValue::List(l) => l.iter().all(finite_fact),
        FactValue::Map(m) => m.values().all(finite_fact),
        FactValue::Bool(_) | FactValue::Int(_) | FactValue::Text(_) => true,
    }
}

fn dataset(d: &mut Dataset) {
    let lost = match &mut d.shape {
        Shape::Decades(x) => {
            let ends = x.rows.iter_mut().flat_map(|r| [&mut r.low, &mut r.high]);
            ends.for_each(|end| *end = end.filter(|v| v.is_finite()));
            left_out(&mut x.rows, |r| r.value.is_finite() && r.value > 0.0)
        }
        Shape::Series(s) => series(s),
        Shape::Distribution(x) => distribution(x),
        Shape::Curve(c) => curve(c),
        Shape::Scatter(s) => s.groups.iter_mut().map(|g| cut_points(&mut g.points)).sum(),
        Shape::Matrix(m) => matrix(m),
        Shape::CostTable(t) => {
            for cell in t.rows.iter_mut().flat_map(|r| &mut r.cells) {
                if matches!(cell, Cell::Number(v) if !v.is_finite()) {
                    *cell = Cell::Empty(());
                }
            }
            0
        }
    };
    if lost > 0 {
        let _ =
            write!(d.caption, " ({lost} values or rows were not finite or incomplete, and are left out.)");
    }
}

fn cut(v: f64) -> f64 {
    cut_to(v, DRAWN_DIGITS)
}

/// `v` with `digits` significant digits.
pub(crate) fn cut_to(v: f64, digits: usize) -> f64 {
    if v == 0.0 || !v.is_finite() { v } else { format!("{v:.*e}", digits - 1).parse().unwrap_or(v) }
}

/// The least number of seven significant digits that is not below `v`.
pub(crate) fn rounded_up(v: f64) -> f64 {
    let near = cut_to(v, 7);
    if near >= v { near } else { cut_to(near + 1e-6 * 10_f64.powf(v.abs().log10().floor()), 7) }
}

fn cut_all(values: &mut [f64]) {
    for v in values {
        *v = cut(*v);
    }
}

/// Keeps the items that `is_kept` accepts; returns the number of removed items.
fn left_out<T>(all: &mut Vec<T>, is_kept: impl FnMut(&T) -> bool) -> usize {
    let before = all.len();
    all.retain(is_kept);
    before - all.len()
}

/// Removes points that are not finite; returns their number.
fn cut_points(points: &mut Vec<(f64, f64)>) -> usize {
    let lost = left_out(points, |(x, y)| x.is_finite() && y.is_finite());
    for point in points {
        *point = (cut(point.0), cut(point.1));
    }
    lost
}

fn all_finite(values: &[f64]) -> bool {
    values.iter().all(|v| v.is_finite())
}

fn marks(marks: &mut Vec<Mark>) {
    marks.retain(|m| m.x.is_finite());
    for m in marks {
        m.y = m.y.filter(|y| y.is_finite());
    }
}

/// Without a bucket, later ones would shift in time, so the whole row is removed.
fn series(s: &mut Series) -> usize {
    let axis_is_fine = s.start_ns.is_finite() && s.step_ns.is_finite() && s.step_ns > 0.0;
    let lost = left_out(&mut s.rows, |r| {
        axis_is_fine && [&r.min, &r.mean, &r.max].iter().all(|v| v.len() == r.mean.len() && all_finite(v))
    });
    if !axis_is_fine {
        (s.start_ns, s.step_ns) = (0.0, 1.0);
    }
    for r in &mut s.rows {
        for values in [&mut r.min, &mut r.mean, &mut r.max] {
            cut_all(values);
        }
        marks(&mut r.marks);
    }
    lost
}

fn distribution(d: &mut Distribution) -> usize {
    let mut lost = 0;
    for r in &mut d.rows {
        lost += left_out(&mut r.quantiles, |(p, v)| (0.0..=1.0).contains(p) && v.is_finite());
        // The subtraction leaves digits without meaning.
        let probability = |p: f64| ((1.0 - cut_to(1.0 - p, 4)) * 1e12).round() / 1e12;
        r.quantiles.iter_mut().for_each(|q| *q = (probability(q.0), cut(q.1)));
    }
    lost
}

fn curve(c: &mut Curve) -> usize {
    let mut lost = 0;
    for r in &mut c.rows {
        let mut points: Vec<(f64, f64)> = r.x.iter().copied().zip(r.y.iter().copied()).collect();
        lost += r.x.len().abs_diff(r.y.len()) + cut_points(&mut points);
        (r.x, r.y) = points.into_iter().unzip();
    }
    marks(&mut c.marks);
    lost
}

fn matrix(m: &mut Matrix) -> usize {
    if m.column_names.is_empty() && !all_finite(&m.columns) {
        (m.values, m.columns) = Default::default();
        return std::mem::take(&mut m.rows).len();
    }
    let mut lost = 0;
    for cell in m.values.iter_mut().flatten() {
        if cell.is_some_and(|v| !v.is_finite()) {
            lost += 1;
            *cell = None;
        }
        *cell = cell.map(cut);
    }
    if !all_finite(&m.columns) {
        m.columns.clear();
    }
    cut_all(&mut m.columns);
    let width = m.width();
    m.values.iter_mut().for_each(|r| r.resize(width, None));
    m.values.resize(m.rows.len(), vec![None; m.columns.len()]);
    lost
}
