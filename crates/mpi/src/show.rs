//! The table of operations, and a picture of each.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, CurveRow, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_model::laws::table::{At, COLUMNS, Found, Table};

use crate::analyze::Whole;

/// What was measured where, and the table, for the page.
pub(crate) fn page(found: &[Found], whole: &Whole, pairs: Vec<String>) -> Option<SummaryLine> {
    let mut lines = vec![heading(whole)?];
    if !found.is_empty() {
        lines.extend(Table::of(found).lines());
    }
    lines.extend(limits(whole));
    lines.extend(pairs);
    Some(SummaryLine { section: "MPI".to_owned(), lines })
}

/// Sizes from which a send waits, in a line.
fn limits(whole: &Whole) -> Option<String> {
    let limit = |m: &Metric| {
        let receiver = m.params.get("receiver").map_or(String::new(), ToString::to_string);
        let bytes = m.value.map(|b| format!("above {b:.0} B"));
        format!("{} while the receiver is {receiver}", bytes.or_else(|| m.why.clone()).unwrap_or_default())
    };
    let limits: Vec<String> = whole.thresholds.iter().map(limit).collect();
    (!limits.is_empty()).then(|| format!("A send waits {}.", limits.join(", ")))
}

fn heading(whole: &Whole) -> Option<String> {
    let first = whole.launches.first()?;
    let cpus: Vec<String> = first.cpus.iter().map(ToString::to_string).collect();
    let where_ = if cpus.len() <= 8 { format!(" on CPU {}", cpus.join(", ")) } else { String::new() };
    let launches = whole.launches.len();
    let bound_ns = whole.launches.iter().map(|l| l.clock_bound_ns).fold(0.0, f64::max);
    let [all, out] = whole.windows;
    let share = 100.0 * out as f64 / all.max(1) as f64;
    let disturbed =
        if all > 0 { format!("; {share:.0} % of windows disturbed, left out") } else { String::new() };
    Some(format!(
        "{}, {} ranks{where_}, {launches} launch{}; clocks within {}{disturbed}",
        first.library,
        first.ranks,
        if launches == 1 { "" } else { "es" },
        human(bound_ns, Unit::Nanoseconds),
    ))
}

pub(crate) fn datasets(found: &[Found], whole: &Whole) -> Vec<Dataset> {
    let mut all: Vec<Dataset> = operations(found, whole).into_iter().collect();
    all.extend(found.iter().filter_map(costs));
    all.extend(residuals(found));
    all
}

fn operations(found: &[Found], whole: &Whole) -> Option<Dataset> {
    let Table { rows, reasons, .. } = Table::of(found);
    let columns = COLUMNS.map(|label| TableColumn::new(label, None)).to_vec();
    let row = |(name, cells): (String, [String; 6])| TableRow { name, cells: cells.map(Cell::Text).into() };
    let rows: Vec<TableRow> = rows.into_iter().map(row).collect();
    let limits = limits(whole).map_or(String::new(), |l| format!(" {l}"));
    let reasons = if reasons.is_empty() { String::new() } else { format!(" {}.", reasons.join("; ")) };
    let caption = format!(
        "Time of each operation one after the other, d in bytes of a rank, p ranks; off: how far the point farthest from the law lies; Q: goodness of \
         fit; isolated: at agreed moments, until the last rank is through.{limits}{reasons}"
    );
    (!rows.is_empty()).then(|| {
        let shape = Shape::CostTable(CostTable { columns, rows });
        Dataset::new("mpi.operations", "MPI operations", caption, shape)
    })
}

/// Measured points with their intervals, the law and its band.
fn costs(f: &Found) -> Option<Dataset> {
    let mut rows = Vec::new();
    let ranks: std::collections::BTreeSet<u32> = f.costs.keys().map(|k| k.0).collect();
    for p in &ranks {
        let of = if ranks.len() > 1 { format!("p = {p}, ") } else { String::new() };
        // The axis of sizes is logarithmic.
        let own: Vec<(u64, &At)> =
            f.costs.iter().filter(|(k, _)| k.0 == *p && k.1 > 0).map(|(k, at)| (k.1, at)).collect();
        if own.len() < 2 {
            continue;
        }
        let x: Vec<f64> = own.iter().map(|(d, _)| *d as f64).collect();
        let mut push = |name: &str, y: Vec<f64>| {
            rows.push(CurveRow { name: format!("{of}{name}"), x: x.clone(), y });
        };
        push("measured", own.iter().map(|(_, a)| a.ns).collect());
        push("interval, low", own.iter().map(|(_, a)| a.low_ns).collect());
        push("interval, high", own.iter().map(|(_, a)| a.high_ns).collect());
        let by_law: Option<Vec<_>> = own.iter().map(|(d, _)| f.predict(*p, *d)).collect();
        if let Some(by_law) = by_law {
            push("law", by_law.iter().map(|l| 1e3 * l.value).collect());
            push("band, low", by_law.iter().map(|l| 1e3 * l.interval.low).collect());
            push("band, high", by_law.iter().map(|l| 1e3 * l.interval.high).collect());
        }
    }
    let isolated = f.isolated.iter().filter(|(k, _)| k.1 > 0 && ranks.first() == Some(&k.0));
    let (x, y): (Vec<f64>, Vec<f64>) = isolated.map(|(k, a)| (k.1 as f64, a.ns)).unzip();
    if x.len() > 1 {
        rows.push(CurveRow { name: "isolated".to_owned(), x, y });
    }
    let name = f.name;
    let caption =
        format!("{}, over bytes: measured with intervals, the law and what it predicts with 95 %.", f.what);
    let (x, y) = (Axis::log("message", Unit::Bytes), Axis::log("time", Unit::Nanoseconds));
    (!rows.is_empty()).then(|| {
        Dataset::new("mpi.cost", name, caption, Curve::shape(x, y, rows))
            .with_params(params([("operation", name.into())]))
    })
}

fn residuals(found: &[Found]) -> Option<Dataset> {
    let row = |f: &Found| {
        let p = f.costs.keys().next()?.0;
        let off = |((ranks, d), at): (&(u32, u64), &At)| {
            let by_law = f.predict(p, *d).filter(|l| *ranks == p && *d > 0 && l.value > 0.0)?;
            Some((*d as f64, at.ns / 1e3 / by_law.value - 1.0))
        };
        let (x, y): (Vec<f64>, Vec<f64>) = f.costs.iter().filter_map(off).unzip();
        (x.len() > 1).then(|| CurveRow { name: f.name.to_owned(), x, y })
    };
    let rows: Vec<CurveRow> = found.iter().filter_map(row).collect();
    let (x, y) = (Axis::log("message", Unit::Bytes), Axis::linear("measured above law", Unit::One));
    let caption = "How far costs of two ranks lie above their law, or below: what no sum of terms explains.";
    (!rows.is_empty())
        .then(|| Dataset::new("mpi.residuals", "Residuals of laws", caption, Curve::shape(x, y, rows)))
}
