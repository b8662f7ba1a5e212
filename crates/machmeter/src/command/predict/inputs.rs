//! What the options of a prediction mean: a traced run, costs of a machine.

use std::path::Path;

use machmeter_data::trace::EVENTS;
use machmeter_data::{Record, Table};

use crate::command::report;
use crate::failure::Failure;

/// A run with a trace, and its tables.
pub(super) fn traced(run: &Path) -> Result<(Record, Vec<Table>), Failure> {
    let (record, path) = report::located(run)?;
    let tables = report::tables(&record, &path)?;
    if tables.iter().any(|t| t.name == EVENTS) {
        return Ok((record, tables));
    }
    let help = if record.metric("mpi.calls", &[("operation", "all")]).is_some() {
        "the run has too many calls for its table: machmeter trace --raw all keeps them"
    } else {
        "machmeter trace -- mpirun ... records one"
    };
    Err(Failure::usage(format!("{}: no trace of an MPI program", run.display())).help(help))
}
