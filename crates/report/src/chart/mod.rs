//! Draws static charts, one kind per shape of data: for the page without scripts, and for the card.

mod decades;
mod frame;
mod levels;
mod matrix;
mod named;
mod series;
mod taken;
mod xy;

use machmeter_data::{Dataset, Metric, Shape};

pub(crate) use decades::draw as decades;
pub(crate) use frame::Size;
pub(crate) use levels::{LEVELS, Levels};
pub(crate) use taken::draw as taken;
pub(crate) use xy::{curve, distribution, line_class, symbol};

/// Most rows of a static picture; a sentence gives the number of all rows.
pub(crate) const STATIC_ROWS: usize = 8;

/// Draws a dataset; `None` for shapes that are tables. Figures of `metrics` carry the signs of their marks.
pub(crate) fn draw(dataset: &Dataset, metrics: &[Metric], size: Size) -> Option<String> {
    let title = &dataset.title;
    match &dataset.shape {
        Shape::Series(s) => Some(series::draw(s, title, size)),
        Shape::Distribution(d) => Some(xy::distribution(d, title, size)),
        Shape::Curve(c) => Some(xy::curve(c, title, size)),
        Shape::Scatter(s) => Some(xy::scatter(s, title, size)),
        Shape::Matrix(m) if m.column_names.is_empty() => Some(matrix::draw(m, title, size)),
        Shape::Matrix(m) => Some(named::draw(m, title, size)),
        Shape::Decades(d) => Some(decades::draw(d, metrics, title, size)),
        Shape::CostTable(_) => None,
    }
}

/// Names of the rows that a chart draws in colors, for its legend.
pub(crate) fn legend(shape: &Shape) -> Vec<&str> {
    match shape {
        Shape::Distribution(d) => d.rows.iter().map(|r| r.name.as_str()).collect(),
        Shape::Curve(c) => c.rows.iter().map(|r| r.name.as_str()).collect(),
        Shape::Scatter(s) => s.groups.iter().map(|g| g.name.as_str()).collect(),
        Shape::Series(_) | Shape::Matrix(_) | Shape::CostTable(_) | Shape::Decades(_) => Vec::new(),
    }
}

/// The shape reduced to its highest rows, in their order, and the number of all rows; `None` if all fit.
pub(crate) fn largest_rows(shape: &Shape) -> Option<(Shape, usize)> {
    let greatest = |v: &mut dyn Iterator<Item = f64>| v.fold(f64::NEG_INFINITY, f64::max);
    let mut kept = shape.clone();
    let total = match &mut kept {
        Shape::Series(s) => keep(&mut s.rows, |r| greatest(&mut r.max.iter().copied())),
        Shape::Distribution(d) => keep(&mut d.rows, |r| greatest(&mut r.quantiles.iter().map(|q| q.1))),
        Shape::Curve(c) => keep(&mut c.rows, |r| greatest(&mut r.y.iter().copied())),
        Shape::Scatter(_) | Shape::Matrix(_) | Shape::CostTable(_) | Shape::Decades(_) => return None,
    };
    (total > STATIC_ROWS).then_some((kept, total))
}

/// Keeps the [`STATIC_ROWS`] rows of greatest height in their order; returns the number of all rows.
fn keep<T>(rows: &mut Vec<T>, height: impl Fn(&T) -> f64) -> usize {
    let total = rows.len();
    let mut heights: Vec<f64> = rows.iter().map(&height).collect();
    heights.sort_by(|a, b| b.total_cmp(a));
    if let Some(least) = heights.get(STATIC_ROWS - 1).copied() {
        rows.retain(|r| height(r) >= least);
        rows.truncate(STATIC_ROWS);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rows_stay_in_their_order() {
        let mut rows: Vec<i32> = vec![5, 90, 1, 80, 70, 60, 50, 2, 40, 30, 20];
        assert_eq!(keep(&mut rows, |r| f64::from(*r)), 11);
        assert_eq!(rows, [90, 80, 70, 60, 50, 40, 30, 20]);
    }
}
