//! The cells.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::Arena;
use machmeter_engine::team::sampler::{Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_sys::sync::Monitor;

use super::plan::{self, Job, Wake, What};
use super::trip::{Broadcast, CELLS, Trip};
use crate::sync::Params;
use crate::sync::jobs::{self, Work};
use crate::sync::trips::TRIPS;
use machmeter_engine::part::PartContext;

/// Time below which the plan is short, ns.
const SHORT_BELOW_NS: u64 = 5_000_000_000;
/// Longest visit of the short plan, and of the full one, ns.
const VISIT_NS: [u64; 2] = [100_000_000, 300_000_000];
/// Pairs of a visit in which nobody sleeps: the first visit alone can make a figure.
const PAIRS: usize = 8;

pub(super) fn measure(at: &mut PartContext<'_>, _params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let full = at.left_ns() >= SHORT_BELOW_NS;
    let mut cells = CellList::default();
    jobs::add(&mut cells, at, full, VISIT_NS[usize::from(full)], plan::jobs);
    at.run(cells);
    Ok(())
}

impl Work for What {
    fn expected_ns(&self) -> u64 {
        3 * (PAIRS as u64 + 2) * Pace::SHARED_BATCH_NS as u64
    }

    fn perform(job: &mut Job, visit: &TeamVisit<'_>, regime_ns: f64) -> Result<(), String> {
        let sharing = jobs::sharing(visit.team);
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
    fn conclude(job: Job) -> Row {
        let mut row = job.row;
        let awake = row.rejected.partner;
        if row.refused.is_none() && row.pairs.is_empty() && awake > 0 {
            row.refused =
                Some(format!("the partner did not sleep (in {awake} of {} samples)", row.rejected.total()));
        }
        row.reached()
    }
}

fn rule(job: &Job) -> Rule {
    match job.what {
        What::Trip(_, wake) => wake.rule(),
        What::Broadcast => Rule::Sleeps(job.cpus.len() as u64 - 1),
    }
}
