//! From rows to metrics and a table. Pure.

use machmeter_data::Dataset;
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, TableRow};
use machmeter_engine::Analysis;
use machmeter_engine::cost::Rows;

use super::measure::Wake;
use super::{AWAKE, NAME};
use crate::show;
use crate::sync::Params;
use crate::sync::trips::Priced;

const COLUMNS: [(Wake, &str); 4] = [
    (Wake::Running, "looking"),
    (Wake::SameCpu, "same CPU"),
    (Wake::Busy, "busy CPU"),
    (Wake::Idle, "idle CPU"),
];

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let (views, mut warnings) = Priced::all(rows, NAME, |n| {
        format!("{n} rows of wake-ups were not measured: they need two CPUs, have 1")
    });
    warnings.extend(awake(&views));
    let metrics = views.iter().flat_map(Priced::costs).collect();
    Analysis { metrics, datasets: table(&views).into_iter().collect(), warnings, ..Analysis::default() }
}

fn table(views: &[Priced<'_>]) -> Option<Dataset> {
    let woken = views.iter().filter(|v| v.row.operation.starts_with("wake_"));
    let names = show::distinct(woken.map(Priced::name));
    let cell = |name: &str, wake: Wake| {
        let found = views.iter().find(|v| v.name() == name && v.is("wake", wake.name()));
        found.map_or(Cell::Empty(()), Priced::cell)
    };
    let row = |name: String| {
        let cells = COLUMNS.iter().map(|(wake, _)| cell(&name, *wake)).collect();
        TableRow { name, cells }
    };
    let mut rows: Vec<TableRow> = names.into_iter().map(row).collect();
    for v in views.iter().filter(|v| v.row.operation == "broadcast_condvar" && v.is("model", "threads")) {
        let mut cells = vec![Cell::Empty(()); COLUMNS.len()];
        cells[COLUMNS.len() - 1] = v.cell();
        rows.push(TableRow { name: format!("broadcast to {} until all are awake", v.cpus() - 1), cells });
    }
    let caption = "Half a round trip of two threads that wake each other, median of trips; where trips fall into modes, each with its share. Same CPU: the switch from one to the other. Busy: \
                  another thread runs where the woken one has to. Looking: no thread sleeps.";
    let columns = COLUMNS.iter().map(|(_, label)| (*label, show::NS));
    show::table(["sync.wakeups", "Wake-ups, one way", caption], columns, rows)
}

/// Says of which rows the partner did not sleep in most samples.
fn awake(views: &[Priced<'_>]) -> Option<Warning> {
    let awake: Vec<String> = views
        .iter()
        .filter_map(|v| {
            let awake = v.row.rejected.partner;
            let tried = v.row.pairs.len() as u64 + v.row.rejected.total();
            (2 * awake > tried)
                .then(|| format!("{} {} ({awake} of {tried})", v.row.operation, v.row.text("wake")))
        })
        .collect();
    let text = || {
        format!(
            "wake-ups were not measured: the partner thread did not go to sleep in most samples of {}",
            awake.join(", ")
        )
    };
    (!awake.is_empty()).then(|| AWAKE.warning(text()))
}
