//! From rows to metrics, tables and lines. Pure.

use machmeter_data::metric::params;
use machmeter_data::quantity::Unit;
use machmeter_data::record::{Finding, Warning};
use machmeter_data::shape::{Axis, Cell, Matrix, Shape, TableRow};
use machmeter_data::{Dataset, Interval, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_loops::sync::locks::{Kind, PROOF};

use super::contended::{JAIN, LONGEST_STREAK, center};
use super::{BROKEN, FAIRNESS, HANDOFF, NAME, UNFAIR};
use crate::show;
use crate::sync::Params;
use crate::sync::trips::Priced;

/// Fairness below which a warning is due.
const UNFAIR_BELOW: f64 = 0.8;
/// Pairs of CPUs whose hand-offs become metrics; the matrix shows all.
const MAX_PAIRS: usize = 8;

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let (views, mut warnings) = Priced::all(rows, NAME, |n| {
        format!("{n} rows of locks and barriers were not measured: they need two CPUs, have 1")
    });
    let metrics: Vec<Metric> = metrics(&views);
    warnings.extend(broken_and_unfair(&views, &metrics));
    let (datasets, findings) = (datasets(&views), findings(&metrics));
    Analysis { datasets, findings, warnings, metrics, ..Analysis::default() }
}

fn metrics(views: &[Priced<'_>]) -> Vec<Metric> {
    let handed = views.iter().filter(|v| v.is("state", "handoff"));
    let mut pairs = show::distinct(handed.map(|v| (v.row.text("from"), v.row.text("to"))));
    pairs.truncate(MAX_PAIRS);
    let mut out = Vec::new();
    for v in views {
        let keys = v.keys("lock");
        if v.is("state", "handoff") {
            if pairs.contains(&(v.row.text("from"), v.row.text("to"))) {
                out.extend(v.metrics(&HANDOFF, &keys));
            }
            continue;
        }
        out.extend(v.costs());
        out.extend(fairness_of(v).map(|(value, low, high, n)| {
            Metric::new(&FAIRNESS, keys, value, "median of batches", n as u64)
                .with_ci(Interval::new(LEVEL, low, high, "rank"))
        }));
    }
    out
}

fn fairness_of(v: &Priced<'_>) -> Option<(f64, f64, f64, usize)> {
    let proven = v.row.proof.as_ref().is_some_and(|p| p.seen >= p.expected);
    let indices: Vec<f64> =
        v.row.extras.iter().filter(|(k, _)| k.starts_with(JAIN)).map(|(_, v)| *v).collect();
    center(&indices).filter(|_| proven)
}

fn datasets(views: &[Priced<'_>]) -> Vec<Dataset> {
    let contended = || views.iter().filter(|v| v.is("state", "contended"));
    let widths = show::ascending(contended().map(Priced::cpus));
    let find = |name: &str, state: &str, width: Option<i64>| {
        let of = |v: &&Priced<'_>| v.name() == name && v.is("state", state);
        views.iter().find(|v| of(v) && width.is_none_or(|w| v.cpus() == w))
    };
    let is_alone = |v: &Priced<'_>, is_lock: bool| {
        v.is("state", "alone") && Kind::ALL.iter().any(|k| k.name() == v.row.operation) == is_lock
    };
    // In the order in which they first appear.
    let locks = views.iter().filter(|v| v.is("state", "contended") || is_alone(v, true));
    let mut columns = vec![("alone".to_owned(), show::NS)];
    columns.extend(widths.iter().map(|w| (format!("wanted by {w}"), show::NS)));
    columns.push(("hand-off".to_owned(), show::NS));
    columns.push(("fairness".to_owned(), Some(Unit::One)));
    columns.push(("longest streak".to_owned(), Some(Unit::Count)));
    let rows = show::distinct(locks.map(Priced::name)).into_iter().map(|name| {
        let cost = |state: &str, cpus| find(&name, state, cpus).map_or(Cell::Empty(()), Priced::cell);
        let mut cells = vec![cost("alone", None)];
        cells.extend(widths.iter().map(|w| cost("contended", Some(*w))));
        cells.push(cost("handoff", None));
        let widest = widths.last().and_then(|w| find(&name, "contended", Some(*w)));
        let fair = widest.and_then(fairness_of);
        cells.push(show::number(fair.map(|f| f.0)));
        let streak = widest.filter(|_| fair.is_some()).and_then(|v| v.row.extras.get(LONGEST_STREAK));
        cells.push(show::number(streak.copied()));
        TableRow { name, cells }
    });
    let mut out = Vec::new();
    let caption = "Alone: lock, add, unlock by one thread. Wanted by n: time per acquisition, whoever got it; readers share. \
             Hand-off: release on one CPU to acquisition on the other; where some spin and some sleep, each with its share. Fairness: Jain's index of the widest fight; 1 is even.";
    out.extend(show::table(["sync.locks", "Locks", caption], columns, rows.collect()));
    let others: Vec<TableRow> = views
        .iter()
        .filter(|v| v.is("state", "barrier") || is_alone(v, false))
        .map(|v| TableRow {
            name: v.row.operation.clone(),
            cells: vec![
                Cell::Number(v.cpus() as f64),
                Cell::Text(v.row.text("model")),
                v.cell(),
                show::number(v.cost.known().map(|k| k.low_ns)),
                show::number(v.cost.known().map(|k| k.high_ns)),
                show::number(v.sleeps()),
            ],
        })
        .collect();
    let columns = [
        ("CPUs", Some(Unit::Count)),
        ("model", None),
        ("cost", show::NS),
        ("low, this run", show::NS),
        ("high, this run", show::NS),
        ("sleeps each", Some(Unit::Count)),
    ];
    let caption = "Cost of one barrier for all members, or of one operation by a thread alone, with its 95 % interval. Sleeps of all \
             members in one barrier.";
    let names = ["sync.primitives", "Barriers, and uncontended operations", caption];
    out.extend(show::table(names, columns, others));
    out.extend(matrices(views).into_iter().map(|(lock, matrix)| {
        Dataset::new(
            "sync.handoff_matrix",
            format!("Hand-off of {lock}"),
            "From the release on one CPU to the acquisition on the other, half a round trip; the same in both directions.",
            Shape::Matrix(matrix),
        )
        .with_params(params([("lock", lock.into())]))
    }));
    out
}

/// Hand-offs over pairs, for locks of which more than one pair was measured.
fn matrices(views: &[Priced<'_>]) -> Vec<(String, Matrix)> {
    let handed = || views.iter().filter(|v| v.is("state", "handoff") && v.is("model", "threads"));
    let names = show::ascending(handed().map(|v| v.row.operation.as_str()));
    let mut out = Vec::new();
    for name in names {
        let of: Vec<(usize, usize, f64)> = handed()
            .filter(|v| v.row.operation == name)
            .filter_map(|v| {
                Some((v.row.text("from").parse().ok()?, v.row.text("to").parse().ok()?, v.cost.value_ns()?))
            })
            .collect();
        let cpus = show::ascending(of.iter().flat_map(|(a, b, _)| [*a, *b]));
        if cpus.len() < 3 {
            continue;
        }
        let at = |a: usize, b: usize| {
            of.iter().find(|(x, y, _)| (*x, *y) == (a, b) || (*y, *x) == (a, b)).map(|(_, _, ns)| *ns)
        };
        let labels: Vec<String> = cpus.iter().map(|c| format!("CPU {c}")).collect();
        let values = cpus.iter().map(|a| cpus.iter().map(|b| at(*a, *b)).collect()).collect();
        let cell = Axis::log("hand-off", Unit::Nanoseconds);
        out.push((name.to_owned(), Matrix::named("other CPU", labels.clone(), labels, cell, values)));
    }
    out
}

fn findings(metrics: &[Metric]) -> Vec<Finding> {
    let fair: Vec<&Metric> = metrics
        .iter()
        .filter(|m| m.id == FAIRNESS.id && m.params.get("model") == Some(&"threads".into()))
        .collect();
    let worst = fair.iter().filter_map(|m| Some((m.value?, *m))).min_by(|a, b| a.0.total_cmp(&b.0));
    let Some((value, worst)) = worst else { return Vec::new() };
    let lock = worst.params.get("lock").map(ToString::to_string).unwrap_or_default();
    let unfair = value < UNFAIR_BELOW;
    vec![show::finding(
        FAIRNESS.id,
        if unfair { "uneven" } else { "even" },
        format!(
            "The most unfair lock is {lock}: Jain's index {value:.2} of at most 1{}.",
            if unfair { "; its holder often takes it again before a waiting thread" } else { "" }
        ),
        fair.iter().filter_map(|m| Some(format!("{} {:.3}", m.key(), m.value?))).collect(),
    )]
}

fn broken_and_unfair(views: &[Priced<'_>], metrics: &[Metric]) -> Vec<Warning> {
    let mut out = Vec::new();
    for v in views {
        if let Some(p) = v.row.proof.as_ref().filter(|p| p.what == PROOF && p.seen < p.expected) {
            let of = format!("{} ({}, {} CPUs)", v.row.operation, v.row.text("state"), v.cpus());
            let (missing, all) = (p.expected - p.seen, p.expected);
            out.push(BROKEN.warning(format!("the lock is broken: {of} lost {missing} of {all} additions")));
        }
    }
    let unfair: Vec<String> = metrics
        .iter()
        .filter(|m| m.id == FAIRNESS.id)
        .filter_map(|m| {
            let value = m.value.filter(|v| *v < UNFAIR_BELOW)?;
            Some(format!("{} {value:.2}", m.params.get("lock")?))
        })
        .collect();
    if !unfair.is_empty() {
        let unfair = unfair.join(", ");
        out.push(UNFAIR.warning(format!("contended locks are unfair (Jain's index): {unfair}")));
    }
    out
}
