//! Costs per operation and distance, on the placement where most of the time was spent; how far false sharing reaches.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_data::shape::{Axis, Cell, CurveRow, TableRow};
use machmeter_data::{Dataset, Interval, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Cost, Rows};
use machmeter_stats::regimes::Regimes;

use super::measure::APART_BYTES;
use super::operations::Operation;
use super::{FAIRNESS, FALSE_SHARING, PART, UNFAIR};
use crate::show;
use crate::sync::Params;
use crate::sync::cost::one_cpu;
use crate::sync::trips::Priced;
use machmeter_engine::disturbance::placement::{self, levels};

/// Cost over that of counters far apart from which on two disturb each other.
const DISTURBED: f64 = 1.5;
/// Fairness below which a warning is due.
const UNFAIR_BELOW: f64 = 0.5;

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let levels = levels(rows, PART.name);
    let views = Priced::all(rows, PART.name, levels.as_ref());
    for v in &views {
        let of_batches = |m| Metric { estimator: "median of batches".to_owned(), ..m };
        out.metrics.extend(v.costs().into_iter().map(of_batches));
        out.metrics.extend(fairness(v));
    }
    for operation in [Operation::FetchAdd, Operation::StoreLoad] {
        let Some((metric, finding)) = reach(&views, operation.name()) else { continue };
        out.metrics.push(metric);
        out.findings.push(finding);
    }
    out.warnings = warnings(&views, levels.as_ref());
    if views.iter().any(|v| v.cost.known().is_some()) {
        out.datasets.extend(table(&views).into_iter().chain(curve(&views)));
    }
    out
}

fn cpus(v: &Priced<'_>) -> i64 {
    v.row.int("cpus").unwrap_or(1)
}

fn distance_bytes(v: &Priced<'_>) -> i64 {
    v.row.int("distance_bytes").unwrap_or(0)
}

fn fairness(v: &Priced<'_>) -> Option<Metric> {
    let share = *v.row.extras.get("fairness")?;
    let n = v.row.pairs.len() as u64;
    let end = |name: &str| v.row.extras.get(name).copied().unwrap_or(share);
    let ci = Interval::new(LEVEL, end("fairness_low"), end("fairness_high"), "rank");
    let mut keys = v.row.params.clone();
    keys.insert("operation".to_owned(), v.row.operation.as_str().into());
    (cpus(v) > 1 && distance_bytes(v) == 0)
        .then(|| Metric::new(&FAIRNESS, keys, share, "median of batches", n).with_ci(ci))
}

fn cost_of<'v>(views: &'v [Priced<'_>], operation: &str, cpus: i64, distance_bytes: i64) -> Option<&'v Cost> {
    let is = |v: &&Priced<'_>| {
        v.row.operation == operation && self::cpus(v) == cpus && self::distance_bytes(v) == distance_bytes
    };
    views.iter().find(is).map(|v| &v.cost)
}

/// How far false sharing reaches: the distances between two words, upward, until two no longer disturb each other. The
/// largest distance is the measure of the others, so it never disturbs.
fn reach(views: &[Priced<'_>], operation: &str) -> Option<(Metric, Finding)> {
    let apart_ns = cost_of(views, operation, 2, APART_BYTES as i64)?.value_ns()?;
    let mut at: Vec<(i64, f64)> = views
        .iter()
        .filter(|v| v.row.operation == operation && cpus(v) == 2 && distance_bytes(v) > 0)
        .filter_map(|v| Some((distance_bytes(v), v.cost.value_ns()?)))
        .collect();
    at.sort_by_key(|a| a.0);
    let disturbed = at.iter().take_while(|(_, ns)| *ns > DISTURBED * apart_ns).count();
    let reach_bytes = disturbed.checked_sub(1).map_or(0, |i| at[i].0);
    let n: usize = views.iter().filter(|v| v.row.operation == operation).map(|v| v.row.pairs.len()).sum();
    // The true distance lies behind the last that disturbs and not behind the first that does not.
    let free_bytes = at.get(disturbed)?.0;
    let p = params([("operation", operation.into())]);
    let metric = Metric::new(&FALSE_SHARING, p, free_bytes as f64, "first distance undisturbed", n as u64)
        .with_ci(Interval::new(LEVEL, reach_bytes as f64, free_bytes as f64, "bracket"));
    let text = if reach_bytes > 0 {
        format!(
            "{operation}: words {reach_bytes} bytes apart disturb each other, {free_bytes} bytes apart they do not"
        )
    } else {
        format!("{operation}: words {free_bytes} bytes apart do not disturb each other")
    };
    let evidence =
        at.iter().map(|(d, ns)| format!("{d} bytes apart: {}", human(*ns, Unit::Nanoseconds))).collect();
    let verdict = if reach_bytes > 0 { "shared" } else { "apart" };
    let finding = show::finding(&format!("sync.false_sharing.{operation}"), verdict, text, evidence);
    Some((metric, finding))
}

fn warnings(views: &[Priced<'_>], levels: Option<&Regimes>) -> Vec<Warning> {
    let text = |_| "contention was not measured: it needs two CPUs, and there is 1".to_owned();
    let mut out = Vec::from_iter(one_cpu(views.iter().map(|v| v.row), text));
    out.extend(placement::moved(PART.name, levels));
    let worst = views
        .iter()
        .filter(|v| cpus(v) > 1 && distance_bytes(v) == 0)
        .filter_map(|v| Some((*v.row.extras.get("fairness")?, v)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((share, v)) = worst.filter(|w| w.0 < UNFAIR_BELOW) {
        let text = format!(
            "{} by {} CPUs: the slowest does {} of what the fastest does",
            v.row.operation,
            cpus(v),
            human(share, Unit::One)
        );
        out.push(UNFAIR.warning(text));
    }
    out
}

fn table(views: &[Priced<'_>]) -> Option<Dataset> {
    let row = |v: &Priced<'_>| {
        let number = |x: Option<f64>| show::number(x.map(|x| format!("{x:.3e}").parse().unwrap_or(x)));
        let known = v.cost.known();
        let place = match (cpus(v), distance_bytes(v)) {
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
                number(v.row.extras.get("fairness").copied().filter(|_| cpus(v) > 1)),
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
    let line = |operation: Operation| {
        let mut at: Vec<(f64, f64)> = views
            .iter()
            .filter(|v| v.row.operation == operation.name() && cpus(v) == 2 && distance_bytes(v) > 0)
            .filter_map(|v| Some((distance_bytes(v) as f64, v.cost.value_ns()?)))
            .collect();
        at.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (x, y): (Vec<f64>, Vec<f64>) = at.into_iter().unzip();
        (x.len() > 1).then(|| CurveRow { name: operation.name().to_owned(), x, y })
    };
    let rows: Vec<CurveRow> =
        [Operation::FetchAdd, Operation::StoreLoad].into_iter().filter_map(line).collect();
    let caption =
        "Cost of an operation on a CPU's own word while another CPU works on a word so many bytes away.";
    let axes = [Axis::log("distance", Unit::Bytes), Axis::log("per operation", Unit::Nanoseconds)];
    show::curves(["sync.false_sharing", "False sharing", caption], axes, rows, Vec::new())
}
