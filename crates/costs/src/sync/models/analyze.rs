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
use crate::sync::cost::{NEEDS_TWO, ONE_CPU};
use crate::sync::trips::Priced;
use machmeter_engine::disturbance::placement::{self, levels};

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let levels = levels(rows, PART.name);
    let own = Priced::all(rows, PART.name, levels.as_ref());
    let mut out = Analysis::default();
    out.metrics.extend(own.iter().flat_map(Priced::costs));
    out.datasets.extend(table(&own));
    out.warnings.extend(placement::moved(PART.name, levels.as_ref()));
    for (why, code) in [(NEEDS_TWO, &ONE_CPU), (WITHOUT, &NO_USER_THREADS)] {
        let refused = own.iter().filter(|v| v.row.refused.as_deref() == Some(why)).count();
        if refused > 0 {
            out.warnings.push(code.warning(format!("models: {refused} rows were not measured: {why}")));
        }
    }
    out
}

/// One row for each operation and number of CPUs, one column for each model.
fn table(own: &[Priced<'_>]) -> Option<Dataset> {
    let keys = show::distinct(own.iter().map(|v| (v.row.operation.as_str(), v.row.int("cpus").unwrap_or(1))));
    let find = |operation: &str, cpus, model: &str| {
        own.iter()
            .find(|v| v.row.operation == operation && v.is("model", model) && v.row.int("cpus") == Some(cpus))
    };
    let cell = |operation: &str, cpus, model: &str| match find(operation, cpus, model).map(|v| &v.cost) {
        Some(Cost::Known(k)) => Cell::Number(k.value_ns),
        Some(Cost::Below { bound_ns, .. }) => {
            Cell::Text(format!("< {}", human(*bound_ns, Unit::Nanoseconds)))
        }
        Some(Cost::Unknown { .. }) | None => Cell::Empty(()),
    };
    let models = [PROCESSES, USER_THREADS];
    let rows: Vec<TableRow> = keys
        .into_iter()
        .map(|(operation, cpus)| TableRow {
            name: format!("{}, {cpus} CPU{}", operation.replace('_', " "), if cpus == 1 { "" } else { "s" }),
            cells: models.iter().map(|m| cell(operation, cpus, m)).collect(),
        })
        .collect();
    let caption = "Medians. hand-over: one member sets the word another waits for, half a round trip; on one CPU it takes a switch. \
                  ping pong: one way of a compare-and-swapped word. put and get: between the parts of a symmetric heap, word by \
                  word; fresh: the owner wrote it just before.";
    let names = ["sync.models", "The same work in processes and user threads", caption];
    let known = own.iter().any(|v| v.cost.known().is_some());
    show::table(names, models.map(|m| (m, show::NS)), rows).filter(|_| known)
}
