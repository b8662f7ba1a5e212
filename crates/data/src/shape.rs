//! The shapes in which data is shown. Views are written per shape and know no probe; a probe says which of its data has
//! which shape.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::Params;
use crate::quantity::Unit;

/// One thing to show: a title, the shape, and what to remember when reading it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Dataset {
    /// Unique in the record, `noise.timeline`.
    pub id: String,
    /// What distinguishes datasets of one id (`cpu`).
    #[serde(default, skip_serializing_if = "Params::is_empty")]
    pub params: Params,
    /// Heading.
    pub title: String,
    /// One or two sentences on how to read it.
    pub caption: String,
    /// The data.
    #[serde(flatten)]
    pub shape: Shape,
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
}

/// An axis: name, unit, and whether it is best drawn logarithmically.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Axis {
    /// Label without unit.
    pub label: String,
    /// Unit.
    pub unit: Unit,
    /// Logarithmic.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mark {
    /// Position in the x unit (ns after start for a series).
    pub x: f64,
    /// Height, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub y: Option<f64>,
    /// Short label.
    pub label: String,
    /// Longer text: what it is, what is near it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// See [`Shape::Distribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Value axis.
    pub value: Axis,
    /// One per CPU or class.
    pub rows: Vec<DistributionRow>,
}

/// One set of samples of a [`Distribution`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DistributionRow {
    /// Name.
    pub name: String,
    /// Samples.
    pub n: u64,
    /// Ascending pairs (probability, value); the last is (1, maximum).
    pub quantiles: Vec<(f64, f64)>,
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

/// One curve.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurveRow {
    /// Name.
    pub name: String,
    /// Ascending x.
    pub x: Vec<f64>,
    /// y of each x.
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
    /// What the columns are (time after start, the other CPU).
    pub x: Axis,
    /// Value at the start of each column, in the x unit; not read where the columns have names.
    pub columns: Vec<f64>,
    /// Names of the columns, where they stand for things (loads) instead of values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub column_names: Vec<String>,
    /// Names of the rows.
    pub rows: Vec<String>,
    /// What a cell holds.
    pub cell: Axis,
    /// One vector per row; `null` where nothing was seen.
    pub values: Vec<Vec<Option<f64>>>,
}

impl Matrix {
    /// A matrix whose columns stand for named things; `x` says in a word what they are.
    pub fn named(
        x: &str,
        column_names: Vec<String>,
        rows: Vec<String>,
        cell: Axis,
        values: Vec<Vec<Option<f64>>>,
    ) -> Self {
        let columns = (0..column_names.len()).map(|i| i as f64).collect();
        Self { x: Axis::linear(x, Unit::Count), columns, column_names, rows, cell, values }
    }

    /// Columns, by name or by value.
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
    /// Nothing, with no number to show.
    Empty(()),
}
