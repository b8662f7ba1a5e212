//! Rows and rounds: what is created first, on the thread that measures; then the operations of two members, in rounds over all
//! rows in random order.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::rounds::Rounds;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::TeamVisit;
use machmeter_engine::team::{self, Seats, Team};
use machmeter_sys::thread::monotonic_ns;

use super::PART;
use super::operations::{Operation, visit};
#[cfg(feature = "user-threads")]
use super::user_threads;
use crate::placement::Watch;
use crate::sync::Params;
use machmeter_engine::part::At;

/// Share of the time for what is created.
const CREATE_SHARE: f64 = 0.3;
/// Rounds over the operations of two, at least, where time allows.
const ROUNDS: u64 = 4;
/// Shortest and longest time for pairs in a visit, ns.
const VISIT_NS: (u64, u64) = (2_000_000, 20_000_000);
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

/// Operations of two members: model and CPUs, the most important first.
pub(super) const OF_TWO: [(Operation, &str, usize); 17] = [
    (Operation::PingPong, THREADS, 2),
    (Operation::PingPong, PROCESSES, 2),
    (Operation::HandOver, THREADS, 1),
    (Operation::HandOver, PROCESSES, 1),
    (Operation::HandOver, USER_THREADS, 1),
    (Operation::Barrier, THREADS, 2),
    (Operation::Barrier, PROCESSES, 2),
    (Operation::Barrier, USER_THREADS, 2),
    (Operation::HandOver, THREADS, 2),
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

pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    if at.cpus().is_empty() {
        return Err(ProbeError::Cannot("there is no CPU to measure on".to_owned()));
    }
    let until_ns = monotonic_ns() + (at.left_ns() as f64 * CREATE_SHARE) as u64;
    let mut rows = created(at, until_ns);
    rows.extend(of_two(at));
    Ok(rows)
}

fn created(at: &mut At<'_, '_>, until_ns: u64) -> Vec<Row> {
    let row = |operation, model| row(operation, Kind::Latency, model, 1);
    #[cfg(not(feature = "user-threads"))]
    let mut benches: [Bench<'_>; 0] = [];
    #[cfg(feature = "user-threads")]
    let mut benches = [
        Bench::new(row("create_join", USER_THREADS), user_threads::Create::new(false)),
        Bench::new(row("create_join_new_stack", USER_THREADS), user_threads::Create::new(true)),
        Bench::new(row("switch", USER_THREADS).per_turn(2.0), user_threads::Switch::default()),
    ];
    let pace = Pace { settle_ns: 0, batch_ns: Pace::BATCH_NS, pairs_per_visit: 4, rounds: 30, until_ns };
    at.sampler.interleave(&mut benches, &pace);
    let mut rows: Vec<Row> = benches.into_iter().map(|b| b.row).collect();
    if cfg!(not(feature = "user-threads")) {
        for operation in ["create_join", "create_join_new_stack", "switch"] {
            let mut row = row(operation, USER_THREADS);
            row.refused = Some(WITHOUT.to_owned());
            rows.push(row);
        }
    }
    rows
}

struct Lane {
    operation: Operation,
    team: Option<&'static dyn Team>,
    seats: Seats,
    row: Row,
    /// Why the last visit that was lost was lost.
    lost: Option<String>,
}

fn lanes(at: &At<'_, '_>) -> Vec<Lane> {
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

fn of_two(at: &mut At<'_, '_>) -> Vec<Row> {
    let mut lanes = lanes(at);
    let open = lanes.iter().filter(|l| l.row.refused.is_none()).count() as u64;
    let mut placement = Watch::of(at).map(|w| w.rarely(LOOK_NS));
    if open == 0 {
        return lanes.into_iter().map(Lane::close).collect();
    }
    let (start_ns, clock) = (monotonic_ns(), at.clock());
    let rounds = Rounds { most: usize::MAX, ..Rounds::of(at, 0x6d6f_6465_6c73, TEAM_NS) };
    rounds.run(lanes.len(), |turn| {
        let lane = &mut lanes[turn.index];
        let Some(model) = lane.team.filter(|_| lane.row.refused.is_none()) else { return };
        let regime_ns = placement.as_mut().map_or(0.0, |p| p.beside(&lane.seats.cpus, turn.bits));
        let left_ns = at.left_ns();
        let share_ns = left_ns / (open * ROUNDS.saturating_sub(turn.round as u64).max(1));
        let visit_ns = share_ns.saturating_sub(TEAM_NS / 5).clamp(VISIT_NS.0, VISIT_NS.1);
        let limit_ns = (3 * visit_ns + TEAM_NS).min(left_ns);
        let team = TeamVisit::new(model, &lane.seats, &clock, start_ns, limit_ns, turn.bits);
        // A lost visit is lost, and the next may find the CPUs free.
        if let Err(why) =
            visit(&team, lane.operation, Pace::SHARED_BATCH_NS, visit_ns, &mut lane.row, regime_ns)
        {
            lane.row.rejected.failed += 1;
            lane.lost = Some(why);
        }
    });
    lanes.into_iter().map(Lane::close).collect()
}

impl Lane {
    fn close(mut self) -> Row {
        if self.row.pairs.is_empty() && self.row.refused.is_none() {
            self.row.refused = self.lost;
        }
        self.row.reached()
    }
}
