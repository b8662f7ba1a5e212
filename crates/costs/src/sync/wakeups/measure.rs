//! Takes the rows in rounds, each round in a new order.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::rounds::Rounds;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{self, Arena, Seats, Team};
use machmeter_sys::sync::{Monitor, Sharing};
use machmeter_sys::thread::monotonic_ns;

use super::plan::{Job, Wake, What, jobs};
use super::trip::{Broadcast, CELLS, Trip};
use crate::placement::Watch;
use crate::sync::Params;
use crate::sync::trips::TRIPS;
use machmeter_engine::part::At;

/// Time below which the plan is short, ns.
const SHORT_BELOW_NS: u64 = 5_000_000_000;
/// Longest visit of the short plan, and of the full one, ns.
const VISIT_NS: [u64; 2] = [100_000_000, 300_000_000];
/// Pairs of a visit in which nobody sleeps: the first visit alone can make a figure.
const PAIRS: usize = 8;

#[allow(clippy::unnecessary_wraps, reason = "the form of all parts")]
pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    let start_ns = monotonic_ns();
    let full = at.left_ns() >= SHORT_BELOW_NS;
    let mut models: Vec<&dyn Team> = vec![&team::threads::Threads];
    models.extend(team::named("processes").filter(|_| full));
    let cpus = at.cpus();
    let mut all: Vec<(&dyn Team, Job)> = models
        .into_iter()
        .flat_map(|m| jobs(&cpus, m.model(), full).into_iter().map(move |j| (m, j)))
        .collect();
    let mut placement = Watch::of(at);
    let clock = at.clock();
    Rounds::of(at, 0x3a6e, 0).run(all.len(), |turn| {
        let (model, job) = &mut all[turn.index];
        if job.row.refused.is_some() {
            return;
        }
        let regime_ns = placement.as_mut().map_or(0.0, |p| p.beside(&job.cpus, turn.bits));
        let seats = Seats { cpus: job.cpus.clone(), policy: at.policy };
        let limit_ns = at.left_ns().clamp(1, VISIT_NS[usize::from(full)]);
        let visit = TeamVisit::new(*model, &seats, &clock, start_ns, limit_ns, turn.bits);
        if let Err(why) = perform(&visit, job, regime_ns)
            && job.row.pairs.is_empty()
        {
            job.row.refused = Some(why);
        }
    });
    Ok(all.into_iter().map(|(_, job)| conclude(job)).collect())
}

pub(super) fn rule(job: &Job) -> Rule {
    match job.what {
        What::Trip(_, wake) => wake.rule(),
        What::Broadcast => Rule::Sleeps(job.cpus.len() as u64 - 1),
    }
}

pub(super) fn perform(visit: &TeamVisit<'_>, job: &mut Job, regime_ns: f64) -> Result<(), String> {
    let sharing = if visit.team.model() == "threads" { Sharing::Threads } else { Sharing::Processes };
    let (rule, members) = (rule(job), job.cpus.len());
    let row = &mut job.row;
    // Of those that wake each other; further members only keep CPUs busy.
    let mut take = |operation: &dyn JointOperation, judged: usize| {
        let turns = Turns::of(Pace::SHARED_BATCH_NS);
        let cell = TeamCell { rule, judged, ..TeamCell::new(operation, members, turns, PAIRS) };
        if rule == Rule::Undisturbed {
            return visit.take_row(cell, row, regime_ns).map(drop);
        }
        let trips = TeamCell { batches: Batches::Trips(TRIPS), samples: 1, ..cell };
        visit.take_trips(trips, row, regime_ns)
    };
    let board = Arena::new(CELLS, 64).map_err(|e| e.to_string())?;
    match job.what {
        What::Trip(way, wake) => {
            let polls = wake == Wake::Running;
            let (there, back) = (way.make(sharing, polls)?, way.make(sharing, polls)?);
            let settles = wake == Wake::Idle;
            take(&Trip { there: &*there, back: &*back, polls, settles, board: &board }, 2)
        }
        What::Broadcast => {
            let monitor = Monitor::new(sharing).map_err(|e| e.to_string())?;
            take(&Broadcast { monitor: &monitor, board: &board }, members)
        }
    }
}

/// The row; where no partner slept in any visit, with that reason.
pub(super) fn conclude(job: Job) -> Row {
    let mut row = job.row;
    let awake = row.rejected.partner;
    if row.refused.is_none() && row.pairs.is_empty() && awake > 0 {
        row.refused =
            Some(format!("the partner did not sleep (in {awake} of {} samples)", row.rejected.total()));
    }
    row.reached()
}
