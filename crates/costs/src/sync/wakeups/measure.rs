//! The rows, the most important first, and their cells.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{self, Row};
use machmeter_engine::experiment::CellList;
use machmeter_engine::part::PartContext;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_loops::sync::wakeups::{Way, broadcast, trip};

use super::NAME;
use crate::sync::Params;
use crate::sync::jobs::{self, Work};
use crate::sync::trips::TRIPS;

machmeter_data::named! {
/// Where the one who is woken is, or rather its CPU.
pub(super) enum Wake {
    /// On the waker's CPU: woken when the waker goes to sleep.
    SameCpu = "same_cpu",
    /// Asleep; its CPU has nothing to do, or sleeps too.
    Idle = "idle",
    /// Asleep; its CPU runs another thread of ours.
    Busy = "busy",
    /// Awake on its CPU, looking for the event.
    Running = "running",
} }

impl Wake {
    pub(super) const fn rule(self) -> Rule {
        match self {
            Self::SameCpu => Rule::Switches,
            Self::Idle | Self::Busy => Rule::Sleeps(2),
            Self::Running => Rule::Undisturbed,
        }
    }

    /// CPUs of the members: the two that wake each other, then those that keep CPUs busy.
    fn seats(self, cpus: &[usize]) -> Option<Vec<usize>> {
        let (a, b) = (*cpus.first()?, cpus.get(1).copied());
        Some(match self {
            Self::SameCpu => vec![a, a],
            Self::Idle | Self::Running => vec![a, b?],
            Self::Busy => vec![a, b?, a, b?],
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Trip(Way, Wake),
    Broadcast,
}

pub(super) type Job = jobs::Job<What>;

/// All jobs for these CPUs in one model; `full` when there is time.
pub(super) fn jobs(cpus: &[usize], model: &str, full: bool) -> Vec<Job> {
    let mut out = Vec::new();
    let mut trip = |way: Way, wake: Wake| {
        let row = Row::new(NAME, way.name(), cost::Kind::Latency)
            .of_batches()
            .with("wake", wake.name())
            .with("cpus", if wake == Wake::SameCpu { 1_i64 } else { 2 })
            .with("model", model)
            .per_turn(2.0);
        let seats = wake.seats(cpus).unwrap_or_default();
        out.push(Job { row, what: What::Trip(way, wake), cpus: seats });
    };
    for (i, way) in Way::ALL.iter().copied().enumerate() {
        trip(way, Wake::SameCpu);
        trip(way, Wake::Idle);
        if full || i < 2 {
            trip(way, Wake::Busy);
        }
        if way.polls() && (full || i < 4) {
            trip(way, Wake::Running);
        }
    }
    for members in crate::sync::locks::widths(cpus.len(), full) {
        out.push(Job {
            row: Row::new(NAME, "broadcast_condvar", cost::Kind::Latency)
                .of_batches()
                .with("wake", Wake::Idle.name())
                .with("cpus", members)
                .with("model", model),
            what: What::Broadcast,
            cpus: if cpus.len() < 2 { Vec::new() } else { cpus.iter().copied().take(members).collect() },
        });
    }
    jobs::refuse_alone(&mut out);
    out
}

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
    jobs::add(&mut cells, at, full, VISIT_NS[usize::from(full)], self::jobs);
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
        match job.what {
            What::Trip(way, wake) => {
                let (polls, settles) = (wake == Wake::Running, wake == Wake::Idle);
                take(&*trip(way, sharing, polls, settles)?, 2)
            }
            What::Broadcast => take(&*broadcast(sharing)?, members),
        }
    }

    /// The row; where no partner slept in any visit, with that reason.
    fn conclude(job: Job) -> Row {
        let mut row = job.row;
        let awake = row.rejected.partner;
        if row.refused.is_none() && row.pairs.is_empty() && awake > 0 {
            row.refused = Some(format!(
                "the partner thread did not go to sleep ({awake} of {} samples)",
                row.rejected.total()
            ));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::tests::assert_unique;

    #[test]
    fn on_one_cpu_only_the_switch_remains() {
        let jobs = jobs(&[3], "threads", true);
        let (here, refused): (Vec<_>, Vec<_>) = jobs.iter().partition(|j| j.row.refused.is_none());
        assert_eq!(here.len(), Way::ALL.len());
        for job in &jobs {
            crate::testing::assert_keeps(&job.row, cost::Estimator::Batches);
        }
        assert!(here.iter().all(|j| j.cpus == [3, 3]));
        assert!(refused.len() > 8 && refused.iter().all(|j| j.cpus.is_empty()));
    }

    #[test]
    fn busy_cpus_have_one_more_member_each_and_rows_are_unique() {
        let jobs = jobs(&[0, 4, 5], "threads", true);
        let busy = jobs.iter().find(|j| matches!(j.what, What::Trip(_, Wake::Busy))).unwrap();
        assert_eq!(busy.cpus, [0, 4, 0, 4]);
        assert_unique(&jobs);
        assert!(super::jobs(&[0, 1], "threads", false).len() <= 20);
    }
}
