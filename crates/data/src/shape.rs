//! The shapes of data. A view draws a shape and knows no probe; a probe chooses a shape for its data.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Params;
use crate::quantity::Unit;

/// Data to draw: a title, a caption and the shape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dataset {
    /// Unique in the record, `noise.timeline`.
    pub id: String,
    /// Parameters that distinguish datasets of one id (`cpu`).
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// Heading.
    pub title: String,
    /// One or two sentences on how to read the data.
    pub caption: String,
    /// The data.
    #[serde(flatten)]
    pub shape: Shape,
}

impl Dataset {
    /// A dataset whose id is unique in the record.
    pub fn new(id: &str, title: impl Into<String>, caption: impl Into<String>, shape: Shape) -> Self {
        Self { id: id.to_owned(), params: Params::new(), title: title.into(), caption: caption.into(), shape }
    }

    /// Sets the parameters, for one of several datasets of an id.
    #[must_use]
    pub fn with_params(mut self, params: Params) -> Self {
        self.params = params;
        self
    }
}

/// The shapes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "shape", rename_all = "snake_case")]
pub enum Shape {
    /// A uniform time series per row, reduced to minimum, mean and maximum per bucket so that no extreme is lost.
    Series(Series),
    /// Quantiles of one or more sets of samples, dense toward the tail.
    Distribution(Distribution),
    /// Curves over a common kind of x, with named marks (a spectrum and its lines).
    Curve(Curve),
    /// Points of several named groups on two axes.
    Scatter(Scatter),
    /// A rectangle of values, row by row.
    Matrix(Matrix),
    /// Rows of named costs or sources.
    CostTable(CostTable),
    /// Named costs on a logarithmic scale, decade by decade.
    Decades(Decades),
}

macro_rules! views_of {
    ($($of:ident $shape:ident),*) => {
        impl Shape {
            $(
                #[doc = concat!("The data, if it is a [`", stringify!($shape), "`].")]
                pub fn $of(&self) -> Option<&$shape> {
                    if let Self::$shape(data) = self { Some(data) } else { None }
                }
            )*
        }
    };
}
views_of!(series Series, distribution Distribution, curve Curve, matrix Matrix, cost_table CostTable, decades Decades);

/// An axis: name, unit, and scale.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Label without unit.
    pub label: String,
    /// Unit.
    pub unit: Unit,
    /// True for a logarithmic scale.
    #[serde(default)]
    pub log: bool,
}

impl Axis {
    /// A linear axis.
    pub fn linear(label: &str, unit: Unit) -> Self {
        Self { label: label.to_owned(), unit, log: false }
    }

    /// A logarithmic axis.
    pub fn log(label: &str, unit: Unit) -> Self {
        Self { label: label.to_owned(), unit, log: true }
    }
}

/// See [`Shape::Series`]. All vectors of a row have the same length: one entry per bucket.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Series {
    /// Start of the first bucket after the start of the run, ns.
    pub start_ns: f64,
    /// Length of a bucket, ns.
    pub step_ns: f64,
    /// Value axis.
    pub y: Axis,
    /// One row per CPU or stream.
    pub rows: Vec<SeriesRow>,
}

/// One row of a [`Series`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SeriesRow {
    /// Name (`CPU 1`).
    pub name: String,
    /// Smallest value in each bucket.
    pub min: Vec<f64>,
    /// Mean of each bucket.
    pub mean: Vec<f64>,
    /// Largest value in each bucket.
    pub max: Vec<f64>,
    /// Moments worth a mark.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

/// A named position on the x axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// Position in the x unit (ns after start for a series).
    pub x: f64,
    /// Height, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// Short label.
    pub label: String,
    /// Longer text with the cause and its surroundings.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// True at the end of a level; no line joins points on both sides of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub edge: bool,
}

/// See [`Shape::Distribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Value axis.
    pub value: Axis,
    /// One per CPU or class.
    pub rows: Vec<DistributionRow>,
    /// Important heights, for example a deadline. Only `y` is used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Mark>,
}

/// One set of samples of a [`Distribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionRow {
    /// Name.
    pub name: String,
    /// Number of samples.
    pub n: u64,
    /// Ascending pairs (probability, value); the last is (1, maximum).
    pub quantiles: Vec<(f64, f64)>,
}

impl DistributionRow {
    /// A row of `n` samples: `per_decade` quantiles per factor of ten of 1 / (1 - p), the quantiles of tables, and the greatest sample.
    pub fn of(name: String, n: u64, per_decade: u32, quantile: impl Fn(f64) -> f64, greatest: f64) -> Self {
        // Twenty factors of ten exceed the range of 64 bits.
        let steps = (0..20 * per_decade).map(|k| 1.0 - 10_f64.powf(-f64::from(k) / f64::from(per_decade)));
        let is_known = |p: &f64| (1.0 - p) * n as f64 >= 1.0;
        let all = steps.take_while(is_known).chain(ASKED.into_iter().filter(is_known));
        let mut all: Vec<f64> = all.map(|p| (p * 1e7).round() / 1e7).filter(|p| *p < 1.0).collect();
        all.sort_by(f64::total_cmp);
        all.dedup();
        let point = |p: f64| (p, four_digits(quantile(p)));
        let quantiles = all.into_iter().map(point).chain([(1.0, greatest)]).collect();
        Self { name, n, quantiles }
    }
}

/// Quantiles of tables that the steps toward the tail do not include.
const ASKED: [f64; 4] = [0.25, 0.5, 0.75, 0.95];

/// Four significant digits, enough for a drawing; 0 if `x` is not finite.
pub fn four_digits(x: f64) -> f64 {
    format!("{x:.3e}").parse().ok().filter(|x: &f64| x.is_finite()).unwrap_or(0.0)
}

/// See [`Shape::Curve`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// x axis.
    pub x: Axis,
    /// y axis.
    pub y: Axis,
    /// Curves, each with its own x.
    pub rows: Vec<CurveRow>,
    /// Named lines.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub marks: Vec<Mark>,
}

impl Curve {
    /// Curves without marks.
    pub fn shape(x: Axis, y: Axis, rows: Vec<CurveRow>) -> Shape {
        Shape::Curve(Self { x, y, rows, marks: Vec::new() })
    }
}

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveRow {
    /// Name.
    pub name: String,
    /// Ascending x.
    pub x: Vec<f64>,
    /// The y of each x.
    pub y: Vec<f64>,
}

/// See [`Shape::Scatter`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Scatter {
    /// x axis.
    pub x: Axis,
    /// y axis.
    pub y: Axis,
    /// Groups, each drawn in its own color and symbol.
    pub groups: Vec<ScatterGroup>,
}

/// One group of points.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScatterGroup {
    /// Name (a source).
    pub name: String,
    /// Points (x, y).
    pub points: Vec<(f64, f64)>,
}

/// See [`Shape::Matrix`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Matrix {
    /// Meaning of the columns (time after start, the other CPU).
    pub x: Axis,
    /// Value at the start of each column, in the x unit; ignored if the columns have names.
    pub columns: Vec<f64>,
    /// Names of the columns, if they are things (loads) rather than values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub column_names: Vec<String>,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// Meaning of the cells.
    pub cell: Axis,
    /// One vector per row; `null` without an observation.
    pub values: Vec<Vec<Option<f64>>>,
    /// Least and greatest value of the color scale, if several matrices share it; else this matrix sets the scale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

impl Matrix {
    /// A matrix whose columns are named things; `x` is the word for them.
    pub fn named(
        x: &str,
        column_names: Vec<String>,
        rows: Vec<String>,
        cell: Axis,
        values: Vec<Vec<Option<f64>>>,
    ) -> Self {
        let columns = (0..column_names.len()).map(|i| i as f64).collect();
        Self { x: Axis::linear(x, Unit::Count), columns, column_names, rows, cell, values, range: None }
    }

    /// Number of columns, by name or by value.
    pub fn width(&self) -> usize {
        if self.column_names.is_empty() { self.columns.len() } else { self.column_names.len() }
    }
}

/// See [`Shape::CostTable`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CostTable {
    /// Columns after the name.
    pub columns: Vec<TableColumn>,
    /// Rows.
    pub rows: Vec<TableRow>,
}

/// A column of a [`CostTable`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableColumn {
    /// Heading.
    pub label: String,
    /// Unit of its numbers; none for text.
    pub unit: Option<Unit>,
}

impl TableColumn {
    /// A column with this heading; `None` for texts.
    pub fn new(label: impl Into<String>, unit: impl Into<Option<Unit>>) -> Self {
        Self { label: label.into(), unit: unit.into() }
    }
}

/// A row of a [`CostTable`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRow {
    /// Name in the first column.
    pub name: String,
    /// One cell per column.
    pub cells: Vec<Cell>,
}

/// A cell of a [`CostTable`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Cell {
    /// A number in the column's unit.
    Number(f64),
    /// Text.
    Text(String),
    /// No value.
    Empty(()),
}

/// See [`Shape::Decades`]. Values are positive.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Decades {
    /// Value axis. Times are placed by the decade of their seconds ("ten to the power minus").
    pub value: Axis,
    /// Rows in the order of the table they come from.
    pub rows: Vec<DecadeRow>,
}

/// One named cost of a [`Decades`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DecadeRow {
    /// Name.
    pub name: String,
    /// Key of the metric with this value, `id{name=value,...}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Value, in the axis' unit.
    pub value: f64,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
}

impl DecadeRow {
    /// Distance in decades to the midpoint between two whole decades, within which a row is on the edge: its whole number can differ between two runs.
    pub const EDGE: f64 = 0.05;

    /// Decimal logarithm in the base unit: of seconds for ns, else of `unit` itself. `None` unless positive.
    pub fn log10(&self, unit: Unit) -> Option<f64> {
        let scale = if unit == Unit::Nanoseconds { 1e-9 } else { 1.0 };
        (self.value > 0.0 && self.value.is_finite()).then(|| (self.value * scale).log10())
    }

    /// The nearest whole decade, and true if the value is on the edge to the next one.
    pub fn decade(&self, unit: Unit) -> Option<(i32, bool)> {
        let log = self.log10(unit)?;
        let nearest = log.round();
        Some((nearest as i32, 0.5 - (log - nearest).abs() <= Self::EDGE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_lie_at_their_nearest_decade_and_edges_are_told() {
        let row = |value| DecadeRow { name: String::new(), metric: None, value, low: None, high: None };
        let at = |value| row(value).decade(Unit::Nanoseconds);
        assert_eq!(at(1.0), Some((-9, false)));
        assert_eq!(at(184.0), Some((-7, false)), "cut off, this is -6");
        assert_eq!(at(328.0), Some((-6, true)), "log10 is -6.48: 0.02 from the edge");
        assert_eq!(at(0.0), None);
        assert_eq!(row(20.0).decade(Unit::Bytes), Some((1, false)));
    }

    #[test]
    fn a_distribution_has_the_quantiles_of_tables_and_ends_with_the_greatest() {
        let row = DistributionRow::of("r".into(), 10_000, 5, |p| p * 10_000.0, 10_000.25);
        let at = |p: f64| row.quantiles.iter().find(|q| q.0 >= p - 1e-12).unwrap();
        assert_eq!([0.25, 0.5, 0.95, 0.99].map(|p| at(p).0), [0.25, 0.5, 0.95, 0.99]);
        assert_eq!((at(0.5).1, row.quantiles.last()), (5_000.0, Some(&(1.0, 10_000.25))));
        assert!(row.quantiles.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
        assert_eq!(DistributionRow::of("r".into(), 1, 5, |_| 7.0, 7.0).quantiles, [(0.0, 7.0), (1.0, 7.0)]);
        assert_eq!([123_456.0, 0.0, f64::NAN].map(four_digits), [123_500.0, 0.0, 0.0]);
    }
}
