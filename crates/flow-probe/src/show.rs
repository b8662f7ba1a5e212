//! The published tables, of runs here: calibration, graphs, shares of the overhead, times of each name.

use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_flow::Group;
use machmeter_flow::table::{MOST_CORRECTION, Table};

use crate::graphs::Timed;
use crate::info::OVERHEAD;
use crate::pictures::over_granularity;

pub(crate) fn datasets(
    timed: &[Timed],
    metrics: &[Metric],
    calibration: Option<[[f64; 4]; 2]>,
) -> Vec<Dataset> {
    let measured: Vec<&Timed> = timed.iter().filter(|t| !t.total_ns.is_empty()).collect();
    let mut out = Vec::new();
    out.extend(graphs(&measured));
    out.extend(shares(&measured));
    out.extend(calibration.map(|c| self::calibration(&c)));
    out.extend(measured.iter().map(|t| names(t)));
    // By iteration: an apply of more of them does more.
    out.extend(over_granularity(
        metrics,
        (&OVERHEAD, |value, granularity| value / granularity),
        "overhead an apply and iteration",
        ["flow.granularity", "Overhead over granularity"],
        "What the kernel takes for an apply, by the iterations that it does at once.",
    ));
    out
}

type Column<'a> = (&'a str, Option<Unit>);

pub(crate) fn table(columns: &[Column<'_>], rows: impl Iterator<Item = TableRow>) -> Shape {
    let columns = columns.iter().map(|(label, unit)| TableColumn::new(*label, *unit)).collect();
    Shape::CostTable(CostTable { columns, rows: rows.collect() })
}

fn title(t: &Timed) -> String {
    let granularity =
        if t.granularity == 1 { String::new() } else { format!(", granularity {}", t.granularity) };
    format!("{}, {}{granularity}", t.graph, t.kernel)
}

fn graphs(timed: &[&Timed]) -> Option<Dataset> {
    let row = |t: &&Timed| {
        let efficiency = t.table.efficiency().unwrap_or(0.0);
        let cells = vec![
            Cell::Number(t.boxes as f64),
            Cell::Number(t.schedules as f64),
            Cell::Number(t.queues as f64),
            Cell::Text(format!("{:.2} %", 100.0 * efficiency)),
            Cell::Number(t.table.overhead_ns().unwrap_or(0.0)),
            Cell::Number(t.table.total_ns() * (1.0 - efficiency)),
            Cell::Number(t.copied_bytes as f64),
        ];
        TableRow { name: title(t), cells }
    };
    let ns = Some(Unit::Nanoseconds);
    let columns = [
        ("boxes", None),
        ("schedules", None),
        ("queues", None),
        ("efficiency", None),
        ("overhead an apply", ns),
        ("in all", ns),
        ("copied", Some(Unit::Bytes)),
    ];
    let caption = "Graphs by kernel, of the last timed run: table or fused boxes, queues that copy or are mirrored, a heap or a bitmap of ready \
                   schedules. Efficiency is the share of the time that boxes work. A fused box is one apply, so that kernels with and without are compared by the overhead in all.";
    let shape = table(&columns, timed.iter().map(row));
    (!timed.is_empty()).then(|| Dataset::new("flow.graphs", "Graphs", caption, shape))
}

fn shares(timed: &[&Timed]) -> Option<Dataset> {
    let row = |t: &&Timed| TableRow {
        name: title(t),
        cells: t.table.shares().into_iter().map(|(_, s)| Cell::Text(format!("{:.1} %", 100.0 * s))).collect(),
    };
    let columns: Vec<Column<'_>> = Group::ALL[1..].iter().map(|g| (g.text(), None)).collect();
    let caption = "Shares of the kernel's time by what it does, of the last timed run.";
    let shape = table(&columns, timed.iter().map(row));
    (!timed.is_empty()).then(|| Dataset::new("flow.shares", "Shares of the overhead", caption, shape))
}

fn calibration(c: &[[f64; 4]; 2]) -> Dataset {
    let row = |name: &str, of: &[f64; 4]| TableRow {
        name: name.to_owned(),
        cells: of.iter().map(|ns| Cell::Number(*ns)).collect(),
    };
    let columns = ["mean", "deviation", "min", "max"].map(|c| (c, Some(Unit::Nanoseconds)));
    let caption = "What an empty event reports for itself (Tt), of single events, and what it costs its surroundings (Tpt), of batches of 1024.";
    let rows = [row("Tpt", &c[1]), row("Tt", &c[0])].into_iter();
    Dataset::new("flow.calibration", "Calibration of the timer", caption, table(&columns, rows))
}

/// Below a step of the clock single values say nothing; the counter of some machines moves by 10 ns.
const STEP_NS: f64 = 10.0;

/// Times of each name, in the published columns and those behind them.
pub(crate) fn times(t: &Table) -> Shape {
    let single = |ns: f64| if ns < STEP_NS { Cell::Text("< 10 ns".to_owned()) } else { Cell::Number(ns) };
    let percent = |share: f64| Cell::Text(format!("{:.2} %", 100.0 * share));
    let rows = t.rows.iter().map(|r| TableRow {
        name: r.name.clone(),
        cells: vec![
            Cell::Number(r.called as f64),
            Cell::Number(r.total_ns),
            Cell::Number(r.mean_ns),
            Cell::Number(r.deviation_ns),
            single(r.least_ns),
            Cell::Number(r.most_ns),
            percent(r.percent / 100.0),
            Cell::Number(r.per_firing_ns),
            r.correction.map_or(Cell::Empty(()), percent),
            r.p50_ns.map_or(Cell::Empty(()), single),
            r.p99_ns.map_or(Cell::Empty(()), single),
            // Of calls shorter than a stamp nothing single is known.
            r.tail
                .filter(|_| r.correction.is_none_or(|c| c <= MOST_CORRECTION))
                .map_or(Cell::Empty(()), percent),
        ],
    });
    let ns = Some(Unit::Nanoseconds);
    let columns = [
        ("called", None),
        ("total", ns),
        ("mean", ns),
        ("deviation", ns),
        ("min", ns),
        ("max", ns),
        ("percent", None),
        ("a firing", ns),
        ("corr", None),
        ("p50", ns),
        ("p99", ns),
        ("tail", None),
    ];
    table(&columns, rows)
}

fn names(t: &Timed) -> Dataset {
    let caption = "Exclusive times of the last timed run, the timer's own part taken off; corr is that part of what was stamped. Above 50 % single calls \
                   are shorter than a stamp. Tail: share of the time in calls of more than ten times the mean.";
    let id = format!("flow.names.{}.{}.{}", t.graph, t.kernel, t.granularity);
    Dataset::new(&id, format!("Times, {}", title(t)), caption, times(&t.table))
}
