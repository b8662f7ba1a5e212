//! Costs per operation and distance, on the placement where most of the time was spent; how far false sharing reaches.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Cell, TableRow};
use machmeter_data::{Dataset, Interval, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_loops::sync::words::Operation;

use super::measure::APART_BYTES;
use super::{FAIRNESS, FALSE_SHARING, PART, UNFAIR};
use crate::show;
use crate::sync::Params;
use crate::sync::trips::Priced;

/// Cost over that of counters far apart from which on two disturb each other.
const DISTURBED: f64 = 1.5;
/// Fairness below which a warning is due.
const UNFAIR_BELOW: f64 = 0.5;

/// Operations that two CPUs do at several distances.
const SPREAD: [Operation; 2] = [Operation::FetchAdd, Operation::StoreLoad];

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let text = |_| "contention was not measured: it needs two CPUs, has 1".to_owned();
    let (views, warnings) = Priced::all(rows, PART.name, text);
    let mut out = Analysis { warnings, ..Analysis::default() };
    for v in &views {
        out.metrics.extend(v.costs());
        out.metrics.extend(fairness(v));
    }
    for (metric, finding) in SPREAD.into_iter().filter_map(|operation| reach(&views, operation)) {
        out.metrics.push(metric);
        out.findings.push(finding);
    }
    let shared = views.iter().filter_map(|v| Some((shared_fairness(v)?, v)));
    let worst = shared.min_by(|a, b| a.0.total_cmp(&b.0)).filter(|w| w.0 < UNFAIR_BELOW);
    out.warnings.extend(worst.map(|(share, v)| {
        let (operation, cpus, share) = (&v.row.operation, v.cpus(), human(share, Unit::One));
        UNFAIR.warning(format!(
            "{operation} by {cpus} CPUs: the slowest CPU does {share} of the operations of the fastest"
        ))
    }));
    if views.iter().any(|v| v.cost.known().is_some()) {
        out.datasets.extend(table(&views).into_iter().chain(curve(&views)));
    }
    out
}

fn distance_bytes(v: &Priced<'_>) -> i64 {
    v.row.int("distance_bytes").unwrap_or(0)
}

/// Fairness of a row of one word for several CPUs.
fn shared_fairness(v: &Priced<'_>) -> Option<f64> {
    v.row.extras.get("fairness").copied().filter(|_| v.cpus() > 1 && distance_bytes(v) == 0)
}

fn fairness(v: &Priced<'_>) -> Option<Metric> {
    let share = shared_fairness(v)?;
    let end = |name: &str| v.row.extras.get(name).copied().unwrap_or(share);
    let ci = Interval::new(LEVEL, end("fairness_low"), end("fairness_high"), "rank");
    let n = v.row.pairs.len() as u64;
    Some(Metric::new(&FAIRNESS, v.keys("operation"), share, "median of batches", n).with_ci(ci))
}

/// Distances of two words, bytes, upward, each with the cost, ns.
fn by_distance(views: &[Priced<'_>], operation: Operation) -> Vec<(f64, f64)> {
    let mut at: Vec<(f64, f64)> = views
        .iter()
        .filter(|v| v.row.operation == operation.name() && v.cpus() == 2 && distance_bytes(v) > 0)
        .filter_map(|v| Some((distance_bytes(v) as f64, v.cost.value_ns()?)))
        .collect();
    at.sort_by(|a, b| a.0.total_cmp(&b.0));
    at
}

/// The distances between two words, upward, until two no longer disturb each other; the largest is the measure of the others.
fn reach(views: &[Priced<'_>], operation: Operation) -> Option<(Metric, Finding)> {
    let at = by_distance(views, operation);
    let (_, apart_ns) = *at.last().filter(|a| a.0 == APART_BYTES as f64)?;
    let disturbed = at.iter().take_while(|(_, ns)| *ns > DISTURBED * apart_ns).count();
    let reach_bytes = disturbed.checked_sub(1).map_or(0.0, |i| at[i].0);
    let operation = operation.name();
    let n: usize = views.iter().filter(|v| v.row.operation == operation).map(|v| v.row.pairs.len()).sum();
    // The true distance lies behind the last that disturbs and not behind the first that does not.
    let free_bytes = at.get(disturbed)?.0;
    let p = params([("operation", operation.into())]);
    let metric = Metric::new(&FALSE_SHARING, p, free_bytes, "first distance undisturbed", n as u64)
        .with_ci(Interval::new(LEVEL, reach_bytes, free_bytes, "bracket"));
    let (verdict, text) = if reach_bytes > 0.0 {
        (
            "shared",
            format!("{reach_bytes} bytes apart disturb each other, {free_bytes} bytes apart they do not"),
        )
    } else {
        ("apart", format!("{free_bytes} bytes apart do not disturb each other"))
    };
    let told = at.iter().map(|(d, ns)| format!("{d} bytes apart: {}", human(*ns, Unit::Nanoseconds)));
    let (id, text) = (format!("sync.false_sharing.{operation}"), format!("{operation}: words {text}"));
    Some((metric, show::finding(&id, verdict, text, told.collect())))
}

fn table(views: &[Priced<'_>]) -> Option<Dataset> {
    let row = |v: &Priced<'_>| {
        let number = |x: Option<f64>| show::number(x.map(|x| show::rounded(x, 3)));
        let known = v.cost.known();
        let place = match (v.cpus(), distance_bytes(v)) {
            (1, _) => "alone".to_owned(),
            (n, 0) => format!("{n} CPUs, one word"),
            (n, d) => format!("{n} CPUs, {d} bytes apart"),
        };
        let tried = v.row.pairs.len() as u64 + v.row.rejected.total();
        TableRow {
            name: format!("{}, {place}{}", v.row.operation, v.cost.mark()),
            cells: vec![
                number(known.map(|k| k.value_ns)),
                number(known.map(|k| k.fast_ns)),
                number(known.map(|k| k.slow_ns)),
                number(v.row.extras.get("fairness").copied().filter(|_| v.cpus() > 1)),
                Cell::Text(format!("{} of {tried}", v.row.pairs.len())),
            ],
        }
    };
    let caption = "Cost for each CPU while all of them repeat the operation. store_load adds one without being atomic. Fairness: \
                  operations of the slowest CPU over those of the fastest. Batches: those in which every CPU worked.";
    let names = ["sync.contention", "Operations on shared and separate words", caption];
    let one = Some(Unit::One);
    let columns = [
        ("per operation", show::NS),
        ("p5", show::NS),
        ("p95", show::NS),
        ("fairness", one),
        ("batches", None),
    ];
    show::table(names, columns, views.iter().map(row).collect())
}

fn curve(views: &[Priced<'_>]) -> Option<Dataset> {
    let line = |operation: Operation| show::curve(operation.name(), by_distance(views, operation));
    let rows = SPREAD.into_iter().filter_map(line);
    let caption =
        "Cost of an operation on a CPU's own word while another CPU works on a word so many bytes away.";
    let axes = [Axis::log("distance", Unit::Bytes), Axis::log("per operation", Unit::Nanoseconds)];
    show::curves(["sync.false_sharing", "False sharing", caption], axes, rows, Vec::new())
}
