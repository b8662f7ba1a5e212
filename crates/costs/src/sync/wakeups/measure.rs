//! The cells.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{Batches, HostClock, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{self, Arena, Seats, Team};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::{Monitor, Sharing};

use super::plan::{Job, Wake, What, jobs};
use super::trip::{Broadcast, CELLS, Trip};
use crate::sync::Params;
use crate::sync::trips::TRIPS;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::At;

/// Time below which the plan is short, ns.
const SHORT_BELOW_NS: u64 = 5_000_000_000;
/// Longest visit of the short plan, and of the full one, ns.
const VISIT_NS: [u64; 2] = [100_000_000, 300_000_000];
/// Pairs of a visit in which nobody sleeps: the first visit alone can make a figure.
const PAIRS: usize = 8;

#[allow(clippy::unnecessary_wraps, reason = "the form of all parts")]
pub(super) fn measure(at: &mut At<'_>, _params: &Params) -> Result<(), ProbeError> {
    let full = at.left_ns() >= SHORT_BELOW_NS;
    let mut models: Vec<&'static dyn Team> = vec![&team::threads::Threads];
    models.extend(team::named("processes").filter(|_| full));
    let cpus = at.cpus();
    let setting = Rc::new(Setting {
        policy: at.policy,
        clock: at.clock(),
        placement: RefCell::new(PlacementDetector::of(at)),
        limit_ns: VISIT_NS[usize::from(full)],
    });
    let cell = |model, job| JobCell { model, job, setting: Rc::clone(&setting) };
    let jobs = |m: &'static dyn Team| jobs(&cpus, m.model(), full).into_iter().map(move |job| cell(m, job));
    at.run(models.into_iter().flat_map(jobs).collect::<CellList<'_>>());
    Ok(())
}

struct Setting {
    policy: Policy,
    clock: HostClock,
    placement: RefCell<Option<PlacementDetector>>,
    limit_ns: u64,
}

struct JobCell {
    model: &'static dyn Team,
    job: Job,
    setting: Rc<Setting>,
}

impl Cell for JobCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.job.row)
    }

    fn expected_ns(&self) -> u64 {
        3 * (PAIRS as u64 + 2) * Pace::SHARED_BATCH_NS as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let Self { model, job, setting } = self;
        if job.row.refused.is_some() {
            return;
        }
        let look = |p: &mut PlacementDetector| p.beside(&job.cpus, visit.bits);
        let regime_ns = setting.placement.borrow_mut().as_mut().map_or(0.0, look);
        let seats = Seats { cpus: job.cpus.clone(), policy: setting.policy };
        let limit_ns = visit.left_ns().clamp(1, setting.limit_ns);
        let team =
            TeamVisit::new(*model, &seats, &setting.clock, visit.sampler.start_ns, limit_ns, visit.bits);
        if let Err(why) = perform(&team, job, regime_ns)
            && job.row.pairs.is_empty()
        {
            job.row.refused = Some(why);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![conclude(self.job)]
    }
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
