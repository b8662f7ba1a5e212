//! The cells.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Proof, Row};
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{
    AWAKE_PAIRS, HostClock, JointOperation, Rule, SLEEPS, TAKEN_OFF, TURNS_SEEN, TeamCell, TeamVisit, Turns,
    record_switches,
};
use machmeter_engine::team::{self, Arena, Seats, Team};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::{Monitor, Sharing};

use super::plan::{Job, Wake, What, jobs};
use super::trip::{Broadcast, CELLS, Trip};
use crate::sync::Params;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::At;

/// Time below which the plan is short, ns.
const SHORT_BELOW_NS: u64 = 5_000_000_000;
/// Longest visit of the short plan, and of the full one, ns.
const VISIT_NS: [u64; 2] = [100_000_000, 300_000_000];
/// Length of a short batch in which members sleep, ns.
const BATCH_NS: f64 = 500_000.0;
/// Fewest turns of it: so many that the first, for which a member may still be awake, does not matter.
const MIN_TURNS: u64 = 4;
/// Pairs of a visit: the first visit alone can make a figure.
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
        3 * (PAIRS as u64 + 2) * batch_ns(self.job.what) as u64
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
        if let Err(why) = perform(&team, batch_ns(job.what), job, regime_ns)
            && job.row.pairs.is_empty()
        {
            job.row.refused = Some(why);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![conclude(self.job)]
    }
}

fn batch_ns(what: What) -> f64 {
    if matches!(what, What::Trip(_, Wake::Running)) { Pace::SHARED_BATCH_NS } else { BATCH_NS }
}

pub(super) fn rule(job: &Job) -> Rule {
    match job.what {
        What::Trip(_, wake) => wake.rule(),
        What::Broadcast => Rule::Sleeps(job.cpus.len() as u64 - 1),
    }
}

pub(super) fn perform(
    visit: &TeamVisit<'_>,
    batch_ns: f64,
    job: &mut Job,
    regime_ns: f64,
) -> Result<(), String> {
    let sharing = if visit.team.model() == "threads" { Sharing::Threads } else { Sharing::Processes };
    let (rule, members) = (rule(job), job.cpus.len());
    let row = &mut job.row;
    // Of those that wake each other; further members only keep CPUs busy.
    let mut take = |operation: &dyn JointOperation, judged: usize| {
        let turns = Turns { least: MIN_TURNS, ..Turns::of(batch_ns) };
        let cell = TeamCell { rule, judged, ..TeamCell::new(operation, members, turns, PAIRS) };
        let found = visit.take_row(cell, row, regime_ns)?;
        record_switches(row, found.of(0, 0));
        Ok(())
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

/// The row with its proof: the switches that the kernel counted in the pairs that were kept.
pub(super) fn conclude(job: Job) -> Row {
    let rule = if job.cpus.is_empty() { Rule::Undisturbed } else { rule(&job) };
    let mut row = job.row;
    let extra = |name: &str| row.extras.get(name).copied().unwrap_or(0.0);
    let (turns, awake) = (extra(TURNS_SEEN), extra(AWAKE_PAIRS));
    let (slept, switched) = (extra(SLEEPS), extra(SLEEPS) + extra(TAKEN_OFF));
    let proof = |what: &str, per_turn: f64, seen: f64| Proof {
        what: what.to_owned(),
        // Of those that must be, as many as a pair may lack.
        expected: (per_turn * turns * 0.7) as u64,
        seen: seen as u64,
    };
    let proof = match rule {
        Rule::Sleeps(per_turn) => Some(proof("sleeps of those who were woken", per_turn as f64, slept)),
        Rule::Switches => Some(proof("switches of the shared CPU", 2.0, switched)),
        _ => None,
    };
    if row.refused.is_some() {
        return row;
    }
    if row.pairs.is_empty() && awake > 0.0 {
        row.refused =
            Some(format!("the partner did not sleep (in {awake} of {} samples)", row.rejected.total()));
    } else if !row.pairs.is_empty() || row.rejected.total() > 0 {
        row.proof = proof;
    }
    row.reached()
}
