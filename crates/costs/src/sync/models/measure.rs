//! The cells: user threads that the measuring thread creates, and operations of two members.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::{Batches, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{self, Team, threads::Threads};
use machmeter_loops::sync::models::Operation;
#[cfg(feature = "user-threads")]
use machmeter_loops::sync::models::user_threads;

use super::PART;
use crate::sync::Params;
use crate::sync::cost::NEEDS_TWO;
use crate::sync::jobs::{Job, Setting, Work};
use crate::sync::trips::TRIPS;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;

/// Time for pairs in a visit, ns.
const VISIT_NS: u64 = 5_000_000;
/// What starting, warming and ending a team takes on busy CPUs, ns.
const TEAM_NS: u64 = 10_000_000;
/// From one look at the placement to the next, at least, ns: a look takes about as long as the shortest visit.
const LOOK_NS: u64 = 50_000_000;
/// Pairs of a visit, at most.
const PAIRS_MAX: usize = 200;

pub(super) const WITHOUT: &str = "this program was built without user-threads";

pub(super) const THREADS: &str = "threads";
pub(super) const PROCESSES: &str = "processes";
pub(super) const USER_THREADS: &str = "user-threads";

/// Operations of two members: model and CPUs. Those of two threads: transfer, locks, and `machmeter ops`.
pub(super) const OF_TWO: [(Operation, &str, usize); 13] = [
    (Operation::PingPong, PROCESSES, 2),
    (Operation::HandOver, PROCESSES, 1),
    (Operation::HandOver, USER_THREADS, 1),
    (Operation::Barrier, PROCESSES, 2),
    (Operation::Barrier, USER_THREADS, 2),
    (Operation::HandOver, PROCESSES, 2),
    (Operation::LockUnlock, PROCESSES, 2),
    (Operation::Put { bytes: 8 }, PROCESSES, 2),
    (Operation::Get { bytes: 8 }, PROCESSES, 2),
    (Operation::GetFresh, PROCESSES, 2),
    (Operation::Put { bytes: 2_048 }, PROCESSES, 2),
    (Operation::Put { bytes: 32_768 }, PROCESSES, 2),
    (Operation::PingPong, USER_THREADS, 2),
];

pub(super) fn row(operation: &str, kind: Kind, model: &str, cpus: usize) -> Row {
    Row::new(PART.name, operation, kind).of_batches().with("model", model).with("cpus", cpus)
}

pub(super) fn measure(at: &mut PartContext<'_>, _params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    if at.cpus().is_empty() {
        return Err(ProbeError::Cannot("there is no CPU to measure on".to_owned()));
    }
    let mut cells = created(at);
    let placement = PlacementDetector::of(at).map(|p| p.rarely(LOOK_NS));
    let setting = Setting::new(at, placement, 3 * VISIT_NS + TEAM_NS);
    for (model, job) in jobs(&at.cpus()) {
        cells.push(setting.cell(model, job));
    }
    at.run(cells);
    Ok(())
}

fn created<'a>(at: &mut PartContext<'_>) -> CellList<'a> {
    let row = |operation, model| row(operation, Kind::Latency, model, 1);
    #[cfg(feature = "user-threads")]
    let benches = vec![
        Bench::new(row("create_join", USER_THREADS), user_threads::Create::new(false)),
        Bench::new(row("create_join_new_stack", USER_THREADS), user_threads::Create::new(true)),
        Bench::new(row("switch", USER_THREADS).per_turn(2.0), user_threads::Switch::default()),
    ];
    #[cfg(not(feature = "user-threads"))]
    let benches: Vec<Bench<'_>> = Vec::new();
    if cfg!(not(feature = "user-threads")) {
        let names = ["create_join", "create_join_new_stack", "switch"];
        at.rows.extend(names.map(|operation| row(operation, USER_THREADS).refused(WITHOUT)));
    }
    CellList::of_benches(benches, Pace::of(Pace::BATCH_NS, 2))
}

impl Work for Operation {
    const TRIES_AGAIN: bool = true;

    fn expected_ns(&self) -> u64 {
        VISIT_NS + TEAM_NS
    }

    fn perform(job: &mut Job<Self>, team: &TeamVisit<'_>, regime_ns: f64) -> Result<(), String> {
        let row = &mut job.row;
        visit(team, job.what, Pace::SHARED_BATCH_NS, VISIT_NS, row, regime_ns)
            .inspect_err(|_| row.rejected.failed += 1)
    }
}

/// The kind of an operation: puts and gets overlap, all others wait for the partner.
pub(super) fn kind(operation: Operation) -> Kind {
    match operation {
        Operation::Put { .. } | Operation::Get { .. } => Kind::Throughput,
        _ => Kind::Latency,
    }
}

/// One visit of two members; pairs go to `row`, with the line transfer time `regime_ns` of the placement.
pub(super) fn visit(
    team: &TeamVisit<'_>,
    operation: Operation,
    batch_ns: f64,
    pairs_ns: u64,
    row: &mut Row,
    regime_ns: f64,
) -> Result<(), String> {
    let memory = Operation::memory().map_err(|e| e.to_string())?;
    let joint = operation.on(&memory).ok_or("the heap is too small")?;
    let turns = operation.fixed_turns().map_or(Turns::of(batch_ns), Turns::fixed);
    // Members that share a CPU are switched on purpose, and the kernel counts these switches as involuntary.
    let one_cpu = team.seats.cpus.windows(2).any(|two| two[0] == two[1]);
    let cell = TeamCell {
        rule: if one_cpu { Rule::Any } else { Rule::Undisturbed },
        samples_ns: pairs_ns,
        ..TeamCell::new(&*joint, 2, turns, PAIRS_MAX)
    };
    // A switch by the kernel takes microseconds, and the scheduler may run another thread in between.
    if one_cpu && team.team.model() != USER_THREADS {
        let trips = TeamCell { batches: Batches::Trips(TRIPS), samples: 1, ..cell };
        return team.take_trips(trips, row, regime_ns);
    }
    team.take_row(cell, row, regime_ns).map(drop)
}

fn jobs(all: &[usize]) -> Vec<(&'static dyn Team, Job<Operation>)> {
    let job = |(operation, model, cpus): (Operation, &str, usize)| {
        let mut row = row(&operation.name(), kind(operation), model, cpus).per_turn(operation.per_turn());
        let team = team::named(model);
        let cpus = match (cpus, all) {
            (1, [one, ..]) => vec![*one; 2],
            (_, [one, two, ..]) => vec![*one, *two],
            _ => Vec::new(),
        };
        if team.is_none() {
            row.refused = Some(WITHOUT.to_owned());
        } else if cpus.is_empty() {
            row.refused = Some(NEEDS_TWO.to_owned());
        }
        (team.unwrap_or(&Threads), Job { row, what: operation, cpus })
    };
    OF_TWO.map(job).into()
}
