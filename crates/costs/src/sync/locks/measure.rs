//! Takes the rows: first what one thread does alone, then, in rounds, what members do together.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::rounds::Rounds;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::{
    Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns, record_switches,
};
use machmeter_engine::team::{self, Seats, Team};
use machmeter_sys::sync::Sharing;
use machmeter_sys::thread::monotonic_ns;

use super::contended::ContendedVisit;
use super::handoff::{HandoffVisit, RING};
use super::kinds::{self, Kind, Room, with_locks};
use super::plan::{Job, Together, jobs};
use super::{alone, barriers};
use crate::placement::Watch;
use crate::sync::Params;
use crate::sync::trips::TRIPS;
use machmeter_engine::part::At;

/// Time below which nothing is measured between processes, and only at two CPUs and at all, ns.
const SHORT_BELOW_NS: u64 = 6_000_000_000;
/// Share of the time for what one thread does alone.
const ALONE: f64 = 0.25;
/// Longest visit, ns: many times what one takes, but one whose partner was held up must not take the time of all others.
const VISIT_NS: u64 = 60_000_000;
/// Acquisitions of a lock whose waiters may sleep, ns: many wake-ups long.
const SLEEPING_BATCH_NS: f64 = 500_000.0;
/// Pairs of a visit in which members spin, and batches where they sleep. The first visit alone can make a figure; many short visits tell
/// more than few long ones, since the CPUs' placement moves between them.
const SAMPLES: [usize; 2] = [8, 6];

#[allow(clippy::unnecessary_wraps, reason = "the form of all parts")]
pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    let start_ns = monotonic_ns();
    let full = at.left_ns() >= SHORT_BELOW_NS;
    let mut rows = alone(at)?;
    let mut models: Vec<&dyn Team> = vec![&team::threads::Threads];
    models.extend(team::named("processes").filter(|_| full));
    let cpus = at.cpus();
    let mut all: Vec<(&dyn Team, Job)> = models
        .into_iter()
        .flat_map(|m| jobs(&cpus, m.model(), full).into_iter().map(move |j| (m, j)))
        .collect();
    let mut placement = Watch::of(at);
    Rounds::of(at, 0x10c5, 0).run(all.len(), |turn| {
        let (model, job) = &mut all[turn.index];
        let regime_ns = placement.as_mut().map_or(0.0, |p| p.beside(&job.cpus, turn.bits));
        visit(at, *model, job, start_ns, turn.bits, regime_ns);
    });
    rows.extend(all.into_iter().map(|(_, job)| job.row.reached()));
    Ok(rows)
}

fn alone(at: &mut At<'_, '_>) -> Result<Vec<Row>, ProbeError> {
    let room = || Room::new(Sharing::Threads).map_err(ProbeError::Cannot);
    let rooms: Vec<(Kind, Room)> =
        kinds::ALL.iter().map(|k| Ok((*k, room()?))).collect::<Result<_, ProbeError>>()?;
    let mut benches: Vec<Bench<'_>> = Vec::new();
    for (kind, room) in &rooms {
        let row = alone::row(kind.name());
        match with_locks(*kind, 1, room, alone::Uncontend) {
            Ok(Some(subject)) => benches.push(Bench { row, subject }),
            Ok(None) => {}
            Err(why) => benches.push(alone::refused(row, why)),
        }
    }
    benches.extend(alone::primitives());
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

/// A visit of a team to a row of locks.
pub(super) struct LockVisit<'a> {
    team: TeamVisit<'a>,
    batches: Batches,
    rule: Rule,
    samples: usize,
    /// What a look at the placement said, ns.
    regime_ns: f64,
}

impl<'a> LockVisit<'a> {
    /// As it fits what is done; where members spin, in batches of `batch_ns`.
    pub(super) fn of(team: TeamVisit<'a>, what: Together, batch_ns: f64, regime_ns: f64) -> Self {
        let waiters = team.seats.cpus.len() as u64 - 1;
        let spin = Batches::Pairs(Turns::of(batch_ns));
        let (batches, rule, samples) = match what {
            _ if !what.sleeps() => (spin, Rule::Undisturbed, SAMPLES[0]),
            Together::Contend(_) => {
                (Batches::Single(Turns::of(SLEEPING_BATCH_NS)), Rule::Undisturbed, SAMPLES[1])
            }
            // Libraries' locks spin first, and whether that is enough changes from turn to turn.
            Together::HandOff(_) => (Batches::Trips(TRIPS), Rule::Sleeps(0), 1),
            Together::Barrier(_) => (Batches::Trips(TRIPS), Rule::Sleeps(2 * waiters), 1),
        };
        Self { team, batches, rule, samples, regime_ns }
    }

    pub(super) fn members(&self) -> usize {
        self.team.seats.cpus.len()
    }

    /// Lets the team do the operation; samples go to `row`.
    pub(super) fn take(&self, row: &mut Row, operation: &dyn JointOperation) -> Result<(), String> {
        let cell = TeamCell {
            batches: self.batches,
            rule: self.rule,
            ..TeamCell::new(operation, self.members(), Turns::fixed(1), self.samples)
        };
        if let Batches::Trips(_) = self.batches {
            return self.team.take_trips(cell, row, self.regime_ns);
        }
        let found = self.team.take_row(cell, row, self.regime_ns)?;
        record_switches(row, found.of(0, 0));
        Ok(())
    }
}

fn visit(at: &At<'_, '_>, model: &dyn Team, job: &mut Job, start_ns: u64, seed: u64, regime_ns: f64) {
    if job.row.refused.is_some() {
        return;
    }
    let (clock, seats) = (at.clock(), Seats { cpus: job.cpus.clone(), policy: at.policy });
    let team = TeamVisit::new(model, &seats, &clock, start_ns, at.left_ns().clamp(1, VISIT_NS), seed);
    let visit = LockVisit::of(team, job.what, Pace::SHARED_BATCH_NS, regime_ns);
    let sharing = if model.model() == "threads" { Sharing::Threads } else { Sharing::Processes };
    if let Err(why) = perform(&visit, sharing, job)
        && job.row.pairs.is_empty()
    {
        job.row.refused = Some(why);
    }
}

/// Does the job once.
pub(super) fn perform(visit: &LockVisit<'_>, sharing: Sharing, job: &mut Job) -> Result<(), String> {
    let room = Room::new(sharing)?;
    let row = &mut job.row;
    match job.what {
        Together::Contend(kind) => with_locks(kind, 1, &room, ContendedVisit { visit, row })?,
        Together::HandOff(kind) => with_locks(kind, RING, &room, HandoffVisit { visit, row })?,
        Together::Barrier(kind) => barriers::visit(kind, visit, sharing, row),
    }
}
