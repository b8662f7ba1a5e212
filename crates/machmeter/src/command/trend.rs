//! `machmeter report --history METRIC`: a figure over all stored runs of this machine, and where it changed.

use machmeter_compare::{Level, glob_matches, levels};
use machmeter_data::quantity::human;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark};
use machmeter_data::{Dataset, Metric, Record, Shape, Unit};

use crate::session::empty_record;
use crate::{Failure, Result, state};

/// Figures that are shown at most: more are no answer.
const MOST: usize = 20;

/// A figure of a run.
struct Point {
    started: String,
    metric: Metric,
}

/// A record of the figures that match, over the runs of the latest run's machine, with their levels.
///
/// # Errors
/// When there is no history, or nothing in it matches.
pub(super) fn record(glob: &str) -> Result<Record> {
    let history = state::history().map_err(Failure::usage)?;
    let names = history.list().map_err(Failure::usage)?;
    let runs: Vec<Record> = names.iter().filter_map(|n| history.read(n).ok()).collect();
    let machine = runs.last().map(|r| r.machine.clone()).unwrap_or_default();
    let mut found: Vec<(String, Vec<Point>)> = Vec::new();
    for run in runs.into_iter().filter(|r| r.machine.fingerprint == machine.fingerprint) {
        let started = run.run.started;
        for m in run.metrics {
            let key = m.key();
            if m.value.is_none_or(|v| !v.is_finite())
                || !(glob_matches(glob, &key) || glob_matches(glob, &m.id))
            {
                continue;
            }
            let population = m.population.map_or(String::new(), |p| format!(", {}", p.name()));
            let key = format!("{key}{population}");
            let point = Point { started: started.clone(), metric: m };
            match found.iter_mut().find(|(k, _)| *k == key) {
                Some((_, points)) => points.push(point),
                None => found.push((key, vec![point])),
            }
        }
    }
    if found.is_empty() {
        let what = format!("--history '{glob}': no metric of {} stored runs matches", names.len());
        return Err(Failure::usage(what).help("machmeter list metrics"));
    }
    if found.len() > MOST {
        let what = format!("--history '{glob}': {} metrics match, at most {MOST} are shown", found.len());
        return Err(Failure::usage(what).help("name one: 'ops.cost{*operation=getppid*'"));
    }
    let mut record = empty_record();
    record.machine = machine;
    record.complete = true;
    "history".clone_into(&mut record.run.verb);
    "end of history".clone_into(&mut record.stopped_by);
    let mut lines = Vec::new();
    for (i, (key, points)) in found.iter().enumerate() {
        let values: Vec<f64> = points.iter().filter_map(|p| p.metric.value).collect();
        let levels = levels(&values);
        lines.push(said(key, points, &levels));
        let mut dataset = drawn(key, points, &values, &levels);
        dataset.params.insert("metric".to_owned(), (i as i64).into());
        record.datasets.push(dataset);
    }
    record.summary.lines.push(SummaryLine { section: "HISTORY".to_owned(), lines });
    Ok(record)
}

fn said(key: &str, points: &[Point], levels: &[Level]) -> String {
    let unit = points[0].metric.unit;
    let mut out = format!("{key}: {} runs from {}", points.len(), points[0].started);
    for (i, level) in levels.iter().enumerate() {
        let since = if i == 0 { String::new() } else { format!(" since {}", points[level.from].started) };
        out += &format!("; {}{since}", human(level.median, unit));
    }
    if levels.len() < 2 { out + "; no change point" } else { out }
}

fn drawn(key: &str, points: &[Point], values: &[f64], levels: &[Level]) -> Dataset {
    let x: Vec<f64> = (0..values.len()).map(|i| (i + 1) as f64).collect();
    let marks = levels.iter().skip(1).map(|l| Mark {
        x: (l.from + 1) as f64,
        y: Some(values[l.from]),
        label: "change".to_owned(),
        detail: points[l.from].started.clone(),
        edge: false,
    });
    let shape = Curve {
        x: Axis::linear("run", Unit::Count),
        y: Axis::linear(&points[0].metric.id, points[0].metric.unit),
        rows: vec![CurveRow { name: "figure".to_owned(), x, y: values.to_vec() }],
        marks: marks.collect(),
    };
    let caption = "Stored runs of this machine, the oldest first; a mark where the runs before and after differ by their ranks (1 %).";
    Dataset::new("history", key, caption, Shape::Curve(shape))
}
