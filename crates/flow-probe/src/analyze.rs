//! From timed runs to efficiency, overhead and shares. Pure.

use machmeter_data::metric::{Params as Keys, params};
use machmeter_data::{Interval, Metric, MetricInfo};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Pair, Row, Rows};
use machmeter_flow::Name;
use machmeter_flow::table::MOST_CORRECTION;
use machmeter_stats::quantile::{quantile, quantile_interval, sorted};

use crate::files::GIVEN;
use crate::graphs::{CALIBRATION, PART, TIMED, Timed};
use crate::info::{BROKEN, BY_DIFFERENCES, EFFICIENCY, NOT_MEASURED, OVER_FILE, OVERHEAD, SHARE, THROUGHPUT};
use crate::{Params, pictures, published, show, worth};

/// Timers with a smaller share of the kernel's time have no metric of their own.
const LEAST_SHARE: f64 = 0.01;

pub(crate) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let timed = rows.facts.get(&TIMED).unwrap_or_default();
    for t in timed.iter().filter(|t| !t.total_ns.is_empty()) {
        out.metrics.extend(of_graph(t));
        out.metrics.extend(apply_rate(t, rows));
        out.metrics.extend(worth::pace(t, rows));
        out.metrics.extend(worth::prediction(t, rows));
        if !t.broken.is_empty() {
            out.warnings.push(BROKEN.warning(format!("{}, {}: {}", t.graph, t.kernel, t.broken.join("; "))));
        }
    }
    out.metrics.extend(worth::metrics(&timed));
    out.findings = worth::knees(&out.metrics);
    let short = |t: &&Timed| -> Option<String> {
        let is_short = |r: &&machmeter_flow::table::Row| r.correction.is_some_and(|c| c > MOST_CORRECTION);
        let n = t.table.rows.iter().filter(is_short).count();
        (n > 0).then(|| format!("{}, {}: {n} of {} names", t.graph, t.kernel, t.table.rows.len()))
    };
    let short: Vec<String> = timed.iter().filter_map(|t| short(&t)).collect();
    if !short.is_empty() {
        out.warnings
            .push(BY_DIFFERENCES.note(format!("shorter than the timer's own part: {}", short.join("; "))));
    }
    for row in rows.part(PART).filter(|r| r.operation == "run") {
        if let Some(why) = &row.refused {
            out.warnings.push(NOT_MEASURED.warning(format!("{}: {why}", row.text("graph"))));
        }
    }
    out.warnings.extend(rows.facts.get(&GIVEN).map(|given| OVER_FILE.note(given.text())));
    out.datasets = show::datasets(&timed, &out.metrics, rows.facts.get(&CALIBRATION));
    out.datasets.extend(pictures::datasets(&timed, &out.metrics));
    published::analyze(rows, &mut out);
    out
}

pub(crate) fn keys(t: &Timed) -> Keys {
    params([
        ("graph", t.graph.as_str().into()),
        ("kernel", t.kernel.as_str().into()),
        ("granularity", i64::from(t.granularity).into()),
    ])
}

/// The median of runs with its interval; without one the figure is of too few runs to have any.
pub(crate) fn of_runs(info: &MetricInfo, keys: Keys, values: &[f64]) -> Option<Metric> {
    let values = sorted(values).ok()?;
    let m = Metric::new(info, keys, quantile(&values, 0.5)?, "median of runs", values.len() as u64);
    Some(match quantile_interval(&values, 0.5, LEVEL) {
        Some(i) => m.with_ci(Interval::new(LEVEL, i.low, i.high, "order statistics of runs")),
        None => m,
    })
}

fn of_graph(t: &Timed) -> Vec<Metric> {
    let (apply, kernel_ns) = (Name::Apply as usize, worth::kernel_ns(t));
    let efficiency: Vec<f64> = t.total_ns.iter().map(|r| r[apply] / r.iter().sum::<f64>()).collect();
    let mut out: Vec<Metric> = of_runs(&EFFICIENCY, keys(t), &efficiency).into_iter().collect();
    let overheads = kernel_ns.iter().zip(&t.called).map(|(ns, called)| ns / called[apply].max(1) as f64);
    out.extend(of_runs(&OVERHEAD, keys(t), &overheads.collect::<Vec<_>>()));
    for name in Name::ALL.iter().filter(|n| **n != Name::Apply) {
        let shares: Vec<f64> =
            t.total_ns.iter().zip(&kernel_ns).map(|(r, ns)| r[*name as usize] / ns).collect();
        let mut keys = keys(t);
        keys.insert("timer".to_owned(), Name::TEXTS[*name as usize].into());
        out.extend(of_runs(&SHARE, keys, &shares).filter(|m| m.value.is_some_and(|v| v >= LEAST_SHARE)));
    }
    out
}

/// Wall times of runs without timers, ns.
pub(crate) fn walls_ns(t: &Timed, rows: &Rows) -> Vec<f64> {
    let is_it = |r: &&Row| r.operation == "run" && r.params == keys(t);
    let wall = |p: &Pair| p.long_ticks.max(1) as f64 * rows.ns_per_tick();
    rows.part(PART).find(is_it).map(|r| r.pairs.iter().map(wall).collect()).unwrap_or_default()
}

/// Applies of a run over the wall time of runs without timers.
fn apply_rate(t: &Timed, rows: &Rows) -> Option<Metric> {
    let applies = *t.called.first()?.get(Name::Apply as usize)? as f64;
    let rates: Vec<f64> = walls_ns(t, rows).iter().map(|ns| applies / ns * 1e9).collect();
    of_runs(&THROUGHPUT, keys(t), &rates)
}
