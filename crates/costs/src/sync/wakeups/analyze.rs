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
use crate::sync::cost::one_cpu;
use crate::sync::trips::Priced;
use machmeter_engine::disturbance::placement::{self, levels};

const COLUMNS: [(Wake, &str); 4] = [
    (Wake::Running, "looking"),
    (Wake::SameCpu, "same CPU"),
    (Wake::Busy, "busy CPU"),
    (Wake::Idle, "idle CPU"),
];

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let levels = levels(rows, NAME);
    let views = Priced::all(rows, NAME, levels.as_ref());
    Analysis {
        metrics: views.iter().flat_map(Priced::costs).collect(),
        datasets: table(&views).into_iter().collect(),
        warnings: warnings(&views).into_iter().chain(placement::moved(NAME, levels.as_ref())).collect(),
        ..Analysis::default()
    }
}

fn table(views: &[Priced<'_>]) -> Option<Dataset> {
    let woken = views.iter().filter(|v| v.row.operation.starts_with("wake_"));
    let names = show::distinct(woken.map(|v| (v.row.operation.clone(), v.row.text("model"))));
    let cell = |name: &(String, String), wake: Wake| {
        let of = |v: &&Priced<'_>| {
            v.row.operation == name.0 && v.is("model", &name.1) && v.is("wake", wake.name())
        };
        views.iter().find(of).map_or(Cell::Empty(()), Priced::cell)
    };
    let mut rows: Vec<TableRow> = names
        .iter()
        .map(|name| TableRow {
            name: if name.1 == "threads" { name.0.clone() } else { format!("{} ({})", name.0, name.1) },
            cells: COLUMNS.iter().map(|(wake, _)| cell(name, *wake)).collect(),
        })
        .collect();
    for v in views.iter().filter(|v| v.row.operation == "broadcast_condvar" && v.is("model", "threads")) {
        let mut cells = vec![Cell::Empty(()); COLUMNS.len()];
        cells[COLUMNS.len() - 1] = v.cell();
        let others = v.row.int("cpus").unwrap_or(2) - 1;
        rows.push(TableRow { name: format!("broadcast to {others} until all are awake"), cells });
    }
    let caption = "Half a round trip of two threads that wake each other, median of trips; where trips fall into modes, each with its share. Same CPU: the switch from one to the other. Busy: \
                  another thread runs where the woken one has to. Looking: nobody sleeps.";
    let columns = COLUMNS.iter().map(|(_, label)| (*label, show::NS));
    show::table(["sync.wakeups", "Wake-ups, one way", caption], columns, rows)
}

fn warnings(views: &[Priced<'_>]) -> Vec<Warning> {
    let text = |n| format!("{n} rows of wake-ups need two CPUs.");
    let mut out = Vec::from_iter(one_cpu(views.iter().map(|v| v.row), text));
    let awake: Vec<String> = views
        .iter()
        .filter_map(|v| {
            let awake = v.row.rejected.partner;
            let tried = v.row.pairs.len() as u64 + v.row.rejected.total();
            (2 * awake > tried)
                .then(|| format!("{} {} ({awake} of {tried})", v.row.operation, v.row.text("wake")))
        })
        .collect();
    if !awake.is_empty() {
        out.push(
            AWAKE.warning(format!("The partner did not sleep in most samples of {}.", awake.join(", "))),
        );
    }
    out
}
