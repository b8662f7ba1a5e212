//! Records one cell of interbench with the recorder of the interactive probe.

use machmeter_engine::Host;
use machmeter_interactive::run::{CellPlan, record_cells};
use machmeter_interactive::samples::Cell;

use super::order::CellOrder;
use crate::{Failure, Result, output};

/// Time to start and stop a task and its load, ns; only for the announcement.
const BESIDE_NS: u64 = 700_000_000;

/// Approximate time of a cell, ns.
pub(super) fn cell_ns(seconds: u64) -> u64 {
    seconds * 1_000_000_000 + BESIDE_NS
}

/// Records one cell: one segment of the given length, without a time limit. Caveats of loads and problems go to stderr, each once; `told` collects them.
/// Errors: the task or the load is not available.
pub(super) fn record(name: &str, host: &Host<'_>, order: &CellOrder, told: &mut Vec<String>) -> Result<Cell> {
    let plan = CellPlan {
        tasks: vec![(order.task.to_lowercase(), order.stream.clone())],
        // Marked as not named by the user: a load that is not available here loses its rows, not the run.
        loads: vec![(order.load_request.clone(), false)],
        attributes: order.task_attributes.clone(),
        segment_ns: order.segment_ns,
        rounds: 1,
        within_ns: None,
    };
    let samples = record_cells(host, &plan, &mut |_, _| {})?;
    let mut say = |text: String| {
        if !told.contains(&text) {
            output::say(&format!("{name}: {text}"));
            told.push(text);
        }
    };
    for note in &samples.loads {
        for caveat in &note.caveats {
            say(format!("load {}: {caveat}", note.name));
        }
    }
    let failure = samples.loads.iter().find_map(|l| l.failure.clone());
    let Some(cell) = samples.cells.into_iter().next() else {
        return Err(Failure::cannot(failure.unwrap_or_else(|| "nothing was recorded".to_owned())));
    };
    for trouble in cell.segments.iter().filter_map(|s| s.trouble.as_deref()) {
        say(format!("{} under {}: {trouble}", order.task, order.load));
    }
    Ok(cell)
}
