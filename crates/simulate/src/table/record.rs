//! The table as figures and data of a record. Ids begin with `simulate`: nothing of it was measured.

use machmeter_data::metric::{ParamValue, params};
use machmeter_data::record::{Record, SummaryLine};
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, TableColumn, TableRow};
use machmeter_data::{Dataset, Interval, Metric, Shape, Unit};
use machmeter_model::laws::LEVEL;
use machmeter_model::laws::table::{At, COLUMNS, Found, SHOWN, Table};

use crate::record::curve;

machmeter_data::metrics! {
    ["operation", "size_bytes", "ranks"] Nanoseconds Lower weakened by [] {
        COST = "simulate.cost"
            "Simulated time of an operation in a loop, one after the other, at the size of the table. size_bytes: bytes of one rank.";
        ISOLATED = "simulate.isolated"
            "Simulated time of a single operation until its last rank finishes, at the size of the table.";
    }
    ["operation", "term", "from_bytes", "to_bytes", "ranks"] Nanoseconds Lower weakened by [] {
        COEFFICIENT = "simulate.coefficient"
            "Factor of a term (1, d, p, log(p), ...) in the law of an operation's simulated cost, in ns per unit of the term, for sizes from from_bytes to to_bytes.";
    }
    ["operation", "from_bytes", "ranks"] One Lower weakened by [] {
        MISFIT = "simulate.misfit" "Largest relative distance of a simulated cost from the law.";
    }
}

/// The size that the table shows, bytes.
fn shown(f: &Found) -> u64 {
    f.costs.keys().next().filter(|_| f.has_one_size).map_or(SHOWN, |key| key.1)
}

fn metrics(f: &Found) -> Vec<Metric> {
    let name = || ("operation", f.name.into());
    let mut all = Vec::new();
    for (info, costs) in [(&COST, &f.costs), (&ISOLATED, &f.isolated)] {
        let shown = costs.iter().filter(|((_, d), _)| *d == shown(f));
        all.extend(shown.map(|((p, d), at)| {
            let keys = params([name(), ("size_bytes", (*d).into()), ("ranks", (*p).into())]);
            Metric::new(info, keys, at.ns, "simulation", at.n).with_ci(interval(at.low_ns, at.high_ns))
        }));
    }
    for law in f.laws.iter().flatten() {
        for s in &law.segments {
            let n = s.n as u64;
            let keys = |more: &[(&str, ParamValue)]| {
                let mut keys = params([name(), ("from_bytes", s.from_bytes.into())]);
                let ranks = law.only_p.map(|p| ("ranks", p.into()));
                let more = more.iter().cloned().chain(ranks);
                keys.extend(more.map(|(key, value)| (key.to_owned(), value)));
                keys
            };
            for c in &s.chosen().terms {
                let keys = keys(&[("term", c.term.name().into()), ("to_bytes", s.to_bytes.into())]);
                let metric = Metric::new(&COEFFICIENT, keys, 1e3 * c.value, "weighted sum of terms", n);
                all.push(metric.with_ci(interval(1e3 * c.interval.low, 1e3 * c.interval.high)));
            }
            all.push(Metric::new(&MISFIT, keys(&[]), s.misfit, "largest of points", n));
        }
    }
    all
}

/// Over ranks at the size of the table and the largest one.
fn curves(f: &Found) -> Option<Dataset> {
    let largest = f.costs.keys().map(|k| k.1).max()?;
    let mut rows = Vec::new();
    let mut sizes = vec![shown(f), largest];
    sizes.dedup();
    for d in sizes {
        let own: Vec<(u32, &At)> =
            f.costs.iter().filter(|(k, _)| k.1 == d).map(|(k, at)| (k.0, at)).collect();
        if own.len() < 2 {
            continue;
        }
        let mut push = |what: &str, of: &dyn Fn(u32, &At) -> Option<f64>| {
            let points: Option<Vec<_>> =
                own.iter().map(|(p, at)| Some((f64::from(*p), of(*p, at)?))).collect();
            rows.extend(points.map(|all| curve(format!("{d} B, {what}"), all.into_iter())));
        };
        push("simulated", &|_, at| Some(at.ns));
        push("interval, low", &|_, at| Some(at.low_ns));
        push("interval, high", &|_, at| Some(at.high_ns));
        push("law", &|p, _| Some(1e3 * f.predict(p, d)?.value));
        push("isolated", &|p, _| Some(f.isolated.get(&(p, d))?.ns));
    }
    if rows.is_empty() {
        return None;
    }
    let name = f.name;
    let caption = format!("{name} as {}, over ranks: simulated, with intervals of the parameters.", f.what);
    let (x, y) = (Axis::log("ranks", Unit::Count), Axis::log("time", Unit::Nanoseconds));
    let shape = Curve::shape(x, y, rows);
    Some(
        Dataset::new("simulate.cost", name, caption, shape).with_params(params([("operation", name.into())])),
    )
}

fn interval(low: f64, high: f64) -> Option<Interval> {
    let all = Interval::new(LEVEL, low, high, "errors of parameters, propagated");
    all.filter(|i| i.low < i.high)
}

/// Puts the table into a record. `title` says on what it was simulated.
pub fn fill(record: &mut Record, title: &str, found: &[Found]) {
    let table = Table::of(found);
    let mut lines = vec![title.to_owned()];
    lines.extend(table.lines());
    record.summary.lines.push(SummaryLine { section: "SIMULATED".to_owned(), lines });
    let reasons = table.reasons.iter().map(|r| format!(" {r}.")).collect::<String>();
    let algorithms: Vec<String> = found.iter().map(|f| format!("{} {}", f.name, f.what)).collect();
    let caption = format!(
        "Simulated, not measured: {title}. Time of each operation one after the other, d in bytes of a message, p ranks; at 8 B: of the fewest ranks; \
         isolated: until the last rank is through; off: how far the time farthest from the law lies.{reasons} Algorithms: {}.",
        algorithms.join("; ")
    );
    let columns = COLUMNS.map(|label| TableColumn::new(label, None)).to_vec();
    let row = |(name, cells): (String, [String; 6])| TableRow { name, cells: cells.map(Cell::Text).into() };
    let shape = Shape::CostTable(CostTable { columns, rows: table.rows.into_iter().map(row).collect() });
    record.datasets.push(Dataset::new("simulate.operations", "Simulated MPI operations", caption, shape));
    record.datasets.extend(found.iter().filter_map(curves));
    record.metrics.extend(found.iter().flat_map(metrics));
}
