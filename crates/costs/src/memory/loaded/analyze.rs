//! What the rows say: latency over the bandwidth that others take meanwhile.

use machmeter_data::Unit;
use machmeter_data::quantity::{digits, human};
use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Dataset};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Cost, Row, Rows};

use super::{CHAIN_BYTES, CPUS, LAST_CACHE_BYTES, LATENCY, LOAD_STOOD, NAME, SMALL_CHAIN, TRAFFIC};
use crate::memory::Params;
use crate::memory::bandwidth::info::ONE_CPU;
use crate::memory::ladder::detect::DetectedCaches;
use crate::show;

/// Figures of all points up to so many; beyond, only those without a pause.
const FEW: usize = 10;

struct Point<'r> {
    row: &'r Row,
    latency: Cost,
    traffic: Option<(&'r Row, Cost)>,
    load: String,
    cpus: i64,
    pause_ns: i64,
}

impl Point<'_> {
    /// Bytes per second of the load.
    fn rate(&self) -> Option<f64> {
        if self.cpus == 0 { Some(0.0) } else { Some(1e9 / self.traffic.as_ref()?.1.value_ns()?) }
    }
}

fn points(rows: &Rows) -> Vec<Point<'_>> {
    let of = |operation: &'static str| rows.part(NAME).filter(move |r| r.operation == operation);
    of("chase")
        .map(|row| Point {
            row,
            latency: rows.cost(row),
            traffic: of("traffic")
                .find(|t| t.params == row.params && row.text("load") != "none")
                .map(|t| (t, rows.cost(t))),
            load: row.text("load"),
            cpus: row.int("load_cpus").unwrap_or(0),
            pause_ns: row.int("pause_ns").unwrap_or(0),
        })
        .collect()
}

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let points = points(rows);
    let mut out = Analysis::default();
    for p in &points {
        out.metrics.push(p.latency.metric(&LATENCY, p.row.params.clone()));
        if let Some((row, cost)) = &p.traffic
            && (points.len() > FEW || p.pause_ns == 0)
        {
            out.metrics.push(cost.metric_as(&TRAFFIC, row.params.clone(), |ns| 1e9 / ns));
        }
    }
    out.datasets.extend(curve(&points));
    conditions(rows, &points, &mut out);
    let idle = points.iter().find(|p| p.cpus == 0);
    let full = points
        .iter()
        .filter(|p| p.cpus > 0 && p.latency.known().is_some())
        .filter_map(|p| Some((p, p.rate()?)))
        .max_by(|a, b| a.1.total_cmp(&b.1));
    out.findings.extend(idle.zip(full).and_then(|(idle, (full, rate))| rise(idle, full, rate, &points)));
    out
}

fn rise(idle: &Point<'_>, full: &Point<'_>, rate: f64, points: &[Point<'_>]) -> Option<Finding> {
    let (a, b) = (idle.latency.known()?, full.latency.known()?);
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    let rate = human(rate, Unit::BytesPerSecond);
    let verdict = if b.low_ns > 1.05 * a.high_ns {
        "rises"
    } else if b.high_ns < 1.2 * a.low_ns {
        "flat"
    } else {
        "unknown"
    };
    let cpus = full.cpus;
    let others = if cpus == 1 { "one other CPU moves".to_owned() } else { format!("{cpus} other CPUs move") };
    let (idle, busy, load, times) =
        (ns(a.value_ns), ns(b.value_ns), &full.load, digits(b.value_ns / a.value_ns));
    let text = format!(
        "A load from memory takes {idle} when the machine is idle and {busy} while {others} {rate} ({load}): {times} times."
    );
    let evidence = points.iter().filter_map(|p| {
        let k = p.latency.known()?;
        let [pause, value, low, high] = [p.pause_ns as f64, k.value_ns, k.low_ns, k.high_ns].map(ns);
        let (load, cpus, rate) = (&p.load, p.cpus, human(p.rate()?, Unit::BytesPerSecond));
        Some(format!("{load} on {cpus} with pauses of {pause}: {value} [{low}, {high}] beside {rate}"))
    });
    Some(show::finding("memory.loaded_latency", verdict, text, evidence.collect()))
}

/// A curve for each load on the most CPUs it ran on, from the idle machine on.
fn curve(points: &[Point<'_>]) -> Option<Dataset> {
    let most = points.iter().map(|p| p.cpus).max()?;
    let idle = points.iter().find(|p| p.cpus == 0).and_then(|p| p.latency.value_ns());
    let loads = show::distinct(points.iter().filter(|p| p.cpus == most && most > 0).map(|p| &p.load));
    let row = |load: &String| {
        let known = points.iter().filter(|p| p.load == *load && p.cpus == most);
        let at = known.filter_map(|p| Some((p.rate()?, p.latency.value_ns()?)));
        show::curve(load, at.chain(idle.map(|ns| (0.0, ns))).collect())
    };
    let rows = loads.into_iter().filter_map(row);
    let axes = [
        Axis::linear("bandwidth of the other CPUs", Unit::BytesPerSecond),
        Axis::linear("latency of a load from memory", Unit::Nanoseconds),
    ];
    let caption = "One CPU follows a random chain through memory, the others move data with shorter and shorter pauses; their \
                   bandwidth is counted in the same windows. The curve bends where memory is full.";
    show::curves(["memory.loaded_latency", "Latency under load", caption], axes, rows, Vec::new())
}

fn conditions(rows: &Rows, points: &[Point<'_>], out: &mut Analysis) {
    if rows.facts.get(&CPUS).is_some_and(|c| c < 2) && rows.part("bandwidth").next().is_none() {
        out.warnings.push(ONE_CPU.warning("latency under load needs two CPUs, has 1"));
    }
    let claimed = rows.facts.get(&LAST_CACHE_BYTES);
    let last = claimed.map(|claimed| DetectedCaches::last_cache(&rows.facts, claimed as f64));
    if let (Some(chain), Some(last)) = (rows.facts.get(&CHAIN_BYTES).map(|bytes| bytes as f64), last)
        && chain < 2.0 * last
    {
        let [chain, twice] = [chain, 2.0 * last].map(|b| human(b, Unit::Bytes));
        let text = format!(
            "the loaded latency may include cache hits: the chain has {chain} of lines, twice the last cache is {twice}"
        );
        out.warnings.push(SMALL_CHAIN.warning(text));
        for m in out.metrics.iter_mut().filter(|m| m.id == LATENCY.id) {
            m.flag(SMALL_CHAIN.id);
        }
    }
    let kept: u64 = points.iter().map(|p| p.row.pairs.len() as u64).sum();
    let lost: u64 = points.iter().map(|p| p.row.rejected.total()).sum();
    if lost > kept {
        let text = format!("only {kept} of {} samples of the loaded latency were undisturbed", kept + lost);
        out.warnings.push(LOAD_STOOD.warning(text));
    }
}
