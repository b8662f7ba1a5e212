//! One cell of interbench by the recorder of the interactive probe.

use machmeter_engine::Host;
use machmeter_interactive::run::{CellPlan, record_cells};
use machmeter_interactive::samples::Cell;

use super::order::CellOrder;
use crate::{Failure, Result, output};

/// Starting and stopping a task and its load, ns; only for the announcement.
const BESIDE_NS: u64 = 700_000_000;

/// About how long a cell takes, ns.
pub(super) fn cell_ns(seconds: u64) -> u64 {
    seconds * 1_000_000_000 + BESIDE_NS
}

/// Records one cell: one segment of the length asked for, no budget that could shorten it. Caveats of loads and troubles are
/// told on stderr, each once (`told`).
/// Errors: when the task or the load cannot be had.
pub(super) fn record(name: &str, host: &Host<'_>, order: &CellOrder, told: &mut Vec<String>) -> Result<Cell> {
    let plan = CellPlan {
        tasks: vec![(order.task.to_lowercase(), order.stream.clone())],
        // Not by name: a load that cannot be had here costs its rows, not the run.
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
