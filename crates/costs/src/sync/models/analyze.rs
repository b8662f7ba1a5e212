//! Costs by model: metrics, one table, what to read first, and whether the models agree.

use machmeter_data::Dataset;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{Cell, TableRow};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Cost, Rows};

use super::measure::{PROCESSES, USER_THREADS, WITHOUT};
use super::{NO_USER_THREADS, PART};
use crate::show;
use crate::sync::Params;
use crate::sync::cost::NEEDS_TWO;
use crate::sync::trips::Priced;

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let text = |n: usize, why: &str| format!("models: {n} rows were not measured: {why}");
    let (own, warnings) = Priced::all(rows, PART.name, |n| text(n, NEEDS_TWO));
    let metrics = own.iter().flat_map(Priced::costs).collect();
    let mut out = Analysis { metrics, warnings, ..Analysis::default() };
    out.datasets.extend(table(&own));
    let without = own.iter().filter(|v| v.row.refused.as_deref() == Some(WITHOUT)).count();
    out.warnings.extend((without > 0).then(|| NO_USER_THREADS.warning(text(without, WITHOUT))));
    out
}

/// One row for each operation and number of CPUs, one column for each model.
fn table(own: &[Priced<'_>]) -> Option<Dataset> {
    let keys = show::distinct(own.iter().map(|v| (v.row.operation.as_str(), v.cpus())));
    let cell = |operation: &str, cpus, model: &str| {
        let of = |v: &&Priced<'_>| v.row.operation == operation && v.is("model", model) && v.cpus() == cpus;
        match own.iter().find(of).map(|v| &v.cost) {
            Some(Cost::Known(k)) => Cell::Number(k.value_ns),
            Some(Cost::Below { bound_ns, .. }) => {
                Cell::Text(format!("< {}", human(*bound_ns, Unit::Nanoseconds)))
            }
            Some(Cost::Unknown { .. }) | None => Cell::Empty(()),
        }
    };
    let models = [PROCESSES, USER_THREADS];
    let rows: Vec<TableRow> = keys
        .into_iter()
        .map(|(operation, cpus)| TableRow {
            name: format!("{}, {cpus} CPU{}", operation.replace('_', " "), if cpus == 1 { "" } else { "s" }),
            cells: models.iter().map(|m| cell(operation, cpus, m)).collect(),
        })
        .collect();
    let caption = "Hand-over: one member sets the word another waits for, half a round trip; on one CPU it takes a switch. \
                  ping pong: one way of a compare-and-swapped word. put and get: between the parts of a symmetric heap, word by \
                  word; fresh: the owner wrote it just before.";
    let names = ["sync.models", "The same work in processes and user threads", caption];
    let known = own.iter().any(|v| v.cost.known().is_some());
    show::table(names, models.map(|m| (m, show::NS)), rows).filter(|_| known)
}
