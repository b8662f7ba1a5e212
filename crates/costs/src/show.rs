//! What pages are made of.

use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, CurveRow, Mark, TableColumn, TableRow};
use machmeter_data::{Dataset, Shape, Unit};

pub(crate) const NS: Option<Unit> = Some(Unit::Nanoseconds);

pub(crate) fn finding(id: &str, verdict: &str, text: impl Into<String>, evidence: Vec<String>) -> Finding {
    Finding { id: id.to_owned(), verdict: verdict.to_owned(), text: text.into(), evidence }
}

pub(crate) fn number(value: Option<f64>) -> Cell {
    value.map_or(Cell::Empty(()), Cell::Number)
}

/// With so many digits behind the first: more than a drawing shows, and no more, which keeps pages small.
pub(crate) fn rounded(x: f64, digits: usize) -> f64 {
    format!("{x:.digits$e}").parse().unwrap_or(x)
}

pub(crate) fn table<L: Into<String>>(
    [id, title, caption]: [&str; 3],
    columns: impl IntoIterator<Item = (L, Option<Unit>)>,
    rows: Vec<TableRow>,
) -> Option<Dataset> {
    let columns = columns.into_iter().map(|(label, unit)| TableColumn::new(label, unit)).collect();
    (!rows.is_empty())
        .then(|| Dataset::new(id, title, caption, Shape::CostTable(CostTable { columns, rows })))
}

/// A curve through these points from left to right, if they are two.
pub(crate) fn curve(name: &str, mut points: Vec<(f64, f64)>) -> Option<CurveRow> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points.dedup_by(|a, b| a.0 == b.0);
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    (x.len() > 1).then(|| CurveRow { name: name.to_owned(), x, y })
}

pub(crate) fn curves(
    [id, title, caption]: [&str; 3],
    [x, y]: [Axis; 2],
    rows: impl IntoIterator<Item = CurveRow>,
    marks: Vec<Mark>,
) -> Option<Dataset> {
    let shape = Curve { x, y, rows: rows.into_iter().collect(), marks };
    (!shape.rows.is_empty()).then(|| Dataset::new(id, title, caption, Shape::Curve(shape)))
}

/// Each once, in ascending order. They are few: a set would be sorted by a thousand instructions for each type.
pub(crate) fn ascending<T: Ord>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for one in all {
        if let Err(at) = out.binary_search(&one) {
            out.insert(at, one);
        }
    }
    out
}

pub(crate) fn present<T, const N: usize>(all: [Option<T>; N]) -> Vec<T> {
    all.into_iter().flatten().collect()
}

/// Each once, in the order in which they first appear.
pub(crate) fn distinct<T: PartialEq>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut out = Vec::new();
    for one in all {
        if !out.contains(&one) {
            out.push(one);
        }
    }
    out
}
