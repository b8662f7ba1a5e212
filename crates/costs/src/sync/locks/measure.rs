//! Takes the rows: first what one thread does alone, then, in rounds, what members do together.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::rounds::Rounds;
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::team::sampler::{JointOperation, TeamCell, TeamVisit, Turns, record_switches};
use machmeter_engine::team::{self, Seats, Team};
use machmeter_sys::sync::Sharing;
use machmeter_sys::thread::monotonic_ns;

use super::contended::ContendedVisit;
use super::handoff::{HandoffVisit, RING};
use super::kinds::{self, Kind, Room, with_locks};
use super::plan::{self, Job, Size, Together, jobs};
use super::{NAME, alone, barriers};
use crate::sync::Params;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::At;

/// Time below which the plan is short, ns.
const SHORT_BELOW_NS: u64 = 6_000_000_000;
/// Share of the time for what one thread does alone.
const ALONE: f64 = 0.25;
/// Longest visit, ns: many times what one takes, but one whose partner was held up must not take the time of all others.
const VISIT_NS: u64 = 60_000_000;
/// Batches of operations in which members sleep, ns: many wake-ups long.
const SLEEPING_BATCH_NS: f64 = 500_000.0;
/// Turns of a batch at most in which one member waits for the other in every turn and may sleep: libraries' locks spin first, and whether
/// that is enough changes within a batch. One of so many turns takes half a millisecond when all sleep, and hardly any time when none does.
const WAITING_TURNS: u64 = 16;
/// Pairs of a visit in which members spin, and sleep. The first visit alone can make a figure; many short visits tell more than few
/// long ones, since the CPUs' placement moves between them.
const PAIRS: [usize; 2] = [8, 6];

#[allow(clippy::unnecessary_wraps, reason = "the form of all parts")]
pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    let start_ns = monotonic_ns();
    let size = if at.left_ns() < SHORT_BELOW_NS { Size::Short } else { Size::Full };
    if size == Size::Short && at.cpus().len() > 1 {
        at.facts.insert(plan::SHORT_FACT.to_owned(), "1".to_owned());
    }
    let mut rows = alone(at)?;
    let mut models: Vec<&dyn Team> = vec![&team::threads::Threads];
    models.extend(team::named("processes").filter(|_| size == Size::Full));
    let cpus = at.cpus();
    let mut all: Vec<(&dyn Team, Job)> = models
        .into_iter()
        .flat_map(|m| jobs(&cpus, m.model(), size).into_iter().map(move |j| (m, j)))
        .collect();
    let mut placement = PlacementDetector::of(at);
    Rounds::of(at, 0x10c5, 0).run(all.len(), |turn| {
        let (model, job) = &mut all[turn.index];
        let regime_ns = placement.as_mut().map_or(0.0, |p| p.beside(&job.cpus, turn.bits));
        visit(at, *model, job, start_ns, turn.bits, regime_ns);
    });
    rows.extend(all.into_iter().map(|(_, job)| job.row.reached()));
    Ok(rows)
}

fn alone(at: &mut At<'_, '_>) -> Result<Vec<Row>, ProbeError> {
    let room = || Room::new(1, Sharing::Threads, false).map_err(ProbeError::Cannot);
    let rooms: Vec<(Kind, Room)> =
        kinds::ALL.iter().map(|k| Ok((*k, room()?))).collect::<Result<_, ProbeError>>()?;
    let mut benches: Vec<Bench<'_>> = Vec::new();
    for (kind, room) in &rooms {
        let mut row = alone::row(NAME, kind.name(), "threads");
        let subject = with_locks(*kind, 1, room, alone::Uncontend);
        let subject: Box<dyn Subject> = match subject {
            Ok(Some(subject)) => subject,
            Ok(None) => continue,
            Err(why) => {
                row.refused = Some(why);
                Box::new(Nothing)
            }
        };
        benches.push(Bench { row, subject });
    }
    benches.extend(alone::primitives(NAME, "threads"));
    let share_ns = (at.left_ns() as f64 * ALONE) as u64;
    let pace = Pace {
        settle_ns: 0,
        batch_ns: Pace::SHARED_BATCH_NS,
        pairs_per_visit: 3,
        rounds: 200,
        until_ns: monotonic_ns() + share_ns,
    };
    at.sampler.interleave(&mut benches, &pace);
    Ok(benches.into_iter().map(|b| b.row).collect())
}

struct Nothing;

impl Subject for Nothing {
    fn run(&mut self, _turns: u64) -> bool {
        false
    }
}

/// A visit of a team to a row of locks.
pub(super) struct LockVisit<'a> {
    pub(super) team: TeamVisit<'a>,
    pub(super) turns: Turns,
    pub(super) pairs: usize,
    /// What a look at the placement said, ns.
    pub(super) regime_ns: f64,
}

impl LockVisit<'_> {
    /// Lets the team do the operation; pairs go to `row`.
    pub(super) fn take(&self, row: &mut Row, operation: &dyn JointOperation) -> Result<(), String> {
        let cell = TeamCell::new(operation, self.team.seats.cpus.len(), self.turns, self.pairs);
        let found = self.team.take_row(cell, row, self.regime_ns)?;
        record_switches(row, found.of(0, 0));
        Ok(())
    }
}

fn visit(at: &At<'_, '_>, model: &dyn Team, job: &mut Job, start_ns: u64, seed: u64, regime_ns: f64) {
    if job.row.refused.is_some() {
        return;
    }
    let sleeps = match job.what {
        Together::Contend(k) | Together::HandOff(k) => k.sleeps(),
        Together::Barrier(k) => k.sleeps(),
    };
    let most = match job.what {
        Together::HandOff(_) | Together::Barrier(_) if sleeps => WAITING_TURNS,
        _ => u64::MAX,
    };
    let (clock, seats) = (at.clock(), Seats { cpus: job.cpus.clone(), policy: at.policy });
    let visit = LockVisit {
        team: TeamVisit::new(model, &seats, &clock, start_ns, at.left_ns().clamp(1, VISIT_NS), seed),
        turns: Turns { most, ..Turns::of(if sleeps { SLEEPING_BATCH_NS } else { Pace::SHARED_BATCH_NS }) },
        pairs: PAIRS[usize::from(sleeps)],
        regime_ns,
    };
    let sharing = if model.model() == "threads" { Sharing::Threads } else { Sharing::Processes };
    let done = perform(&visit, sharing, false, job);
    if let Err(why) = done
        && job.row.pairs.is_empty()
    {
        job.row.refused = Some(why);
    }
}

/// Does the job once; `crowded` when members share CPUs.
pub(super) fn perform(
    visit: &LockVisit<'_>,
    sharing: Sharing,
    crowded: bool,
    job: &mut Job,
) -> Result<(), String> {
    let room = Room::new(job.cpus.len(), sharing, crowded)?;
    let row = &mut job.row;
    match job.what {
        Together::Contend(kind) => with_locks(kind, 1, &room, ContendedVisit { visit, row })?,
        Together::HandOff(kind) => with_locks(kind, RING, &room, HandoffVisit { visit, row })?,
        Together::Barrier(kind) => barriers::visit(kind, visit, sharing, row),
    }
}
