//! The cells: what is created, on the thread that measures, and operations of two members.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{self, Seats, Team};

use super::PART;
use super::operations::{self, Operation};
#[cfg(feature = "user-threads")]
use super::user_threads;
use crate::sync::Params;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;

/// Time for pairs in a visit, ns.
const VISIT_NS: u64 = 5_000_000;
/// What starting, warming and ending a team takes on busy CPUs, ns.
const TEAM_NS: u64 = 10_000_000;
/// From one look at the placement to the next, at least, ns: a look takes about as long as the shortest visit.
const LOOK_NS: u64 = 50_000_000;

/// Why user threads have no rows.
pub(super) const WITHOUT: &str = "this program was built without user-threads";
/// Why two members have no rows.
pub(super) const ONE_CPU: &str = "needs two CPUs, has 1";

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
    Row::new(PART.name, operation, kind).with("model", model).with("cpus", cpus)
}

pub(super) fn measure(at: &mut PartContext<'_>, _params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    if at.cpus().is_empty() {
        return Err(ProbeError::Cannot("there is no CPU to measure on".to_owned()));
    }
    let mut cells = created(at);
    let setting = Rc::new(Setting {
        clock: at.clock(),
        placement: RefCell::new(PlacementDetector::of(at).map(|w| w.rarely(LOOK_NS))),
    });
    for lane in lanes(at) {
        cells.push(LaneCell { lane, setting: Rc::clone(&setting) });
    }
    at.run(cells);
    Ok(())
}

fn created<'a>(at: &mut PartContext<'_>) -> CellList<'a> {
    let row = |operation, model| row(operation, Kind::Latency, model, 1);
    #[cfg(not(feature = "user-threads"))]
    let benches: Vec<Bench<'_>> = Vec::new();
    #[cfg(feature = "user-threads")]
    let benches = vec![
        Bench::new(row("create_join", USER_THREADS), user_threads::Create::new(false)),
        Bench::new(row("create_join_new_stack", USER_THREADS), user_threads::Create::new(true)),
        Bench::new(row("switch", USER_THREADS).per_turn(2.0), user_threads::Switch::default()),
    ];
    if cfg!(not(feature = "user-threads")) {
        for operation in ["create_join", "create_join_new_stack", "switch"] {
            at.rows.push(row(operation, USER_THREADS).refused(WITHOUT));
        }
    }
    CellList::of_benches(benches, Pace::of(Pace::BATCH_NS, 4))
}

struct Setting {
    clock: HostClock,
    placement: RefCell<Option<PlacementDetector>>,
}

struct LaneCell {
    lane: Lane,
    setting: Rc<Setting>,
}

impl Cell for LaneCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.lane.row)
    }

    fn expected_ns(&self) -> u64 {
        VISIT_NS + TEAM_NS
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let Self { lane, setting } = self;
        let Some(model) = lane.team.filter(|_| lane.row.refused.is_none()) else { return };
        let look = |p: &mut PlacementDetector| p.beside(&lane.seats.cpus, visit.bits);
        let regime_ns = setting.placement.borrow_mut().as_mut().map_or(0.0, look);
        let limit_ns = (3 * VISIT_NS + TEAM_NS).min(visit.left_ns());
        let start_ns = visit.sampler.start_ns;
        let team = TeamVisit::new(model, &lane.seats, &setting.clock, start_ns, limit_ns, visit.bits);
        // A lost visit is lost, and the next may find the CPUs free.
        if let Err(why) = operations::visit(
            &team,
            lane.operation,
            Pace::SHARED_BATCH_NS,
            VISIT_NS,
            &mut lane.row,
            regime_ns,
        ) {
            lane.row.rejected.failed += 1;
            lane.lost = Some(why);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![self.lane.close()]
    }
}

struct Lane {
    operation: Operation,
    team: Option<&'static dyn Team>,
    seats: Seats,
    row: Row,
    /// Why the last visit that was lost was lost.
    lost: Option<String>,
}

fn lanes(at: &PartContext<'_>) -> Vec<Lane> {
    let all = at.cpus();
    OF_TWO
        .into_iter()
        .map(|(operation, model, cpus)| {
            let mut row =
                row(&operation.name(), operation.kind(), model, cpus).per_turn(operation.per_turn());
            let team = team::named(model);
            let seats = match (cpus, &all[..]) {
                (1, [one, ..]) => vec![*one; 2],
                (_, [one, two, ..]) => vec![*one, *two],
                _ => Vec::new(),
            };
            if team.is_none() {
                row.refused = Some(WITHOUT.to_owned());
            } else if seats.is_empty() {
                row.refused = Some(ONE_CPU.to_owned());
            }
            Lane { operation, team, seats: Seats { cpus: seats, policy: at.policy }, row, lost: None }
        })
        .collect()
}

impl Lane {
    fn close(mut self) -> Row {
        if self.row.pairs.is_empty() && self.row.refused.is_none() {
            self.row.refused = self.lost;
        }
        self.row.reached()
    }
}
