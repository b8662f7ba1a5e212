//! The cells: operations of one thread alone, and operations of all members.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{self, Row};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::team::sampler::{
    Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns, record_switches,
};
use machmeter_loops::sync::locks::alone::{condvar_signal_unheard, semaphore_post_wait, uncontended};
use machmeter_loops::sync::locks::{Kind, LockMemory, PROOF, barriers, handoff};
use machmeter_sys::sync::Sharing;

use super::contended;
use super::plan::{self, Job, Together};
use crate::sync::Params;
use crate::sync::jobs::{self, Work};
use crate::sync::trips::TRIPS;
use machmeter_engine::part::PartContext;

/// Time below which nothing is measured between processes, and only at two CPUs and at all, ns.
const SHORT_BELOW_NS: u64 = 6_000_000_000;
/// Longest visit, ns: many times what one takes, but one whose partner was held up must not take the time of all others.
const VISIT_NS: u64 = 60_000_000;
/// Acquisitions of a lock whose waiters may sleep, ns: many wake-ups long.
const SLEEPING_BATCH_NS: f64 = 500_000.0;
/// Pairs of a visit where members spin, batches where they sleep: enough for a figure. Between visits the placement moves.
const SAMPLES: [usize; 2] = [8, 6];

pub(super) fn measure(at: &mut PartContext<'_>, _params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let full = at.left_ns() >= SHORT_BELOW_NS;
    let memory = || LockMemory::new(Sharing::Threads).map_err(ProbeError::Cannot);
    let memories: Vec<(Kind, LockMemory)> =
        Kind::ALL.iter().map(|k| Ok((*k, memory()?))).collect::<Result<_, ProbeError>>()?;
    let mut cells = alone(&memories, &mut at.rows);
    jobs::add(&mut cells, at, full, VISIT_NS, plan::jobs);
    at.run(cells);
    Ok(())
}

/// Operations of one thread. An object that cannot be made moves its row to `refused`. Operations that are system calls are
/// rows of `machmeter ops`.
fn alone<'r>(memories: &'r [(Kind, LockMemory)], refused: &mut Vec<Row>) -> CellList<'r> {
    let lock = |(kind, memory): &'r (Kind, LockMemory)| (kind.name(), uncontended(*kind, memory));
    let others = [
        ("semaphore_post_wait", semaphore_post_wait()),
        ("condvar_signal_unheard", condvar_signal_unheard()),
    ];
    let mut benches: Vec<Bench<'_>> = Vec::new();
    for (operation, subject) in memories.iter().map(lock).chain(others) {
        let row = plan::row(operation, cost::Kind::Latency, "alone", "threads").with("cpus", 1_i64);
        match subject {
            Ok(subject) => benches.push(Bench { row, subject }),
            Err(why) => refused.push(row.refused(why)),
        }
    }
    CellList::of_benches(benches, Pace::of(Pace::SHARED_BATCH_NS, 3))
}

impl Work for Together {
    fn expected_ns(&self) -> u64 {
        let sleeps = self.sleeps();
        let batch_ns = if sleeps { SLEEPING_BATCH_NS } else { Pace::SHARED_BATCH_NS };
        3 * (SAMPLES[usize::from(sleeps)] as u64 + 2) * batch_ns as u64
    }

    fn perform(job: &mut Job, team: &TeamVisit<'_>, regime_ns: f64) -> Result<(), String> {
        let sharing = jobs::sharing(team.team);
        perform(&LockVisit::of(*team, job.what, Pace::SHARED_BATCH_NS, regime_ns), sharing, job)
    }
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

pub(super) fn perform(visit: &LockVisit<'_>, sharing: Sharing, job: &mut Job) -> Result<(), String> {
    let memory = LockMemory::new(sharing)?;
    let row = &mut job.row;
    match job.what {
        Together::Contend(kind) => contended::visit(kind, &memory, visit, row)?,
        Together::HandOff(kind) => {
            let board = handoff::Board::new()?;
            visit.take(row, &*handoff::operation(kind, &memory, &board)?)?;
            row.prove(PROOF, board.counted(), board.added());
        }
        Together::Barrier(kind) => {
            let board = barriers::Board::new(visit.members())?;
            visit.take(row, &*barriers::operation(kind, sharing, &board)?)?;
            let (steps, early) = (board.steps(), board.early());
            row.prove("steps with all members present", steps, steps.saturating_sub(early));
        }
    }
    Ok(())
}
