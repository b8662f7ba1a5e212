//! The figures that tiles of the report and of the card show: rows of the page, the first of each section before the second of any.

use machmeter_data::Record;
use machmeter_data::quantity::human;
use machmeter_data::summary::{Compared, Mark, Row, RowFigure, ends};

/// A figure with what is to be known beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile<'r> {
    /// `NOISE`, `MEMORY`, ...
    pub section: &'r str,
    /// The probe of the first figure: `noise`.
    pub probe: &'r str,
    /// What it is, and under which condition.
    pub name: String,
    /// The first figure of the row.
    pub value: String,
    /// Its interval, and the other figures with their conditions.
    pub note: String,
    /// The same of earlier runs, the latest last, then that of this one; empty where there are too few.
    pub trend: Vec<f64>,
    /// The first figure beside where it usually lies.
    pub compared: Option<Compared>,
}

/// Earlier runs from which on a trend is drawn.
const TREND: usize = 3;

/// Sections of rows that pictures show.
const PICTURED: [&str; 2] = ["LADDER", "TAKEN"];

/// At most `most` tiles in the order of the rows.
pub(crate) fn tiles(record: &Record, most: usize) -> Vec<Tile<'_>> {
    let rows: Vec<&Row> =
        record.summary.rows.iter().filter(|r| !PICTURED.contains(&r.section.as_str())).collect();
    let place = |at: usize| rows[..at].iter().filter(|r| r.section == rows[at].section).count();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|at| (rows[*at].detail, place(*at)));
    let mut tiles: Vec<(usize, Tile<'_>)> =
        order.into_iter().filter_map(|at| Some((at, tile(rows[at], record)?))).take(most).collect();
    tiles.sort_by_key(|t| t.0);
    tiles.into_iter().map(|t| t.1).collect()
}

fn tile<'r>(row: &'r Row, record: &'r Record) -> Option<Tile<'r>> {
    let shown = row.shown(&record.metrics);
    let ((condition, first), others) = shown.split_first()?;
    let ci = first.metric.ci.as_ref().filter(|_| first.metric.value == Some(first.value));
    let interval = ci.map(|c| ends(c.low, c.high, first.unit));
    let other = others.iter().map(|(condition, s)| format!("{condition}: {}", human(s.value, s.unit)));
    let mut marks: Vec<Mark> = shown.iter().flat_map(|(_, s)| Mark::of(s.metric)).collect();
    marks.sort_unstable();
    marks.dedup();
    let marks = marks.iter().map(|m| m.name().to_owned());
    // That of the first figure that is shown.
    let of = |f: &&RowFigure| f.id == first.metric.id && f.params == first.metric.params;
    let earlier = row.figures.iter().find(of).map(|f| f.earlier.clone()).unwrap_or_default();
    let name = if condition.is_empty() { row.name.clone() } else { format!("{}, {condition}", row.name) };
    Some(Tile {
        section: &row.section,
        probe: first.metric.id.split('.').next().unwrap_or_default(),
        name,
        value: human(first.value, first.unit),
        note: interval.into_iter().chain(other).chain(marks).collect::<Vec<_>>().join("; "),
        trend: if earlier.len() >= TREND {
            earlier.into_iter().chain([first.value]).collect()
        } else {
            Vec::new()
        },
        compared: row.compared(&record.metrics),
    })
}
