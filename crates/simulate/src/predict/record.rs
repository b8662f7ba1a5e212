//! Figures, data and statements of a prediction, for a record.

use machmeter_data::metric::params;
use machmeter_data::quantity::human;
use machmeter_data::record::{Record, SummaryLine};
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, CurveRow, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape, Unit};

use crate::engine::{Part, Time as _};
use crate::record::{self, ns};
use crate::replay::{OfRank, Split};

use super::{PARAMETERS, Times, Variation};

machmeter_data::metrics! {
    ["ranks", "change"] Nanoseconds Lower weakened by [] {
        WALL = "predict.wall"
            "Predicted time of a traced program until its last rank ends: the median of runs with random costs and noise.";
    }
    ["part"] One Neither weakened by [] {
        SHARE = "predict.share"
            "Share of the time of all ranks in the median run: compute, messages, waiting, noise.";
    }
    ["parameter"] Count Neither weakened by [] {
        SENSITIVITY = "predict.sensitivity"
            "Derivative of the predicted time with respect to a parameter: messages on the critical path for L, o and g, bytes at G for G. A \
             lower bound if collectives with measured costs are on the path, because these costs do not vary.";
    }
    ["rank"] One Neither weakened by [] {
        PATH = "predict.path" "Share of the critical path on a rank, including its messages in transit.";
    }
}

/// Ranks and operations of the critical path that are listed at most, and from which share on.
const LISTED: usize = 4;
const LISTED_FROM: f64 = 0.001;
/// Ranks of the table at most.
const MAX_ROWS: usize = 256;

#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// What on what.
    pub title: &'a str,
    pub traced_ns: f64,
    pub ranks: u32,
    pub times: Option<&'a Times>,
    pub split: Option<&'a Split>,
    /// Collectives at a price, which varies with no parameter.
    pub priced: &'a [&'static str],
    /// Times with one parameter changed.
    pub varied: &'a [(Variation, Times)],
    /// Statements on how it was made.
    pub statements: &'a [String],
}

fn predicted(times: &Times) -> String {
    record::time(ns(times.median().1), times.interval().as_ref())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// Puts a prediction into a record.
pub fn fill(record: &mut Record, told: &Told<'_>) {
    let mut lines = vec![told.title.to_owned()];
    let traced = human(told.traced_ns, Unit::Nanoseconds);
    match told.times {
        None => lines.push(format!("{} ranks, {traced} traced: no run was done", told.ranks)),
        Some(times) => {
            wall(record, told.ranks, "none", times);
            let count = match times.count() {
                1 => String::new(),
                n => format!(", median of {n} runs"),
            };
            lines.push(format!("{} ranks, {traced} traced -> {}{count}", told.ranks, predicted(times)));
        }
    }
    if let Some(split) = told.split {
        lines.push(shares(record, &split.ranks));
        lines.push(sensitivities(record, split));
        lines.extend(priced(split, told.priced));
        lines.push(path(record, split));
        record.datasets.push(of_ranks(&split.ranks));
    }
    for (variation, times) in told.varied {
        wall(record, told.ranks, &variation.name(), times);
        let change = told.times.map_or(String::new(), |base| {
            let ratio = times.median().1 as f64 / base.median().1.max(1) as f64;
            format!(", {:+.2} %", 100.0 * (ratio - 1.0))
        });
        lines.push(format!("{}: {}{change}", variation.name(), predicted(times)));
    }
    lines.extend(told.statements.iter().cloned());
    record.datasets.extend(curve(told.varied));
    record.summary.lines.push(SummaryLine { section: "PREDICT".to_owned(), lines });
}

fn wall(record: &mut Record, ranks: u32, change: &str, times: &Times) {
    let keys = params([("ranks", ranks.into()), ("change", change.into())]);
    let method = if times.count() == 1 { "simulation" } else { "median of runs" };
    let metric = Metric::new(&WALL, keys, ns(times.median().1), method, times.count());
    record.metrics.push(metric.with_ci(times.interval()));
}

type TimeOfRank = (&'static str, fn(&OfRank) -> u64);

/// In ps; the first four are parts of the whole.
const TIMES: [TimeOfRank; 6] = [
    ("compute", |r| r.compute_ps),
    ("messages", |r| r.messages_ps),
    ("waiting", |r| r.waiting_ps),
    ("noise", |r| r.noise_ps),
    ("on the critical path", |r| r.path_ps),
    ("end", |r| r.end_ps),
];

fn shares(record: &mut Record, ranks: &[OfRank]) -> String {
    let parts = &TIMES[..4];
    let sum = |of: fn(&OfRank) -> u64| ranks.iter().map(|r| of(r) as f64).sum::<f64>();
    let all: f64 = parts.iter().map(|(_, of)| sum(*of)).sum();
    let mut words = Vec::new();
    for (part, of) in parts {
        let share = if all > 0.0 { sum(*of) / all } else { 0.0 };
        let (keys, n) = (params([("part", (*part).into())]), ranks.len() as u64);
        record.metrics.push(Metric::new(&SHARE, keys, share, "median run", n));
        words.push(format!("{part} {}", percent(share)));
    }
    words.join(", ")
}

/// Time of priced collectives on the critical path, ps.
fn priced_ps(split: &Split) -> i64 {
    split.end.spent_ps[Part::Collective as usize]
}

/// What sensitivities do not hold.
fn priced(split: &Split, names: &[&str]) -> Option<String> {
    let share = priced_ps(split) as f64 / split.end.ps().max(1) as f64;
    (share > 0.0).then(|| {
        format!(
            "{} of the critical path is {} at its measured cost, which does not vary: --algorithm OP=PATTERN replays messages instead",
            percent(share),
            names.join(", ")
        )
    })
}

fn sensitivities(record: &mut Record, split: &Split) -> String {
    let mut words = Vec::new();
    let (method, least) = match priced_ps(split) {
        0 => ("gradient of the median run", ""),
        _ => ("gradient of the median run without collectives of measured cost", ">= "),
    };
    for (name, part) in PARAMETERS {
        let mut count = split.end.count(part);
        if part == Part::GapBytes {
            // Where the CPUs move the bytes, they are on their parts of the message.
            count += split.end.count(Part::OverheadBytes);
        }
        let keys = params([("parameter", name.into())]);
        record.metrics.push(Metric::new(&SENSITIVITY, keys, count as f64, method, 1));
        let unit = if part == Part::GapBytes { " B" } else { "" };
        words.push(format!("dT/d{name} {least}{count}{unit}"));
    }
    words.join(", ")
}

fn path(record: &mut Record, split: &Split) -> String {
    let end = split.end.ps().max(1) as f64;
    let mut ranks: Vec<(usize, f64)> =
        split.ranks.iter().enumerate().map(|(rank, r)| (rank, r.path_ps as f64 / end)).collect();
    ranks.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranks.truncate(LISTED);
    let mut on = Vec::new();
    for (rank, share) in ranks.into_iter().filter(|(_, share)| *share >= LISTED_FROM) {
        let keys = params([("rank", rank.into())]);
        record.metrics.push(Metric::new(&PATH, keys, share, "median run", 1));
        on.push(format!("{} on rank {rank}", percent(share)));
    }
    let through =
        |(name, count, ps): &(&str, u64, u64)| format!("{count} {name} ({})", percent(*ps as f64 / end));
    let is_long = |(_, _, ps): &&(&str, u64, u64)| *ps as f64 / end >= LISTED_FROM;
    let through: Vec<String> = split.path.iter().filter(is_long).take(LISTED).map(through).collect();
    let word = if through.is_empty() { "" } else { "; through " };
    format!("critical path: {}{word}{}", on.join(", "), through.join(", "))
}

fn of_ranks(ranks: &[OfRank]) -> Dataset {
    let row = |(rank, r): (usize, &OfRank)| {
        let cells = TIMES.map(|(_, of)| Cell::Number(ns(of(r))));
        TableRow { name: format!("rank {rank}"), cells: cells.to_vec() }
    };
    let table = CostTable {
        columns: TIMES.map(|(label, _)| TableColumn::new(label, Unit::Nanoseconds)).to_vec(),
        rows: ranks.iter().enumerate().take(MAX_ROWS).map(row).collect(),
    };
    let caption = "Parts of the time of each rank in the median run, over all its threads.";
    Dataset::new("predict.ranks", "Predicted time by rank", caption, Shape::CostTable(table))
}

fn curve(varied: &[(Variation, Times)]) -> Option<Dataset> {
    let row = |(name, part): &(&str, Part)| {
        let own = varied.iter().filter(|(c, _)| c.part == *part);
        let mut own: Vec<(f64, f64)> = own.map(|(c, t)| (c.factor, ns(t.median().1))).collect();
        own.sort_by(|a, b| a.0.total_cmp(&b.0));
        record::curve(*name, own.into_iter())
    };
    let rows: Vec<CurveRow> = PARAMETERS.iter().map(row).filter(|r| r.x.len() > 1).collect();
    let (x, y) = (Axis::linear("factor", Unit::One), Axis::linear("time", Unit::Nanoseconds));
    let caption = "Predicted time if one parameter is a multiple of its measured value.";
    (!rows.is_empty()).then(|| {
        Dataset::new("predict.vary", "Predicted time by parameter", caption, Curve::shape(x, y, rows))
    })
}
