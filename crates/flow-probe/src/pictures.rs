//! Boxes, edges and queues of graphs, lengths of single calls, throughput and latency over granularity, what virtual time said.

use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Axis, Cell, Curve, CurveRow, Distribution, Series, SeriesRow, TableRow};
use machmeter_data::{Dataset, Metric, MetricInfo, Shape};

use crate::graphs::Timed;
use crate::info::{LATENCY, RATE};
use crate::profile::{Levels, Profiled};
use crate::show::table;

const BUCKETS: usize = 100;
const MEAN: (&str, Option<Unit>) = ("mean", Some(Unit::Nanoseconds));

pub(crate) fn datasets(timed: &[Timed], metrics: &[Metric]) -> Vec<Dataset> {
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
    for (info, id, title, caption) in [
        (
            &RATE,
            "flow.rates",
            "Rate over granularity",
            "Firings of the source per second, by the iterations that are fired at once.",
        ),
        (
            &LATENCY,
            "flow.latencies",
            "Latency over granularity",
            "How long a token stays in the graph: what is fired at once, and what lies in queues.",
        ),
    ] {
        out.extend(over_granularity(metrics, (info, |value, _| value), title, [id, title], caption));
    }
    out.extend(predicted(timed));
    out
}

fn boxes(t: &Timed) -> Dataset {
    let all_ns: f64 = t.profile.boxes.iter().map(crate::profile::BoxCost::total_ns).sum();
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
    let caption = "Lengths of single calls of the last timed run, the timer's own part taken off; shorter ones than a step of the clock are not told apart.";
    let (id, title) = (format!("flow.calls.{}", t.graph), format!("Calls of {}", t.graph));
    some.then(|| Dataset::new(&id, title, caption, Shape::Distribution(shape)))
}

/// A metric, and what is drawn of its value at a granularity.
pub(crate) fn over_granularity(
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
