//! Draws the main pictures of a record: latency over working sets, lateness of tasks, time lost to other work, costs of operations. A picture is chosen
//! by the shape of its data; the report begins with them and the card shows them.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use machmeter_data::quantity::human;
use machmeter_data::shape::{Cell, CostTable, Curve, Series, SeriesRow};
use machmeter_data::summary::Mark;
use machmeter_data::{Dataset, Record, Unit};

use crate::chart::{self, Size};

/// Height of a named operation on the picture of costs.
const LINE: f64 = 15.0;

/// A picture with the text needed to read it.
#[derive(Debug)]
pub(crate) struct Picture {
    pub title: String,
    pub about: String,
    pub svg: String,
    /// Names of its lines, in the order of their colors; empty if the picture itself has names.
    pub legend: Vec<String>,
    /// Index of the dataset in the record.
    pub dataset: usize,
}

/// The pictures for which the record has data, each of this size.
pub(crate) fn all(record: &Record, size: Size) -> Vec<Picture> {
    let found = [ladder(record, size), late(record, size), taken(record, size), costs(record, size)];
    found.into_iter().flatten().collect()
}

/// Indices of their datasets in the record.
pub(crate) fn datasets(record: &Record) -> Vec<usize> {
    all(record, Size { width: 520.0, height: 290.0 }).iter().map(|p| p.dataset).collect()
}

fn find<'r, T: 'r>(
    record: &'r Record,
    wanted: impl Fn(&'r Dataset) -> Option<T>,
) -> impl Iterator<Item = (usize, T)> {
    record.datasets.iter().enumerate().filter_map(move |(at, d)| Some((at, wanted(d)?)))
}

/// The curve over working sets with the most points, among those with levels on logarithmic axes.
pub(crate) fn curve_of_levels(record: &Record) -> Option<(usize, &Curve)> {
    let has_levels = |c: &&Curve| c.x.log && c.y.log && c.x.unit == Unit::Bytes && !c.marks.is_empty();
    let curves = find(record, |d| d.shape.curve().filter(has_levels));
    curves.max_by_key(|(_, c)| c.rows.iter().map(|r| r.x.len()).max())
}

/// The first time series of shares.
pub(crate) fn shares(record: &Record) -> Option<(usize, &Series)> {
    find(record, |d| d.shape.series().filter(|s| s.y.unit == Unit::One && !s.rows.is_empty())).next()
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The rows with the greatest means, at most `most`.
pub(crate) fn most_taken(series: &Series, most: usize) -> Vec<&SeriesRow> {
    let mut rows: Vec<&SeriesRow> = series.rows.iter().filter(|r| !r.mean.is_empty()).collect();
    rows.sort_by(|a, b| mean(&b.mean).total_cmp(&mean(&a.mean)));
    rows.truncate(most);
    rows
}

/// Means of adjacent values, in at most `most` slices.
pub(crate) fn slices(row: &SeriesRow, most: usize) -> Vec<f64> {
    row.mean.chunks(row.mean.len().div_ceil(most).max(1)).map(mean).collect()
}

fn ladder(record: &Record, size: Size) -> Option<Picture> {
    let (dataset, curve) = curve_of_levels(record)?;
    let levels = record.summary.rows.iter().filter(|r| r.section == "LADDER");
    let told: Vec<String> =
        levels.filter_map(|r| Some(format!("{} {}", r.name, r.text(&record.metrics)?.list()))).collect();
    // The densest curve is the picture. Curves of random order have a few points and are drawn beside it.
    let most = curve.rows.iter().max_by_key(|r| r.x.len())?;
    let others = curve.rows.iter().filter(|r| r.name != most.name && r.name.starts_with("random,"));
    let rows = std::iter::once(most).chain(others).cloned().collect();
    let marks = curve.marks.iter().filter(|m| m.edge).cloned().collect();
    let shown = Curve { rows, marks, ..curve.clone() };
    Some(Picture {
        title: "Memory ladder".to_owned(),
        about: told.join("; "),
        svg: chart::curve(&shown, "Memory ladder", size),
        legend: shown.rows.iter().map(|r| r.name.clone()).collect(),
        dataset,
    })
}

fn late(record: &Record, size: Size) -> Option<Picture> {
    let (dataset, found) =
        find(record, |d| d.shape.distribution().filter(|x| !x.limits.is_empty())).next()?;
    let task = record.datasets[dataset].params.values().next().map(ToString::to_string).unwrap_or_default();
    let title =
        if task.is_empty() { "How late tasks run".to_owned() } else { format!("How late {task} wakes up") };
    Some(Picture {
        svg: chart::distribution(found, &title, size),
        title,
        about: "Share of wake-ups that are this late or less, under each load.".to_owned(),
        legend: found.rows.iter().map(|r| load(&r.name)).collect(),
        dataset,
    })
}

fn load(name: &str) -> String {
    if name == "none" { "idle machine".to_owned() } else { format!("under {name}") }
}

fn taken(record: &Record, size: Size) -> Option<Picture> {
    let (dataset, series) = shares(record)?;
    let probe = |d: &Dataset| d.id.split('.').next().unwrap_or_default().to_owned();
    let own = probe(&record.datasets[dataset]);
    let who =
        record.datasets.iter().filter(|d| probe(d) == own).find_map(|d| shares_of(d.shape.cost_table()?));
    // The total is the page's own figure of this share.
    let figures = record.summary.rows.iter().flat_map(|r| &r.figures).filter(|f| f.id.starts_with(&own));
    let total =
        figures.filter_map(|f| f.find(&record.metrics)).find(|s| s.unit == Unit::One).map(|s| s.value);
    let sources = total
        .map_or(String::new(), |t| format!(" Below: who took the gaps ({} in total).", human(t, Unit::One)));
    Some(Picture {
        title: record.datasets[dataset].title.clone(),
        about: format!(
            "Lost in each {} slice, to gaps or a slower core.{sources}",
            human(series.step_ns, Unit::Nanoseconds)
        ),
        svg: chart::taken(series, &who.unwrap_or_default(), total, size),
        legend: Vec::new(),
        dataset,
    })
}

/// Rows of a table with their first column of shares, the greatest first.
fn shares_of(t: &CostTable) -> Option<Vec<(String, f64)>> {
    let column = t.columns.iter().position(|c| c.unit == Some(Unit::One))?;
    let share = |r: &machmeter_data::shape::TableRow| match r.cells.get(column)? {
        Cell::Number(v) if *v > 0.0 => Some((r.name.clone(), *v)),
        _ => None,
    };
    let mut rows: Vec<(String, f64)> = t.rows.iter().filter_map(share).collect();
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    (!rows.is_empty()).then_some(rows)
}

fn costs(record: &Record, size: Size) -> Option<Picture> {
    let (dataset, costs) = find(record, |d| d.shape.decades().filter(|x| !x.rows.is_empty())).next()?;
    let mut sorted = costs.clone();
    sorted.rows.sort_by(|a, b| a.value.total_cmp(&b.value));
    // If not all rows are legible, rows at even distances from the cheapest to the costliest.
    let (all, room) = (sorted.rows.len(), (size.height / LINE) as usize);
    let every = |i: usize| i * (all - 1) / (room - 1).max(1);
    if all > room {
        sorted.rows = (0..room).map(|i| sorted.rows[every(i)].clone()).collect();
    }
    let mut about = "Log scale, one decade per line.".to_owned();
    let marks: BTreeSet<Mark> = sorted.rows.iter().flat_map(|r| r.marks(&record.metrics)).collect();
    for mark in marks {
        let _ = write!(about, " {} {}.", mark.sign(), mark.name());
    }
    Some(Picture {
        title: "What operations cost".to_owned(),
        about,
        svg: chart::decades(&sorted, &record.metrics, "What operations cost", size),
        legend: Vec::new(),
        dataset,
    })
}
