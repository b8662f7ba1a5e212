//! Static charts, one per shape of data: the picture a page shows with scripts off, and the ones on the card.

mod frame;
mod matrix;
mod series;
mod xy;

use machmeter_data::{Dataset, Shape};

pub(crate) use frame::Size;
pub(crate) use matrix::{level, levels_of};
pub(crate) use xy::symbol;

/// Rows drawn statically at most; the rest is said in words.
pub(crate) const STATIC_ROWS: usize = 8;

/// The picture of a dataset, or nothing for shapes that are tables.
pub(crate) fn draw(dataset: &Dataset, size: Size) -> Option<String> {
    let title = &dataset.title;
    match &dataset.shape {
        Shape::Series(s) => Some(series::draw(s, title, size)),
        Shape::Distribution(d) => Some(xy::distribution(d, title, size)),
        Shape::Curve(c) => Some(xy::curve(c, title, size)),
        Shape::Scatter(s) => Some(xy::scatter(s, title, size)),
        Shape::Matrix(m) => Some(matrix::draw(m, title, size)),
        Shape::CostTable(_) => None,
    }
}

/// Names of the rows a chart shows in colors, for its legend.
pub(crate) fn legend(shape: &Shape) -> Vec<&str> {
    match shape {
        Shape::Distribution(d) => d.rows.iter().map(|r| r.name.as_str()).collect(),
        Shape::Curve(c) => c.rows.iter().map(|r| r.name.as_str()).collect(),
        Shape::Scatter(s) => s.groups.iter().map(|g| g.name.as_str()).collect(),
        Shape::Series(_) | Shape::Matrix(_) | Shape::CostTable(_) => Vec::new(),
    }
}
