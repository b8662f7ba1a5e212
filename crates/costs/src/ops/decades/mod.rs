//! Twelve operations by the decade of their cost (Howell, "Microbenchmarking", 1998; `docs/ops.md`). Reads and writes overlap.

mod measure;

#[cfg(test)]
mod tests;

use machmeter_data::metric::key_of;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Axis, DecadeRow, Decades, Shape};
use machmeter_data::{Dataset, Unit};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Kind, Row, Rows};

use super::Params;
use super::cost::{COST, NO_FIGURE, NO_FILES};
use super::{arithmetic, processes, table};
use machmeter_engine::part::Part;
pub(super) use measure::with_all;

pub(super) const PART: Part<Params> = Part::of("decades", 25, measure::measure, analyze);

/// Operations of Howell's table in its order: the id of the row, and the name as it prints it.
pub(super) const OPERATIONS: [(&str, &str); 12] = [
    ("fopen", "fopen"),
    ("fprintf", "fprintf (1 char)"),
    ("printf", "printf (string)"),
    ("fclose", "fclose"),
    ("read_main_8000", "rd main mem 8000"),
    ("read_cache_8000", "rd cache mem 8000"),
    ("write_main_8000", "wr main mem 8000"),
    ("write_cache_8000", "wr cache mem 8000"),
    ("thr_create", "thr_create"),
    ("daxpy100", "daxpy100"),
    ("daxpy1000", "daxpy1000"),
    ("daxpy10000", "daxpy10000"),
];

const ON_FILES: [&str; 4] = ["fopen", "fprintf", "printf", "fclose"];

/// Rows of other parts that join the ladder, where they were measured: the id, and the name shown.
const ALONGSIDE: [(&str, &str); 4] = [
    ("getppid", "system call"),
    ("page_fault_4k", "page fault"),
    ("fork_exit_wait", "fork"),
    ("yield_two_threads", "switch threads"),
];

/// The part that prices an operation elsewhere, and its row there; measured here only where that part is not.
fn elsewhere(id: &str) -> Option<(&'static str, Row)> {
    if id == "thr_create" {
        let row = Row::new(PART.name, "thread_create_join", Kind::Latency);
        return Some((processes::PART.name, row.with("stack", "kept")));
    }
    let elements: usize = id.strip_prefix("daxpy")?.parse().ok()?;
    let row = Row::new(PART.name, "daxpy", Kind::Throughput);
    Some((arithmetic::PART.name, row.with("elements", elements).with("code", "compiled")))
}

fn row_of<'r>(rows: &'r Rows, id: &str) -> Option<&'r Row> {
    match elsewhere(id) {
        Some((_, key)) => rows.rows.iter().find(|r| r.operation == key.operation && r.params == key.params),
        None => rows.part(PART.name).find(|r| r.operation == id),
    }
}

fn analyze(params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let priced = table::priced(rows, PART.name);
    let code_of = |r: &Row| {
        let on_files = ON_FILES.contains(&r.operation.as_str()) && r.refused.is_some();
        if on_files { NO_FILES } else { NO_FIGURE }
    };
    let mut out = Analysis {
        metrics: priced.iter().flat_map(table::Priced::metrics).collect(),
        warnings: table::warnings(&priced, &[NO_FILES, NO_FIGURE], code_of),
        ..Analysis::default()
    };
    let rung = |name: &str, row: &Row| {
        let cost = rows.cost(row);
        let k = cost.known()?;
        let metric = Some(key_of(COST.id, &table::key(row)));
        Some(DecadeRow {
            name: name.to_owned(),
            metric,
            value: k.value_ns,
            low: Some(k.low_ns),
            high: Some(k.high_ns),
        })
    };
    let shown = |(id, name): &(&str, &str)| rung(name, row_of(rows, id)?);
    let mut ladder: Vec<DecadeRow> = OPERATIONS.iter().filter_map(shown).collect();
    if ladder.is_empty() {
        return out;
    }
    if params.truncate_decades {
        let section = "OPS".to_owned();
        out.summary.lines.push(SummaryLine { section, lines: truncated(&ladder) });
    }
    for (id, name) in ALONGSIDE {
        let found = rows.rows.iter().find(|r| r.part != PART.name && r.operation == id);
        ladder.extend(found.and_then(|r| rung(name, r)));
    }
    let (started, spawn) = table::spawn(rows);
    ladder.extend(spawn.and_then(|row| rung(started, row)));
    let add = arithmetic::addition(rows);
    let (low, high) = add.ci.as_ref().map(|ci| (ci.low, ci.high)).unzip();
    let (name, metric) = ("add".to_owned(), Some(add.key()));
    ladder.extend(add.value.map(|value| DecadeRow { name, metric, value, low, high }));
    out.datasets.push(Dataset::new("ops.ladder", "Ten to the power minus", "What one operation costs, by the decade of its seconds; ~ marks what lies on the edge between two decades. \
                  Reads and writes are per word, one line apart, as fast as the machine overlaps them.", Shape::Decades(Decades { value: Axis::log("cost", Unit::Nanoseconds), rows: ladder })));
    out
}

/// As in 1998: the logarithm cut off towards zero, as its two tables show (328, 184: -6; 69, 11: -7).
fn truncated(rows: &[DecadeRow]) -> Vec<String> {
    const HEADING: &str = "     Operation       : Order of magnitude (log10(time in secs))";
    let cut = |r: &DecadeRow| Some(r.log10(Unit::Nanoseconds)?.trunc() as i32);
    let mut lines = vec![HEADING.to_owned(), "-".repeat(41)];
    lines.extend(rows.iter().filter_map(|r| Some(format!("{:>20} : {}", r.name, cut(r)?))));
    lines
}
