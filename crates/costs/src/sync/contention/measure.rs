//! The cells: rows of members that work on words at once.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{Batches, Found, Others, Rule, TeamCell, TeamSample, TeamVisit, Turns};
use machmeter_engine::team::{Team, threads::Threads};
use machmeter_loops::sync::words::{CHUNK, Operation, on_words};
use machmeter_stats::quantile::{median, quantile_interval, sorted};

use super::PART;
use crate::sync::Params;
use crate::sync::cost::NEEDS_TWO;
use crate::sync::jobs::{Job, Setting, Work};
use crate::sync::locks::widths;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;

/// Distances of two counters, bytes; 0 is one counter for all.
const DISTANCES: [usize; 6] = [0, 8, 32, 64, 128, 4_096];
pub(super) const APART_BYTES: usize = 4_096;
/// Chunks that a sample is told in.
const CHUNKS: u64 = 64;
const BATCHES: usize = 6;
const MEMBERS_MAX: usize = 256;
const LIMIT_NS: u64 = 60_000_000;
/// Time that starting and ending a team takes, ns.
const TEAM_NS: u64 = 3_000_000;

/// An operation of all members, each on its counter.
struct Counters {
    operation: Operation,
    distance_bytes: usize,
    fairness: Vec<f64>,
}

/// By the first so many of these CPUs.
fn job(cpus: &[usize], operation: Operation, members: usize, distance_bytes: usize) -> Job<Counters> {
    let mut row = Row::new(PART.name, operation.name(), Kind::Throughput)
        .of_batches()
        .with("cpus", members)
        .with("distance_bytes", distance_bytes)
        .with("model", Threads.model());
    (row.long_turns, row.per_turn) = (CHUNKS, CHUNK as f64);
    let what = Counters { operation, distance_bytes, fairness: Vec::new() };
    Job { row, what, cpus: cpus.iter().copied().take(members).collect() }
}

impl Work for Counters {
    const TRIES_AGAIN: bool = true;

    fn expected_ns(&self) -> u64 {
        TEAM_NS + BATCHES as u64 * Pace::SHARED_BATCH_NS as u64
    }

    /// By turns another CPU is the one that measures.
    fn seats(job: &Job<Self>, number: u32) -> Vec<usize> {
        let mut cpus = job.cpus.clone();
        cpus.rotate_left(number as usize % job.cpus.len());
        cpus
    }

    /// Of every row, whoever takes part in it.
    fn look(placement: &mut PlacementDetector, _job: &Job<Self>, bits: u64) -> f64 {
        placement.one_way_ns(bits)
    }

    fn perform(job: &mut Job<Self>, team: &TeamVisit<'_>, regime_ns: f64) -> Result<(), String> {
        let found = take(team, job.what.operation, job.what.distance_bytes, BATCHES)?;
        found.record(0, 0, &mut job.row, regime_ns);
        let kept = found.of(0, 0).filter(|s| s.disturbance.is_none());
        job.what.fairness.extend(kept.map(fairness));
        Ok(())
    }

    /// The row, with the median of its batches' fairness and its interval.
    fn conclude(Job { mut row, what, .. }: Job<Self>) -> Row {
        let ordered = sorted(&what.fairness).unwrap_or_default();
        if let (Some(middle), Some(i)) = (median(&ordered), quantile_interval(&ordered, 0.5, LEVEL)) {
            for (name, value) in [("fairness", middle), ("fairness_low", i.low), ("fairness_high", i.high)] {
                row.extras.insert(name.to_owned(), value);
            }
        }
        row
    }
}

/// Turns of the slowest member over those of the fastest.
pub(super) fn fairness(sample: &TeamSample) -> f64 {
    let (least, most) = (sample.least_turns.min(sample.turns), sample.most_turns.max(sample.turns));
    least as f64 / most.max(1) as f64
}

/// A visit of all members to their words.
pub(super) fn take(
    team: &TeamVisit<'_>,
    operation: Operation,
    distance_bytes: usize,
    batches: usize,
) -> Result<Found, String> {
    let members = team.seats.cpus.len();
    let on_words = on_words(operation, members, distance_bytes).map_err(|e| e.to_string())?;
    team.take(&[TeamCell {
        batches: Batches::Timed(Pace::SHARED_BATCH_NS),
        others: Others::Throughout,
        rule: Rule::Alongside,
        judged: 1,
        ..TeamCell::new(&*on_words, members, Turns::fixed(1), batches)
    }])
}

/// Of two CPUs or more.
fn jobs(cpus: &[usize]) -> Vec<Job<Counters>> {
    use Operation::{Cas, FetchAdd, Load, StoreLoad, Swap};
    let job = |operation, members, distance_bytes| job(cpus, operation, members, distance_bytes);
    let mut out = vec![job(FetchAdd, 1, 0), job(StoreLoad, 1, 0)];
    out.extend(DISTANCES.map(|d| job(FetchAdd, 2, d)));
    out.extend(DISTANCES.map(|d| job(StoreLoad, 2, d)));
    for operation in [Cas, Swap, Load] {
        out.push(job(operation, 1, 0));
        out.push(job(operation, 2, 0));
    }
    for members in widths(cpus.len().min(MEMBERS_MAX), true).into_iter().skip(1) {
        out.extend([FetchAdd, Cas, StoreLoad].map(|operation| job(operation, members, 0)));
        out.push(job(FetchAdd, members, APART_BYTES));
    }
    out
}

pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    crate::sync::begin(at, params, PART.name)?;
    let cpus = at.cpus();
    let Some(placement) = PlacementDetector::of(at) else {
        at.rows.push(job(&cpus, Operation::FetchAdd, 2, 0).row.refused(NEEDS_TWO));
        return Ok(());
    };
    let setting = Setting::new(at, Some(placement), LIMIT_NS);
    at.run(jobs(&cpus).into_iter().map(|job| setting.cell(&Threads, job)).collect::<CellList<'_>>());
    Ok(())
}
