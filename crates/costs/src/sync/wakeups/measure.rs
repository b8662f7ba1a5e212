//! Takes the rows in rounds, each round in a new order.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Proof, Row};
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::{self, Arena, Team};
use machmeter_sys::sync::{Monitor, Sharing};
use machmeter_sys::thread::monotonic_ns;

use super::plan::{Job, Wake, What, jobs};
use super::trip::{Broadcast, CELLS, Trip};
use crate::placement::Watch;
use crate::sync::Params;
use crate::sync::locks::rally::{AWAKE_PAIRS, Rule, SLEEPS, TAKEN_OFF, TURNS_SEEN, Visit};
use crate::sync::rounds::rounds;
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

/// Measures the part.
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
    rounds(at, 0x3a6e, all.len(), |i, order| {
        let (model, job) = &mut all[i];
        if job.row.refused.is_some() {
            return;
        }
        let taken = job.row.pairs.len();
        let regime_ns = placement.as_mut().map_or(0.0, |p| p.beside(&job.cpus, order));
        let visit = Visit {
            team: *model,
            cpus: job.cpus.clone(),
            policy: at.policy,
            source: at.host.source(),
            rate: at.host.rate,
            players: players(job),
            rule: rule(job),
            batch_ns: batch_ns(job.what),
            min_turns: MIN_TURNS,
            most_turns: u64::MAX,
            pairs: PAIRS,
            limit_ns: at.left_ns().clamp(1, VISIT_NS[usize::from(full)]),
            start_ns,
            order,
        };
        if let Err(why) = perform(&visit, job)
            && job.row.pairs.is_empty()
        {
            job.row.refused = Some(why);
        }
        job.row.pairs[taken..].iter_mut().for_each(|p| p.regime_ns = regime_ns);
    });
    Ok(all.into_iter().map(|(_, job)| conclude(job)).collect())
}

fn batch_ns(what: What) -> f64 {
    if matches!(what, What::Trip(_, Wake::Running)) { Pace::SHARED_BATCH_NS } else { BATCH_NS }
}

/// Members whose switches count: not those that only keep CPUs busy.
pub(super) fn players(job: &Job) -> usize {
    match job.what {
        What::Trip(..) => 2,
        What::Broadcast => job.cpus.len(),
    }
}

/// Switches there must be.
pub(super) fn rule(job: &Job) -> Rule {
    match job.what {
        What::Trip(_, wake) => wake.rule(),
        What::Broadcast => Rule::Sleeps(job.cpus.len() as u64 - 1),
    }
}

/// Does the job once.
pub(super) fn perform(visit: &Visit<'_>, job: &mut Job) -> Result<(), String> {
    let sharing = if visit.team.model() == "threads" { Sharing::Threads } else { Sharing::Processes };
    let board = Arena::new(CELLS, 64).map_err(|e| e.to_string())?;
    match job.what {
        What::Trip(way, wake) => {
            let polls = wake == Wake::Running;
            let (there, back) = (way.make(sharing, polls)?, way.make(sharing, polls)?);
            let settles = wake == Wake::Idle;
            let trip = Trip { there: &*there, back: &*back, polls, settles, board: &board };
            visit.take(&mut job.row, &trip)
        }
        What::Broadcast => {
            let monitor = Monitor::new(sharing).map_err(|e| e.to_string())?;
            visit.take(&mut job.row, &Broadcast { monitor: &monitor, board: &board })
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
        Rule::Undisturbed => None,
        Rule::Sleeps(per_turn) => Some(proof("sleeps of those who were woken", per_turn as f64, slept)),
        Rule::Switches => Some(proof("switches of the shared CPU", 2.0, switched)),
    };
    if row.refused.is_some() {
        return row;
    }
    if row.pairs.is_empty() && awake > 0.0 {
        row.refused =
            Some(format!("the partner did not sleep (in {awake} of {} samples)", row.rejected.total()));
    } else if row.pairs.is_empty() && row.rejected.total() == 0 {
        row.refused = Some("not reached in the time given".to_owned());
    } else {
        row.proof = proof;
    }
    row
}
