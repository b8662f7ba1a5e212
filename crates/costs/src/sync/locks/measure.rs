//! The cells: what one thread does alone, and what members do together.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::team::sampler::{
    HostClock, JointOperation, TeamCell, TeamVisit, Turns, record_switches,
};
use machmeter_engine::team::{self, Seats, Team};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::Sharing;

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

pub(super) fn measure(at: &mut At<'_>, _params: &Params) -> Result<(), ProbeError> {
    let size = if at.left_ns() < SHORT_BELOW_NS { Size::Short } else { Size::Full };
    if size == Size::Short && at.cpus().len() > 1 {
        at.facts.insert(plan::SHORT_FACT.to_owned(), "1".to_owned());
    }
    let room = || Room::new(1, Sharing::Threads, false).map_err(ProbeError::Cannot);
    let rooms: Vec<(Kind, Room)> =
        kinds::ALL.iter().map(|k| Ok((*k, room()?))).collect::<Result<_, ProbeError>>()?;
    let mut cells = alone(&rooms);
    let mut models: Vec<&'static dyn Team> = vec![&team::threads::Threads];
    models.extend(team::named("processes").filter(|_| size == Size::Full));
    let cpus = at.cpus();
    let setting = Rc::new(Setting {
        policy: at.policy,
        clock: at.clock(),
        placement: RefCell::new(PlacementDetector::of(at)),
    });
    for model in models {
        for job in jobs(&cpus, model.model(), size) {
            cells.push(JobCell { model, job, setting: Rc::clone(&setting) });
        }
    }
    at.run(cells);
    Ok(())
}

/// What one thread does alone.
fn alone(rooms: &[(Kind, Room)]) -> CellList<'_> {
    let mut benches: Vec<Bench<'_>> = Vec::new();
    for (kind, room) in rooms {
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
    CellList::of_benches(benches, Pace::of(Pace::SHARED_BATCH_NS, 3))
}

struct Setting {
    policy: Policy,
    clock: HostClock,
    placement: RefCell<Option<PlacementDetector>>,
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
        let sleeps = sleeps(&self.job);
        3 * (PAIRS[usize::from(sleeps)] as u64 + 2) * batch_ns(sleeps) as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let look = |p: &mut PlacementDetector| p.beside(&self.job.cpus, visit.bits);
        let regime_ns = self.setting.placement.borrow_mut().as_mut().map_or(0.0, look);
        take(&self.setting, self.model, &mut self.job, visit, regime_ns);
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![self.job.row.reached()]
    }
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

fn sleeps(job: &Job) -> bool {
    match job.what {
        Together::Contend(k) | Together::HandOff(k) => k.sleeps(),
        Together::Barrier(k) => k.sleeps(),
    }
}

fn batch_ns(sleeps: bool) -> f64 {
    if sleeps { SLEEPING_BATCH_NS } else { Pace::SHARED_BATCH_NS }
}

fn take(setting: &Setting, model: &dyn Team, job: &mut Job, visit: &Visit<'_>, regime_ns: f64) {
    if job.row.refused.is_some() {
        return;
    }
    let sleeps = sleeps(job);
    let most = match job.what {
        Together::HandOff(_) | Together::Barrier(_) if sleeps => WAITING_TURNS,
        _ => u64::MAX,
    };
    let (clock, seats) = (setting.clock, Seats { cpus: job.cpus.clone(), policy: setting.policy });
    let limit_ns = visit.left_ns().clamp(1, VISIT_NS);
    let visit = LockVisit {
        team: TeamVisit::new(model, &seats, &clock, visit.sampler.start_ns, limit_ns, visit.bits),
        turns: Turns { most, ..Turns::of(batch_ns(sleeps)) },
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
