//! Converts a log to metrics, tables and lines of the page. It uses the ids of the interactive probe, so that old logs are comparable to its runs.

use machmeter_data::metric::params;
use machmeter_data::quantity::human;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Cell, CostTable, Matrix, TableColumn, TableRow};
use machmeter_data::{Dataset, Interval, Metric, MetricInfo, Params, Shape, Unit, metrics};

use super::super::{Imported, codes};
use super::parse::{Block, Row, Run};

/// Versions up to 0.31 cut the mean to whole microseconds before they convert it; most error, ns.
const CUT_OFF_NS: f64 = 1e3;

metrics! {
    ["task", "load"] Nanoseconds Lower weakened by [] {
        LATENESS = "interactive.lateness" "Mean wait of a job, as printed; maximum.";
        JITTER = "interactive.jitter" "Standard deviation of the wait, as printed.";
    }
    ["task", "load"] One Higher weakened by [] {
        DESIRED_CPU = "interactive.desired_cpu" "Jobs executed over jobs due.";
        MET = "interactive.deadlines_met" "Share of deadlines met, as counted by interbench.";
    }
}

/// Figures of a log, under ids of the interactive probe.
pub const METRICS: &[MetricInfo] = &[LATENESS, JITTER, DESIRED_CPU, MET];

/// Adds metrics, datasets and the summary of a run.
pub(super) fn fill(run: &Run, out: &mut Imported) {
    for block in &run.blocks {
        for row in &block.rows {
            out.metrics.extend(metrics(run, block, row));
        }
        if !block.rows.is_empty() {
            out.datasets.push(table(run, block));
        }
    }
    out.datasets.splice(0..0, met(run));
    let lines: Vec<String> = run.blocks.iter().filter_map(line).collect();
    out.summary.lines.push(SummaryLine { section: "INTERACTIVE".to_owned(), lines });
}

fn metrics(run: &Run, block: &Block, row: &Row) -> Vec<Metric> {
    let key = || key(block, row);
    let mut lateness = Metric::new(&LATENESS, key(), row.mean.ns, "mean as printed", 0);
    if lateness.value.is_some() {
        let median = row.median_ns.map(|ns| (0.5, ns));
        lateness = lateness.with_max(row.max_ns).with_quantiles(median.as_slice());
    }
    let mut all = vec![lateness, jitter(run, block, row), share(&DESIRED_CPU, key(), row.desired_cpu)];
    all.extend(row.deadlines_met.map(|met| share(&MET, key(), met)));
    if !run.by_machmeter {
        for m in all.iter_mut().filter(|m| m.id != DESIRED_CPU.id && m.value.is_some()) {
            m.flag(codes::HIDDEN_LATENESS.id);
        }
    }
    all
}

fn share(info: &MetricInfo, key: Params, value: f64) -> Metric {
    if value > 1.0 {
        return Metric::rejected(info, key, "share as printed", "more than 100 % was printed");
    }
    Metric::new(info, key, value, "share as printed", 0)
}

fn key(block: &Block, row: &Row) -> Params {
    params([("task", block.task.as_str().into()), ("load", row.load.as_str().into())])
}

/// The standard deviation, as far as the log determines it.
fn jitter(run: &Run, block: &Block, row: &Row) -> Metric {
    let (key, rms, mean) = (key(block, row), row.spread, row.mean);
    if run.by_machmeter || !block.spread_is_rms() {
        return Metric::new(&JITTER, key, rms.ns, "standard deviation as printed", 0);
    }
    let estimator = "from root mean square and mean as printed";
    // Also false for NaN.
    if rms.ns >= mean.ns && mean.ns >= 0.0 {
        let most_mean = mean.ns + mean.half_step_ns + CUT_OFF_NS;
        let least_mean = (mean.ns - mean.half_step_ns).max(0.0);
        let low_ns = root(rms.ns - rms.half_step_ns, most_mean);
        let high_ns = root(rms.ns + rms.half_step_ns, least_mean);
        let ci = Interval::new(0.999, low_ns, high_ns, "bound of printed digits");
        return Metric::new(&JITTER, key, root(rms.ns, mean.ns), estimator, 0).with_ci(ci);
    }
    let why = "the printed root mean square is below the mean: it has too few digits";
    Metric::rejected(&JITTER, key, estimator, why)
}

fn root(rms_ns: f64, mean_ns: f64) -> f64 {
    (rms_ns.max(0.0).powi(2) - mean_ns.powi(2)).max(0.0).sqrt()
}

/// Tasks by loads, with the deadlines met in the cells; `None` if no task had deadlines.
fn met(run: &Run) -> Option<Dataset> {
    let blocks: Vec<&Block> =
        run.blocks.iter().filter(|b| b.rows.iter().any(|r| r.deadlines_met.is_some())).collect();
    let mut loads: Vec<String> = Vec::new();
    for row in blocks.iter().flat_map(|b| &b.rows) {
        if !loads.contains(&row.load) {
            loads.push(row.load.clone());
        }
    }
    let value = |b: &Block, load: &String| {
        let met = b.rows.iter().find(|r| r.load == *load)?.deadlines_met?;
        (0.0..=1.0).contains(&met).then_some(met)
    };
    let values = blocks.iter().map(|b| loads.iter().map(|l| value(b, l)).collect()).collect();
    let tasks = blocks.iter().map(|b| b.task.clone()).collect();
    let matrix = Matrix::named("load", loads, tasks, Axis::linear("deadlines met", Unit::One), values);
    let caption = "Share of deadlines met per task (row) and load (column), as counted by the program.";
    let met = Dataset::new("interactive.met", "Deadlines met", caption, Shape::Matrix(matrix));
    (!blocks.is_empty()).then_some(met)
}

/// A table as in the log, with the standard deviation beside the figure that the log prints under that name.
fn table(run: &Run, block: &Block) -> Dataset {
    let rms = block.spread_is_rms() && !run.by_machmeter;
    let deadlines = block.rows.iter().any(|r| r.deadlines_met.is_some());
    let columns = [
        ("mean", Unit::Nanoseconds, true),
        ("root mean square (printed as SD)", Unit::Nanoseconds, rms),
        ("standard deviation", Unit::Nanoseconds, true),
        ("maximum", Unit::Nanoseconds, true),
        ("desired CPU", Unit::One, true),
        ("deadlines met", Unit::One, deadlines),
    ];
    let cell = |v: Option<f64>| match v {
        Some(v) if v.is_finite() && v >= 0.0 => Cell::Number(v),
        _ => Cell::Empty(()),
    };
    let rows = block.rows.iter().map(|r| {
        let (mean, spread, deviation) = (Some(r.mean.ns), Some(r.spread.ns), jitter(run, block, r).value);
        let values = [mean, spread, deviation, Some(r.max_ns), Some(r.desired_cpu), r.deadlines_met];
        let shown = values.into_iter().zip(columns).filter(|(_, column)| column.2);
        TableRow { name: r.load.clone(), cells: shown.map(|(v, _)| cell(v)).collect() }
    });
    let shown = columns.into_iter().filter(|column| column.2);
    let columns = shown.map(|(label, unit, _)| TableColumn::new(label, unit)).collect();
    let (title, shape) = (format!("Latency of {}", block.task), CostTable { columns, rows: rows.collect() });
    let caption = "Wait of a job until its start, per load, in the layout of interbench.";
    Dataset::new("interactive.latency_table", title, caption, Shape::CostTable(shape))
        .with_params(params([("task", block.task.as_str().into())]))
}

/// One line of the page: the task alone and under its worst load.
fn line(block: &Block) -> Option<String> {
    let share = |r: &Row| r.deadlines_met.unwrap_or(r.desired_cpu);
    let word = if block.rows.iter().any(|r| r.deadlines_met.is_some()) { "met" } else { "of a CPU" };
    let known = || block.rows.iter().filter(|r| (0.0..=1.0).contains(&share(r)));
    let worst = known().min_by(|a, b| share(a).total_cmp(&share(b)))?;
    let alone = known().find(|r| r.load == "none" && r.load != worst.load);
    let percent = |r: &Row| human(share(r), Unit::One);
    let alone = alone.map_or_else(String::new, |none| format!("{} {word} alone, ", percent(none)));
    let word = if alone.is_empty() { format!(" {word}") } else { String::new() };
    let mut text = format!("{:<8} {alone}{}{word} under {}", block.task, percent(worst), worst.load);
    if worst.mean.ns >= 0.0 && worst.max_ns >= 0.0 {
        let (mean, max) = (human(worst.mean.ns, Unit::Nanoseconds), human(worst.max_ns, Unit::Nanoseconds));
        text.push_str(&format!(" (late by {mean} there, {max} at most)"));
    }
    Some(text)
}
