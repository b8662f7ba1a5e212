//! The published tables, of runs here: calibration, graphs, shares of the overhead, times of each name. And pictures: boxes, edges
//! and queues, lengths of single calls, throughput and latency over granularity, what virtual time said.

use machmeter_data::quantity::Unit;
use machmeter_data::shape::{
    Axis, Cell, CostTable, Curve, CurveRow, Distribution, Series, SeriesRow, TableColumn, TableRow,
};
use machmeter_data::{Dataset, Metric, MetricInfo, Shape};
use machmeter_flow::Group;
use machmeter_flow::table::{MOST_CORRECTION, Table};
use machmeter_stats::quantile::median_of;

use crate::analyze::{kernel_ns, keys, undisturbed};
use crate::graphs::Timed;
use crate::info::{EFFICIENCY, LATENCY, OVERHEAD, RATE};
use crate::profile::{BoxCost, Levels, Profiled};

const BUCKETS: usize = 100;
const MEAN: (&str, Option<Unit>) = ("mean", Some(Unit::Nanoseconds));

pub(crate) fn datasets(
    timed: &[Timed],
    metrics: &[Metric],
    calibration: Option<[[f64; 4]; 2]>,
) -> Vec<Dataset> {
    let measured: Vec<&Timed> = timed.iter().filter(|t| !t.total_ns.is_empty()).collect();
    let mut out = Vec::new();
    out.extend(graphs(&measured, metrics));
    out.extend(shares(&measured));
    out.extend(calibration.map(|c| self::calibration(&c)));
    out.extend(measured.iter().map(|t| names(t)));
    // By iteration: an apply of more of them does more.
    out.extend(over_granularity(
        metrics,
        (&OVERHEAD, |value, granularity| value / granularity),
        "overhead an apply and iteration",
        ["flow.granularity", "Overhead over granularity"],
        "Time of the kernel per apply, by the iterations it does at once.",
    ));
    out.extend(pictures(timed, metrics));
    out
}

type Column<'a> = (&'a str, Option<Unit>);

fn table(columns: &[Column<'_>], rows: impl Iterator<Item = TableRow>) -> Shape {
    let columns = columns.iter().map(|(label, unit)| TableColumn::new(*label, *unit)).collect();
    Shape::CostTable(CostTable { columns, rows: rows.collect() })
}

fn title(t: &Timed) -> String {
    let granularity =
        if t.granularity == 1 { String::new() } else { format!(", granularity {}", t.granularity) };
    format!("{}, {}{granularity}", t.graph, t.kernel)
}

fn graphs(timed: &[&Timed], metrics: &[Metric]) -> Option<Dataset> {
    let row = |t: &&Timed| {
        let (keys, ns) = (keys(t), kernel_ns(t));
        let of_runs: Vec<f64> = undisturbed(&[t], 1, ns.len()).into_iter().map(|i| ns[i]).collect();
        let value = |info: &MetricInfo| metrics.iter().find(|m| m.id == info.id && m.params == keys)?.value;
        let cell = |value: Option<f64>| value.map_or(Cell::Empty(()), Cell::Number);
        let cells = vec![
            Cell::Number(t.boxes as f64),
            Cell::Number(t.schedules as f64),
            Cell::Number(t.queues as f64),
            value(&EFFICIENCY).map_or(Cell::Empty(()), percent),
            cell(value(&OVERHEAD)),
            cell(median_of(&of_runs)),
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
    let caption = "Graphs by kernel, medians of timed runs during which nobody took the CPU (where there were none, of all): table or fused boxes, queues that copy or are mirrored, a heap or a bitmap of ready \
                   schedules. Efficiency is the share of the time that boxes work. A fused box is one apply, so that kernels with and without are compared by the overhead in all.";
    let shape = table(&columns, timed.iter().map(row));
    (!timed.is_empty()).then(|| Dataset::new("flow.graphs", "Graphs", caption, shape))
}

fn shares(timed: &[&Timed]) -> Option<Dataset> {
    let row = |t: &&Timed| TableRow {
        name: title(t),
        cells: t
            .table
            .shares()
            .into_iter()
            .map(|(_, s)| told(s, |s| Cell::Text(format!("{:.1} %", 100.0 * s))))
            .collect(),
    };
    let columns: Vec<Column<'_>> = Group::ALL[1..].iter().map(|g| (g.text(), None)).collect();
    let caption = "Shares of the kernel's time by what it does, of the last timed run; -: less than the timer's own part is known to.";
    let shape = table(&columns, timed.iter().map(row));
    (!timed.is_empty()).then(|| Dataset::new("flow.shares", "Shares of the overhead", caption, shape))
}

fn calibration(c: &[[f64; 4]; 2]) -> Dataset {
    let row = |name: &str, of: &[f64; 4]| TableRow {
        name: name.to_owned(),
        cells: of.iter().map(|ns| Cell::Number(*ns)).collect(),
    };
    let columns = ["mean", "deviation", "min", "max"].map(|c| (c, Some(Unit::Nanoseconds)));
    let caption = "Time an empty event reports for itself (Tt, single events) and costs its surroundings (Tpt, batches of 1024).";
    let rows = [row("Tpt", &c[1]), row("Tt", &c[0])].into_iter();
    Dataset::new("flow.calibration", "Calibration of the timer", caption, table(&columns, rows))
}

/// Below a step of the clock single values say nothing; the counter of some machines moves by 10 ns.
const STEP_NS: f64 = 10.0;

fn percent(share: f64) -> Cell {
    Cell::Text(format!("{:.2} %", 100.0 * share))
}

/// A time or share from which the timer's own part was taken; what is left below zero is less than that is known to.
fn told(value: f64, cell: impl Fn(f64) -> Cell) -> Cell {
    if value < 0.0 { Cell::Text("-".to_owned()) } else { cell(value) }
}

/// Times of each name, in the published columns and those behind them.
pub(crate) fn times(t: &Table) -> Shape {
    let single = |ns: f64| if ns < STEP_NS { Cell::Text("< 10 ns".to_owned()) } else { Cell::Number(ns) };
    let rows = t.rows.iter().map(|r| TableRow {
        name: r.name.clone(),
        cells: vec![
            Cell::Number(r.called as f64),
            told(r.total_ns, Cell::Number),
            told(r.mean_ns, Cell::Number),
            Cell::Number(r.deviation_ns),
            single(r.least_ns),
            Cell::Number(r.most_ns),
            told(r.percent / 100.0, percent),
            told(r.per_firing_ns, Cell::Number),
            r.correction.map_or(Cell::Empty(()), percent),
            r.p50_ns.map_or(Cell::Empty(()), single),
            r.p99_ns.map_or(Cell::Empty(()), single),
            // Of calls shorter than a stamp nothing single is known.
            r.tail
                .filter(|_| r.correction.is_none_or(|c| c <= MOST_CORRECTION))
                .map_or(Cell::Empty(()), |tail| percent(tail.max(0.0))),
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
                   are shorter than a stamp. -: less than that part is known to. Tail: share of \
                   the time in calls of more than ten times the mean.";
    let id = format!("flow.names.{}.{}.{}", t.graph, t.kernel, t.granularity);
    Dataset::new(&id, format!("Times, {}", title(t)), caption, times(&t.table))
}

fn pictures(timed: &[Timed], metrics: &[Metric]) -> Vec<Dataset> {
    let mut out = Vec::new();
    let mut told: Vec<&str> = Vec::new();
    // Each graph once: by the first kernel and granularity.
    for t in timed.iter().filter(|t| !t.profile.boxes.is_empty()) {
        if told.contains(&t.graph.as_str()) {
            continue;
        }
        told.push(&t.graph);
        out.push(boxes(t));
        out.push(edges(t));
        out.extend(levels(t));
        out.extend(calls(t));
    }
    let curve = |info, id, title, caption| {
        over_granularity(metrics, (info, |value, _| value), title, [id, title], caption)
    };
    let caption = "Firings of the source per second, by the iterations that are fired at once.";
    out.extend(curve(&RATE, "flow.rates", "Rate over granularity", caption));
    let caption = "How long a token stays in the graph: what is fired at once, and what lies in queues.";
    out.extend(curve(&LATENCY, "flow.latencies", "Latency over granularity", caption));
    out.extend(predicted(timed));
    out
}

fn boxes(t: &Timed) -> Dataset {
    let all_ns: f64 = t.profile.boxes.iter().map(BoxCost::total_ns).sum();
    let rows = t.profile.boxes.iter().map(|b| TableRow {
        name: b.name.clone(),
        cells: vec![
            Cell::Text(b.schedule.clone()),
            Cell::Number(b.calls() as f64),
            Cell::Number(b.loaded() as f64),
            Cell::Number(b.total_ns() / b.calls().max(1) as f64),
            Cell::Number(b.total_ns() / all_ns.max(f64::MIN_POSITIVE)),
        ],
    });
    let columns = [("schedule", None), ("calls", None), ("firings", None), MEAN, ("share", Some(Unit::One))];
    let caption = "Applies of each box by a stamp before and behind, medians over runs: calls, firings (of boxes with dynamic ports: tokens moved), and \
                   share of the time of all boxes.";
    let (id, title) = (format!("flow.boxes.{}", t.graph), format!("Boxes of {}", t.graph));
    Dataset::new(&id, title, caption, table(&columns, rows))
}

fn edges(t: &Timed) -> Dataset {
    let Profiled { edges, capacities, .. } = &t.profile;
    let number = |n: Option<u64>| n.map_or(Cell::Empty(()), |n| Cell::Number(n as f64));
    let rows = edges.iter().map(|e| {
        let occupied = e.queue.and_then(|q| t.occupancy.get(q));
        TableRow {
            name: e.name.clone(),
            cells: vec![
                Cell::Number((e.from + 1) as f64),
                Cell::Number((e.to + 1) as f64),
                Cell::Text(if e.queue.is_some() { "queue" } else { "static" }.to_owned()),
                number(e.queue.and_then(|q| capacities.get(q).copied())),
                number(occupied.map(|o| o.1)),
                number(occupied.map(|o| o.2)),
            ],
        }
    });
    let columns = ["from", "to", "kind", "capacity", "most", "discarded"].map(|c| (c, None));
    let caption = "Who gives tokens to whom: numbers of boxes in the table of boxes. Of queues: tokens that they hold, the most that were in them, and \
                   those discarded at ends of segments.";
    let (id, title) = (format!("flow.edges.{}", t.graph), format!("Edges of {}", t.graph));
    Dataset::new(&id, title, caption, table(&columns, rows))
}

/// Least, mean and most of looks in equal buckets; a bucket without a look keeps the level before.
fn buckets(levels: &Levels, queue: usize, step_ns: f64, name: String) -> SeriesRow {
    let (at, tokens) = (&levels.at_ns, &levels.tokens[queue]);
    let mut row = SeriesRow { name, min: Vec::new(), mean: Vec::new(), max: Vec::new(), marks: Vec::new() };
    let (mut next, mut last) = (0, 0.0);
    for bucket in 1..=BUCKETS {
        let (mut low, mut high, mut sum, mut n) = (last, last, 0.0, 0.0);
        while next < at.len() && (at[next] < step_ns * bucket as f64 || bucket == BUCKETS) {
            last = tokens[next] as f64;
            (low, high, sum, n) = (last.min(low), last.max(high), sum + last, n + 1.0);
            next += 1;
        }
        row.min.push(low);
        row.mean.push(if n > 0.0 { sum / n } else { last });
        row.max.push(high);
    }
    row
}

fn levels(t: &Timed) -> Option<Dataset> {
    let levels = &t.profile.levels;
    let step_ns = levels.at_ns.last()? / BUCKETS as f64;
    if step_ns <= 0.0 || levels.tokens.is_empty() {
        return None;
    }
    let name = |q: usize| t.occupancy.get(q).map_or_else(|| format!("queue {q}"), |o| o.0.clone());
    let rows = (0..levels.tokens.len()).map(|q| buckets(levels, q, step_ns, name(q))).collect();
    let shape =
        Shape::Series(Series { start_ns: 0.0, step_ns, y: Axis::linear("tokens", Unit::Count), rows });
    let caption = "Tokens in queues over a run, looked at behind firings.";
    Some(Dataset::new(&format!("flow.queues.{}", t.graph), format!("Queues of {}", t.graph), caption, shape))
}

fn calls(t: &Timed) -> Option<Dataset> {
    let rows = t.quantiles.clone();
    let some = !rows.is_empty();
    let shape = Distribution { value: Axis::log("call", Unit::Nanoseconds), rows, limits: Vec::new() };
    let caption = "Lengths of single calls of the last timed run, without the timer's own part. The clock does not resolve lengths below its step.";
    let (id, title) = (format!("flow.calls.{}", t.graph), format!("Calls of {}", t.graph));
    some.then(|| Dataset::new(&id, title, caption, Shape::Distribution(shape)))
}

/// A metric, and what is drawn of its value at a granularity.
fn over_granularity(
    metrics: &[Metric],
    (info, drawn): (&MetricInfo, fn(f64, f64) -> f64),
    axis: &str,
    [dataset, title]: [&str; 2],
    caption: &str,
) -> Option<Dataset> {
    let mut rows: Vec<CurveRow> = Vec::new();
    for m in metrics.iter().filter(|m| m.id == info.id) {
        let text = |name: &str| m.params.get(name).map_or_else(String::new, ToString::to_string);
        let Some(value) = m.value.filter(|v| *v > 0.0) else { continue };
        let Ok(granularity) = text("granularity").parse() else { continue };
        let (name, value) = (format!("{}, {}", text("graph"), text("kernel")), drawn(value, granularity));
        if let Some(row) = rows.iter_mut().find(|r| r.name == name) {
            row.x.push(granularity);
            row.y.push(value);
        } else {
            rows.push(CurveRow { name, x: vec![granularity], y: vec![value] });
        }
    }
    rows.retain(|r| r.x.len() > 1);
    let some = !rows.is_empty();
    let y = Axis::log(axis, info.unit);
    let shape = Curve { x: Axis::log("granularity", Unit::One), y, rows, marks: Vec::new() };
    some.then(|| Dataset::new(dataset, title, caption, Shape::Curve(shape)))
}

fn predicted(timed: &[Timed]) -> Option<Dataset> {
    let row = |t: &Timed| {
        let p = t.predicted.as_ref()?;
        let same = |(most, o): (&u64, &(String, u64, u64))| *most == o.1;
        let levels = p.most.iter().zip(&t.occupancy).all(same);
        let from: Vec<String> = p.from.iter().map(ToString::to_string).collect();
        Some(TableRow {
            name: format!("{}, {}, granularity {}", t.graph, t.kernel, t.granularity),
            cells: vec![
                Cell::Number(p.wall_ns),
                Cell::Number(p.kernel_ns),
                Cell::Text(if levels { "the same" } else { "others" }.to_owned()),
                Cell::Text(from.join(", ")),
            ],
        })
    };
    let rows: Vec<TableRow> = timed.iter().filter_map(row).collect();
    let ns = Some(Unit::Nanoseconds);
    let columns =
        [("predicted", ns), ("of it the kernel", ns), ("most in queues", None), ("from granularity", None)];
    let caption = "Virtual time: the scheduler over boxes that take a + b load, by the stored run's loads, and do nothing. The metric flow.prediction is the \
                   predicted wall over the measured one.";
    let some = !rows.is_empty();
    let shape = table(&columns, rows.into_iter());
    some.then(|| Dataset::new("flow.predicted", "Predicted in virtual time", caption, shape))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_time_is_below_zero() {
        assert_eq!(told(-20.5, Cell::Number), Cell::Text("-".to_owned()));
        assert_eq!(told(-1e-9, percent), Cell::Text("-".to_owned()));
        assert_eq!(told(1.5, Cell::Number), Cell::Number(1.5));
    }
}
