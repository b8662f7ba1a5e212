//! `machmeter report --history METRIC`: shows a figure over all stored runs of this machine, and its changes.

use machmeter_compare::{Level, Series, history, levels};
use machmeter_data::quantity::human;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Curve, CurveRow, Mark};
use machmeter_data::{Dataset, Record, Shape, Unit};

use crate::session::empty_record;
use crate::{Failure, Result, state};

/// Most figures shown.
const MOST: usize = 20;

/// A record of the matching figures, over the runs on the machine of the latest run, with their levels.
///
/// # Errors
/// There is no history, or nothing in it matches.
pub(super) fn record(glob: &str) -> Result<Record> {
    let past = state::history().map_err(Failure::usage)?;
    let names = past.list().map_err(Failure::usage)?;
    let runs: Vec<Record> = names.iter().filter_map(|n| past.read(n).ok()).collect();
    let found = history(&runs, glob);
    if found.series.is_empty() {
        let what = format!("--history '{glob}': no metric of {} stored runs matches", names.len());
        return Err(Failure::usage(what).help("machmeter list metrics"));
    }
    if found.series.len() > MOST {
        let what =
            format!("--history '{glob}': too many metrics match: {}, at most {MOST}", found.series.len());
        return Err(Failure::usage(what).help("select one: 'ops.cost{*operation=getppid*'"));
    }
    let mut record = empty_record();
    record.machine = runs.last().map(|r| r.machine.clone()).unwrap_or_default();
    record.complete = true;
    "history".clone_into(&mut record.run.verb);
    "end of history".clone_into(&mut record.stopped_by);
    let mut lines = Vec::new();
    for (i, series) in found.series.iter().enumerate() {
        let values: Vec<f64> = series.points.iter().filter_map(|(_, m)| m.value).collect();
        let levels = levels(&values);
        lines.push(in_words(series, &levels));
        let mut dataset = drawn(series, &values, &levels);
        dataset.params.insert("metric".to_owned(), (i as i64).into());
        record.datasets.push(dataset);
    }
    if found.left_out > 0 {
        lines.push(format!("{} runs with another plan or state of the machine are left out", found.left_out));
    }
    record.summary.lines.push(SummaryLine { section: "HISTORY".to_owned(), lines });
    Ok(record)
}

fn in_words(series: &Series, levels: &[Level]) -> String {
    let points = &series.points;
    let mut out = format!("{}: {} runs from {}", series.name, points.len(), points[0].0);
    for (i, level) in levels.iter().enumerate() {
        let since = if i == 0 { String::new() } else { format!(" since {}", points[level.from].0) };
        out += &format!("; {}{since}", human(level.median, points[0].1.unit));
    }
    if levels.len() < 2 { out + "; no change point" } else { out }
}

fn drawn(series: &Series, values: &[f64], levels: &[Level]) -> Dataset {
    let points = &series.points;
    let x: Vec<f64> = (0..values.len()).map(|i| (i + 1) as f64).collect();
    let marks = levels.iter().skip(1).map(|l| Mark {
        x: (l.from + 1) as f64,
        y: Some(values[l.from]),
        label: "change".to_owned(),
        detail: points[l.from].0.clone(),
        edge: false,
    });
    let shape = Curve {
        x: Axis::linear("run", Unit::Count),
        y: Axis::linear(&points[0].1.id, points[0].1.unit),
        rows: vec![CurveRow { name: "figure".to_owned(), x, y: values.to_vec() }],
        marks: marks.collect(),
    };
    let caption = "Stored runs of this machine with the same plan and state, the oldest first. A mark is a change point: the runs before and after it differ by more than consecutive runs do (error rate 1 %).";
    Dataset::new("history", &series.name, caption, Shape::Curve(shape))
}
