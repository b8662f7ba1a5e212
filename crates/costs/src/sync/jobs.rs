//! Rows that members of a team work for together, each visit beside a look at the placement.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::cost::Row;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::part::PartContext;
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{self, Seats, Team, threads::Threads};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::Sharing;

use super::cost::NEEDS_TWO;

/// A row with what is to be done for it.
#[derive(Debug, Clone)]
pub(super) struct Job<W> {
    pub(super) row: Row,
    pub(super) what: W,
    pub(super) cpus: Vec<usize>,
}

pub(super) trait Work: Sized + 'static {
    /// Whether an error is left to the next visit, which may find the CPUs free; else it refuses a row without samples.
    const TRIES_AGAIN: bool = false;

    fn expected_ns(&self) -> u64;

    /// Where the members sit in a visit of this number.
    fn seats(job: &Job<Self>, _number: u32) -> Vec<usize> {
        job.cpus.clone()
    }

    fn look(placement: &mut PlacementDetector, job: &Job<Self>, bits: u64) -> f64 {
        placement.beside(&job.cpus, bits)
    }

    /// A visit, at a placement of which a look says `regime_ns`.
    fn perform(job: &mut Job<Self>, visit: &TeamVisit<'_>, regime_ns: f64) -> Result<(), String>;

    fn conclude(job: Job<Self>) -> Row {
        job.row.reached()
    }
}

pub(super) fn sharing(team: &dyn Team) -> Sharing {
    if team.model() == Threads.model() { Sharing::Threads } else { Sharing::Processes }
}

/// Gives those that have too few of the CPUs the reason.
pub(super) fn refuse_alone<W>(jobs: &mut [Job<W>]) {
    for job in jobs.iter_mut().filter(|j| j.cpus.len() < 2) {
        job.row.refused = Some(NEEDS_TWO.to_owned());
    }
}

/// The cells of all jobs of threads, and with time of processes. `limit_ns` is the longest visit.
pub(super) fn add<W: Work>(
    cells: &mut CellList<'_>,
    at: &mut PartContext<'_>,
    full: bool,
    limit_ns: u64,
    jobs: fn(&[usize], &str, bool) -> Vec<Job<W>>,
) {
    let setting = Setting::new(at, PlacementDetector::of(at), limit_ns);
    let mut models: Vec<&'static dyn Team> = vec![&Threads];
    models.extend(team::named("processes").filter(|_| full));
    for model in models {
        for job in jobs(&at.cpus(), model.model(), full) {
            cells.push(setting.cell(model, job));
        }
    }
}

/// What visits of all jobs of a part have in common.
pub(super) struct Setting {
    policy: Policy,
    clock: HostClock,
    placement: RefCell<Option<PlacementDetector>>,
    limit_ns: u64,
}

impl Setting {
    pub(super) fn new(at: &PartContext<'_>, placement: Option<PlacementDetector>, limit_ns: u64) -> Rc<Self> {
        Rc::new(Self { policy: at.policy, clock: at.clock(), placement: RefCell::new(placement), limit_ns })
    }

    pub(super) fn cell<W: Work>(self: &Rc<Self>, model: &'static dyn Team, job: Job<W>) -> JobCell<W> {
        JobCell { model, job, setting: Rc::clone(self), lost: None }
    }
}

pub(super) struct JobCell<W> {
    model: &'static dyn Team,
    job: Job<W>,
    setting: Rc<Setting>,
    /// Why the last visit that was lost was lost.
    lost: Option<String>,
}

impl<W: Work> Cell for JobCell<W> {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.job.row)
    }

    fn expected_ns(&self) -> u64 {
        self.job.what.expected_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let Self { model, job, setting, lost } = self;
        if job.row.refused.is_some() {
            return;
        }
        let look = |p: &mut PlacementDetector| W::look(p, job, visit.bits);
        let regime_ns = setting.placement.borrow_mut().as_mut().map_or(0.0, look);
        let seats = Seats { cpus: W::seats(job, visit.number), policy: setting.policy };
        let (start_ns, limit_ns) = (visit.sampler.start_ns, visit.left_ns().clamp(1, setting.limit_ns));
        let team = TeamVisit::new(*model, &seats, &setting.clock, start_ns, limit_ns, visit.bits);
        *lost = W::perform(job, &team, regime_ns).err().or(lost.take());
        if !W::TRIES_AGAIN && job.row.pairs.is_empty() {
            job.row.refused = lost.take();
        }
    }

    fn into_rows(mut self: Box<Self>) -> Vec<Row> {
        if self.job.row.pairs.is_empty() {
            self.job.row.refused = self.job.row.refused.or(self.lost);
        }
        vec![W::conclude(self.job)]
    }
}
