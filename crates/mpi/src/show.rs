//! The table of operations, and a picture of each.

use machmeter_data::metric::params;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, Cell, CostTable, Curve, CurveRow, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_model::laws::{Law, Segment};

use crate::analyze::{At, Costs, Found, Whole};
use crate::operations::Sized;

/// The size whose cost stands in the table, bytes.
const SHOWN: u64 = 8;

/// Where the columns of the page's table begin.
const STARTS: [usize; 7] = [0, 15, 39, 52, 58, 66, 75];

/// What was measured where, and the table, for the page.
pub(crate) fn page(found: &[Found], whole: &Whole) -> Option<SummaryLine> {
    let (rows, reasons) = rows(found);
    let mut lines = vec![heading(whole)?];
    let mut line = |name: &str, cells: [&str; 6]| {
        let mut line = String::new();
        for (text, start) in [name].into_iter().chain(cells).zip(STARTS) {
            // A long law takes from the room of the next cell.
            let gap = start.saturating_sub(line.chars().count()).max(usize::from(start > 0));
            line.extend(std::iter::repeat_n(' ', gap).chain(text.chars()));
        }
        lines.push(line.trim_end().to_owned());
    };
    line("operation", ["time (us)", "at 8 B", "off", "Q", "isolated", "bytes"]);
    for row in &rows {
        let words: Vec<&str> = row.cells.iter().map(|c| if let Cell::Text(t) = c { t } else { "" }).collect();
        if let [a, b, c, d, e, f] = words[..] {
            line(&row.name, [a, &short(b), c, d, e, f]);
        }
    }
    lines.extend(reasons);
    lines.extend(limits(whole));
    Some(SummaryLine { section: "MPI".to_owned(), lines })
}

/// `0.152 [0.139, 0.166]` is 0.152 and the farther end of the interval.
fn short(cost: &str) -> String {
    let Some((value, interval)) = cost.split_once(" [") else { return cost.to_owned() };
    let number = |text: &str| text.trim_end_matches(']').trim().parse::<f64>().unwrap_or(f64::NAN);
    let ends = interval.split(',').map(|end| (number(end) - number(value)).abs());
    let digits = value.split_once('.').map_or(0, |(_, after)| after.len());
    format!("{value} \u{b1}{:.digits$}", ends.fold(0.0, f64::max))
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

/// What was measured where, in a line.
fn heading(whole: &Whole) -> Option<String> {
    let first = whole.launches.first()?;
    let cpus: Vec<String> = first.cpus.iter().map(ToString::to_string).collect();
    let where_ = if cpus.len() <= 8 { format!(" on CPU {}", cpus.join(", ")) } else { String::new() };
    let launches = whole.launches.len();
    let bound_ns = whole.launches.iter().map(|l| l.clock_bound_ns).fold(0.0, f64::max);
    let [all, out] = whole.windows;
    Some(format!(
        "{}, {} ranks{where_}, {launches} launch{}; clocks within {}; {:.0} % of windows disturbed, left out",
        first.library,
        first.ranks,
        if launches == 1 { "" } else { "es" },
        human(bound_ns, Unit::Nanoseconds),
        100.0 * out as f64 / all.max(1) as f64
    ))
}

pub(crate) fn datasets(found: &[Found], whole: &Whole) -> Vec<Dataset> {
    let mut all: Vec<Dataset> = operations(found, whole).into_iter().collect();
    all.extend(found.iter().filter_map(costs));
    all.extend(residuals(found));
    all
}

fn us(ns: f64) -> String {
    let us = ns / 1e3;
    let digits = if us < 10.0 { 3 } else { 1 };
    format!("{us:.digits$}")
}

fn at(at: &At) -> String {
    format!("{} [{}, {}]", us(at.ns), us(at.low_ns), us(at.high_ns))
}

/// The cost of the size that is shown, or of the smallest, of a number of ranks.
fn shown(costs: &Costs, ranks: Option<u32>, from: u64, to: u64) -> Option<(&(u32, u64), &At)> {
    let mut of = costs.iter().filter(|((p, d), _)| ranks.is_none_or(|r| r == *p) && (from..=to).contains(d));
    let of: Vec<_> = of.by_ref().collect();
    of.iter()
        .copied()
        .find(|((_, d), _)| *d == SHOWN)
        .or_else(|| of.first().copied().filter(|((_, d), _)| *d == 0))
}

fn text(words: impl Into<String>) -> Cell {
    Cell::Text(words.into())
}

/// A row a law and range of sizes, and why there is no Q or no law.
fn rows(found: &[Found]) -> (Vec<TableRow>, Vec<String>) {
    let mut rows = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
    for f in found {
        let name = f.operation.name.to_owned();
        match &f.laws {
            Ok(laws) => {
                for law in laws {
                    let several = laws.len() > 1;
                    for (i, s) in law.segments.iter().enumerate() {
                        let of =
                            law.only_p.filter(|_| several).map_or(String::new(), |p| format!(", p = {p}"));
                        let name = if i == 0 { format!("{name}{of}") } else { String::new() };
                        rows.push(TableRow { name, cells: cells(f, law, s, &mut reasons) });
                    }
                }
            }
            Err(why) => {
                let mut told = false;
                for ((p, d), cost) in &f.costs {
                    let isolated = f.isolated.get(&(*p, *d)).map_or(String::new(), |i| us(i.ns));
                    let name = if told { String::new() } else { name.clone() };
                    told = true;
                    let several = f.costs.keys().any(|k| k.0 != *p);
                    let sizes = if several { format!("{d}, p = {p}") } else { d.to_string() };
                    rows.push(TableRow {
                        name,
                        cells: vec![
                            text(us(cost.ns)),
                            text(at(cost)),
                            text("-"),
                            text("-"),
                            text(isolated),
                            text(sizes),
                        ],
                    });
                }
                let why = f.refused.clone().unwrap_or_else(|| why.to_string());
                if told {
                    if !matches!(f.operation.sized, Sized::Only(_)) {
                        add(&mut reasons, format!("{name}: {why}"));
                    }
                } else {
                    let none = || Cell::Empty(());
                    rows.push(TableRow {
                        name,
                        cells: vec![text(why), none(), none(), none(), none(), none()],
                    });
                }
            }
        }
    }
    (rows, reasons)
}

fn operations(found: &[Found], whole: &Whole) -> Option<Dataset> {
    let (rows, reasons) = rows(found);
    let columns = ["time (us)", "at 8 B (us)", "off", "Q", "isolated (us)", "bytes"];
    let columns = columns.map(|label| TableColumn::new(label, None)).to_vec();
    let limits = limits(whole).map_or(String::new(), |l| format!(" {l}"));
    let reasons = if reasons.is_empty() { String::new() } else { format!(" {}.", reasons.join("; ")) };
    let caption = format!(
        "Time of each operation one after the other, d in bytes of a rank, p ranks; off: how far the point farthest from the law lies; Q: goodness of fit; isolated: at agreed moments, until the \
         last rank is through.{limits}{reasons}"
    );
    let some = !rows.is_empty();
    some.then(|| {
        Dataset::new(
            "mpi.operations",
            "MPI operations",
            caption,
            Shape::CostTable(CostTable { columns, rows }),
        )
    })
}

fn add(reasons: &mut Vec<String>, why: String) {
    if !reasons.contains(&why) {
        reasons.push(why);
    }
}

fn cells(f: &Found, law: &Law, s: &Segment, reasons: &mut Vec<String>) -> Vec<Cell> {
    let q = match &s.q {
        Ok(q) if *q < 0.001 => "< 0.001".to_owned(),
        Ok(q) => format!("{q:.2}"),
        Err(why) => {
            add(reasons, why.to_string());
            "-".to_owned()
        }
    };
    let cost = shown(&f.costs, law.only_p, s.from_bytes, s.to_bytes).map_or("-".to_owned(), |(_, c)| at(c));
    let alone =
        shown(&f.isolated, law.only_p, s.from_bytes, s.to_bytes).map_or("-".to_owned(), |(_, c)| us(c.ns));
    let bytes = |b: u64| match b {
        b if b > 0 && b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b > 0 && b.is_multiple_of(1 << 10) => format!("{}K", b >> 10),
        b => b.to_string(),
    };
    let is_first = law.segments.first().is_some_and(|first| first.from_bytes == s.from_bytes);
    let is_last = law.segments.last().is_some_and(|last| last.to_bytes == s.to_bytes);
    let sizes = match (is_first, is_last) {
        (true, true) => "all".to_owned(),
        (true, false) => format!("< {}", bytes(s.to_bytes + 1)),
        (false, _) => format!("{} on", bytes(s.from_bytes)),
    };
    let off = format!("{:.0} %", 100.0 * s.misfit);
    vec![text(s.chosen().text()), text(cost), text(off), text(q), text(alone), text(sizes)]
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
        let by_law: Option<Vec<_>> = own.iter().map(|(d, _)| predicted(f, *p, *d)).collect();
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
    let name = f.operation.name;
    let caption = format!(
        "{}, over bytes: measured with intervals, the law and what it predicts with 95 %.",
        f.operation.what
    );
    let shape = Curve {
        x: Axis::log("message", Unit::Bytes),
        y: Axis::log("time", Unit::Nanoseconds),
        rows,
        marks: Vec::new(),
    };
    let some = !shape.rows.is_empty();
    some.then(|| {
        Dataset::new("mpi.cost", name, caption, Shape::Curve(shape))
            .with_params(params([("operation", name.into())]))
    })
}

fn predicted(f: &Found, p: u32, d: u64) -> Option<machmeter_model::laws::Prediction> {
    f.laws.as_ref().ok()?.iter().find_map(|law| law.predict(p, d))
}

fn residuals(found: &[Found]) -> Option<Dataset> {
    let row = |f: &Found| {
        let p = f.costs.keys().next()?.0;
        let off = |((ranks, d), at): (&(u32, u64), &At)| {
            let by_law = predicted(f, p, *d).filter(|l| *ranks == p && *d > 0 && l.value > 0.0)?;
            Some((*d as f64, at.ns / 1e3 / by_law.value - 1.0))
        };
        let (x, y): (Vec<f64>, Vec<f64>) = f.costs.iter().filter_map(off).unzip();
        (x.len() > 1).then(|| CurveRow { name: f.operation.name.to_owned(), x, y })
    };
    let rows: Vec<CurveRow> = found.iter().filter_map(row).collect();
    let some = !rows.is_empty();
    let shape = Curve {
        x: Axis::log("message", Unit::Bytes),
        y: Axis::linear("measured above law", Unit::One),
        rows,
        marks: Vec::new(),
    };
    let caption = "How far costs of two ranks lie above their law, or below: what no sum of terms explains.";
    some.then(|| Dataset::new("mpi.residuals", "Residuals of laws", caption, Shape::Curve(shape)))
}
