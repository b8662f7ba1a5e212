//! Selects the figures that the tiles of the report and the card show: rows of the page, the first of each section before the second of any.

use machmeter_data::quantity::human;
use machmeter_data::summary::{Compared, Mark, Row, Shows, ends};
use machmeter_data::{Record, Unit};

use crate::identity::Identity;
use crate::label;

/// A figure with the text beside it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tile<'r> {
    /// `NOISE`, `MEMORY`, ...
    pub section: &'r str,
    /// The probe of the first figure: `noise`.
    pub probe: &'r str,
    /// Quantity and condition.
    pub name: String,
    /// The first figure of the row.
    pub value: String,
    /// Its interval, and the other figures with their conditions.
    pub note: String,
    /// The first figure of earlier runs, then of this run; empty if there are too few runs.
    pub trend: Vec<f64>,
    /// The first figure with its usual range.
    pub compared: Option<Compared>,
    /// Signs of the marks of its figures.
    pub signs: String,
    /// Index of the dataset that shows when the figure occurred, for example the longest gap on its time line.
    pub moment: Option<usize>,
}

/// Least number of earlier runs for a trend.
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
    let figure = row.figures.iter().find(|f| f.id == first.metric.id && f.params == first.metric.params);
    let is_longest = figure.is_some_and(|f| f.shows == Shows::Max);
    let moment = moment(record, condition, &human(first.value, first.unit)).filter(|_| is_longest);
    let mut marks: Vec<Mark> = shown.iter().flat_map(|(_, s)| Mark::of(s.metric)).collect();
    marks.sort_unstable();
    marks.dedup();
    let signs = marks.iter().map(|m| m.sign()).collect();
    let marks = marks.iter().map(|m| m.name().to_owned());
    let earlier = figure.map(|f| f.earlier.clone()).unwrap_or_default();
    let name = if condition.is_empty() { row.name.clone() } else { format!("{}, {condition}", row.name) };
    Some(Tile {
        section: &row.section,
        probe: first.metric.id.split('.').next().unwrap_or_default(),
        name,
        value: human(first.value, first.unit),
        note: interval
            .into_iter()
            .chain(moment.iter().map(|m| m.1.clone()))
            .chain(other)
            .chain(marks)
            .collect::<Vec<_>>()
            .join("; "),
        trend: if earlier.len() >= TREND {
            earlier.into_iter().chain([first.value]).collect()
        } else {
            Vec::new()
        },
        compared: row.compared(&record.metrics),
        signs,
        moment: moment.map(|m| m.0),
    })
}

/// The time line of the row `name` that marks this figure, and the mark in words: `at 3.21 s, timer tick`.
fn moment(record: &Record, name: &str, figure: &str) -> Option<(usize, String)> {
    record.datasets.iter().enumerate().find_map(|(at, dataset)| {
        let rows = &dataset.shape.series()?.rows;
        let marks = &rows.iter().find(|r| r.name == name)?.marks;
        let mark = marks.iter().find(|m| m.label == figure)?;
        let cause = mark.detail.split(" (").next().filter(|c| !c.is_empty() && *c != "unknown");
        let cause = cause.map_or(String::new(), |c| format!(", {c}"));
        Some((at, format!("at {}{cause}", human(mark.x, Unit::Nanoseconds))))
    })
}

/// Three lines for a message: the machine, the verdicts, and the main figures with the signs of their marks.
pub(crate) fn lines(record: &Record) -> [String; 3] {
    let machine = Identity::of(record).line();
    let verdicts = record.summary.fitness.iter().map(|f| format!("{}: {}", f.purpose, label::fit(f.fit)));
    let figures =
        tiles(record, MOST_FIGURES).into_iter().map(|t| format!("{} {}{}", t.name, t.value, t.signs));
    let tool = format!("{} {}, {}", record.tool.name, record.tool.version, record.run.started);
    let figures = figures.collect::<Vec<_>>().join("; ");
    [format!("{machine} ({tool})"), verdicts.collect::<Vec<_>>().join("; "), figures]
}

/// Most figures of the third line.
const MOST_FIGURES: usize = 8;
