//! Costs by model: metrics, one table, what to read first, and whether the models agree.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Summary, SummaryLine, Warning};
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Params as Conditions, Shape};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Cost, Row, Rows};

use super::measure::{ONE_CPU, PROCESSES, THREADS, USER_THREADS, WITHOUT};
use super::{DISAGREE, NO_USER_THREADS, PART};
use crate::placement::{self, levels};
use crate::sync::Params;
use crate::sync::cost::{self, COST};
use crate::sync::trips::Priced;

/// Ratio of two models from which on they disagree.
const DISAGREEMENT: f64 = 1.25;

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    // Models take turns, so that each may have seen other placements than the next: they are compared at one.
    let levels = levels(rows, PART.name);
    let own = Priced::all(rows, PART.name, levels.as_ref());
    let mut out = Analysis::default();
    for v in &own {
        let mut conditions: Conditions = v.row.params.clone();
        conditions.insert("operation".to_owned(), v.row.operation.as_str().into());
        conditions.insert("kind".to_owned(), v.row.kind.name().into());
        out.metrics.extend(v.metrics(&COST, &conditions));
    }
    out.datasets.extend(table(&own));
    out.summary = Summary {
        lines: vec![SummaryLine { section: "CORES".to_owned(), lines: lines(&own) }],
        ..Summary::default()
    };
    out.warnings.extend(placement::moved(PART.name, levels.as_ref()));
    out.warnings.extend(disagreement(&own));
    for (why, code) in [(ONE_CPU, &cost::ONE_CPU), (WITHOUT, &NO_USER_THREADS)] {
        let refused = own.iter().filter(|v| v.row.refused.as_deref() == Some(why)).count();
        if refused > 0 {
            out.warnings.push(code.warning(format!("models: {refused} rows were not measured: {why}")));
        }
    }
    out
}

fn find<'c>(own: &'c [Priced<'_>], operation: &str, model: &str, cpus: i64) -> Option<&'c Cost> {
    let is = |r: &Row| r.operation == operation && r.text("model") == model && r.int("cpus") == Some(cpus);
    own.iter().find(|v| is(v.row)).map(|v| &v.cost)
}

/// One row for each operation and number of CPUs, one column for each model.
fn table(own: &[Priced<'_>]) -> Option<Dataset> {
    let mut keys: Vec<(&str, i64)> = Vec::new();
    for Priced { row, .. } in own {
        let key = (row.operation.as_str(), row.int("cpus").unwrap_or(1));
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    let cell = |operation: &str, cpus, model: &str| match find(own, operation, model, cpus) {
        Some(Cost::Known(k)) => Cell::Number(k.value_ns),
        Some(Cost::Below { bound_ns, .. }) => {
            Cell::Text(format!("< {}", human(*bound_ns, Unit::Nanoseconds)))
        }
        Some(Cost::Unknown { .. }) | None => Cell::Empty(()),
    };
    let models = [THREADS, PROCESSES, USER_THREADS];
    let rows: Vec<TableRow> = keys
        .into_iter()
        .map(|(operation, cpus)| TableRow {
            name: format!("{}, {cpus} CPU{}", operation.replace('_', " "), if cpus == 1 { "" } else { "s" }),
            cells: models.iter().map(|m| cell(operation, cpus, m)).collect(),
        })
        .collect();
    let column = |m: &&str| TableColumn::new((*m).to_owned(), Unit::Nanoseconds);
    own.iter().any(|v| v.cost.known().is_some()).then(|| Dataset::new("sync.models", "The same work in three programming models", "Medians. hand over: one member sets the word another waits for, half a round trip; on one CPU it takes a switch. \
                  ping pong: one way of a compare-and-swapped word. put and get: between the parts of a symmetric heap, word by \
                  word; fresh: the owner wrote it just before.", Shape::CostTable(CostTable { columns: models.iter().map(column).collect(), rows })))
}

fn lines(own: &[Priced<'_>]) -> Vec<String> {
    let figure = |operation, cpus| {
        let one = |(model, name): &(&str, &str)| {
            let ns = find(own, operation, model, cpus)?.value_ns()?;
            Some(format!("{name} {}", human(ns, Unit::Nanoseconds)))
        };
        let names = [(THREADS, "thread"), (PROCESSES, "process"), (USER_THREADS, "user thread")];
        names.iter().filter_map(one).collect::<Vec<_>>().join(", ")
    };
    [
        ("create and join", figure("create_join", 1)),
        ("hand over on one CPU", figure("hand_over", 1)),
        ("barrier of two", figure("barrier", 2)),
    ]
    .into_iter()
    .filter(|(_, figures)| !figures.is_empty())
    .map(|(what, figures)| format!("{what}: {figures}"))
    .collect()
}

fn disagreement(own: &[Priced<'_>]) -> Option<Warning> {
    let a = find(own, "ping_pong", THREADS, 2)?.known()?;
    let b = find(own, "ping_pong", PROCESSES, 2)?.known()?;
    let ratio = (a.value_ns / b.value_ns).max(b.value_ns / a.value_ns);
    let apart = a.low_ns > b.high_ns || b.low_ns > a.high_ns;
    let ns = |x| human(x, Unit::Nanoseconds);
    (apart && ratio > DISAGREEMENT).then(|| {
        let text = format!(
            "a compare-and-swapped word takes {} between threads and {} between processes",
            ns(a.value_ns),
            ns(b.value_ns)
        );
        DISAGREE.warning(text)
    })
}
