//! Rounds over all rows, each visit beside a probe of the placement.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::rounds::Rounds;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{Batches, Found, Others, Rule, TeamCell, TeamSample, TeamVisit, Turns};
use machmeter_engine::team::{Arena, Seats, Team, threads::Threads};
use machmeter_stats::quantile::{median, quantile_interval, sorted};
use machmeter_sys::thread::monotonic_ns;

use super::PART;
use super::operations::{CHUNK, OnWords, Operation};
use crate::sync::Params;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::At;

/// Distances of two counters, bytes; 0 is one counter for all.
const DISTANCES: [usize; 6] = [0, 8, 32, 64, 128, 4_096];
pub(super) const APART_BYTES: usize = 4_096;
/// Chunks that a sample is told in.
const CHUNKS: u64 = 64;
const BATCHES: usize = 6;
/// Rounds that the time should suffice for, and rounds over which it is spread.
const ROUNDS: u64 = 4;
const SPREAD_ROUNDS: u64 = 200;
const MEMBERS_MAX: usize = 256;
/// Longest visit, ns.
const LIMIT_NS: (u64, u64) = (5_000_000, 60_000_000);
/// Time that starting and ending a team takes, ns.
const TEAM_NS: u64 = 3_000_000;

struct Lane {
    row: Row,
    operation: Operation,
    members: usize,
    distance_bytes: usize,
    failed: Option<String>,
    fairness: Vec<f64>,
}

impl Lane {
    fn new(operation: Operation, members: usize, distance_bytes: usize) -> Self {
        let mut row = Row::new(PART.name, operation.name(), Kind::Throughput)
            .with("cpus", members)
            .with("distance_bytes", distance_bytes)
            .with("model", Threads.model());
        (row.long_turns, row.per_turn) = (CHUNKS, CHUNK as f64);
        Self { row, operation, members, distance_bytes, failed: None, fairness: Vec::new() }
    }

    fn take(&mut self, found: &Found, regime_ns: f64) {
        found.record(0, 0, &mut self.row, regime_ns);
        self.fairness.extend(found.of(0, 0).filter(|s| s.disturbance.is_none()).map(fairness));
    }

    /// The row, with the median of its batches' fairness and its interval.
    fn done(mut self) -> Row {
        if self.row.pairs.is_empty() {
            self.row.refused = self.row.refused.take().or(self.failed);
        }
        let ordered = sorted(&self.fairness).unwrap_or_default();
        if let (Some(middle), Some(i)) = (median(&ordered), quantile_interval(&ordered, 0.5, LEVEL)) {
            for (name, value) in [("fairness", middle), ("fairness_low", i.low), ("fairness_high", i.high)] {
                self.row.extras.insert(name.to_owned(), value);
            }
        }
        self.row
    }
}

/// Turns of the slowest member over those of the fastest.
pub(super) fn fairness(sample: &TeamSample) -> f64 {
    let (least, most) = (sample.least_turns.min(sample.turns), sample.most_turns.max(sample.turns));
    least as f64 / most.max(1) as f64
}

/// A visit of all members to their words.
///
/// # Errors
/// One line: no memory, no member.
pub(super) fn visit(
    team: &TeamVisit<'_>,
    operation: Operation,
    distance_bytes: usize,
    batches: usize,
) -> Result<Found, String> {
    let members = team.seats.cpus.len();
    let bytes = OnWords::memory_bytes(members, distance_bytes);
    let memory = Arena::new(0, bytes).map_err(|e| e.to_string())?;
    let on_words = OnWords { operation, memory: &memory, distance_bytes };
    team.take(&[TeamCell {
        batches: Batches::Timed(Pace::SHARED_BATCH_NS),
        others: Others::Throughout,
        rule: Rule::Alongside,
        judged: 1,
        ..TeamCell::new(&on_words, members, Turns::fixed(1), batches)
    }])
}

/// Numbers of members: 2, 4, 8, ... and all.
fn sizes(cpus: usize) -> Vec<usize> {
    let cpus = cpus.min(MEMBERS_MAX);
    let mut out: Vec<usize> =
        std::iter::successors(Some(2), |n| Some(n * 2)).take_while(|n| *n < cpus).collect();
    if cpus > 1 {
        out.push(cpus);
    }
    out
}

fn lanes(cpus: usize) -> Vec<Lane> {
    use Operation::{Cas, FetchAdd, Load, StoreLoad, Swap};
    let mut out = vec![Lane::new(FetchAdd, 1, 0), Lane::new(StoreLoad, 1, 0)];
    let Some(two) = sizes(cpus).first().copied() else { return out };
    out.extend(DISTANCES.map(|d| Lane::new(FetchAdd, two, d)));
    out.extend(DISTANCES.map(|d| Lane::new(StoreLoad, two, d)));
    for operation in [Cas, Swap, Load] {
        out.push(Lane::new(operation, 1, 0));
        out.push(Lane::new(operation, two, 0));
    }
    for members in &sizes(cpus)[1..] {
        out.extend([FetchAdd, Cas, StoreLoad].map(|operation| Lane::new(operation, *members, 0)));
        out.push(Lane::new(FetchAdd, *members, APART_BYTES));
    }
    out
}

pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    let cpus = at.cpus();
    let mut lanes = lanes(cpus.len());
    let Some(mut placement) = PlacementDetector::of(at) else {
        let mut refused = Lane::new(Operation::FetchAdd, 2, 0);
        refused.row.refused = Some("needs two CPUs, has 1".to_owned());
        return Ok(vec![refused.row]);
    };
    let (start_ns, clock, until_ns) = (monotonic_ns(), at.clock(), at.until_ns.saturating_sub(2 * TEAM_NS));
    let mut regime_ns = 0.0;
    let n = lanes.len();
    let rounds = Rounds { most: usize::MAX, spread: SPREAD_ROUNDS, ..Rounds::of(at, 0, 2 * TEAM_NS) };
    rounds.run(n, |turn| {
        let lane = &mut lanes[turn.index];
        if until_ns.saturating_sub(monotonic_ns()) > LIMIT_NS.1 {
            regime_ns = placement.one_way_ns(turn.bits);
        }
        let share_ns = at.left_ns() / (n as u64 * ROUNDS);
        let most_ns = until_ns.saturating_sub(monotonic_ns());
        let limit_ns = share_ns.clamp(LIMIT_NS.0, LIMIT_NS.1).min(most_ns);
        // By turns another CPU is the one that measures.
        let chosen = (0..lane.members).map(|k| cpus[(k + turn.round) % lane.members]).collect();
        let seats = Seats { cpus: chosen, policy: at.policy };
        let team = TeamVisit::new(&Threads, &seats, &clock, start_ns, limit_ns, turn.bits);
        match visit(&team, lane.operation, lane.distance_bytes, BATCHES) {
            Ok(found) => lane.take(&found, regime_ns),
            Err(why) => lane.failed = Some(why),
        }
    });
    rows(lanes)
}

/// The rows, or the reason of the first visit that failed where none succeeded.
fn rows(lanes: Vec<Lane>) -> Result<Vec<Row>, ProbeError> {
    match lanes.iter().find_map(|l| l.failed.clone()) {
        Some(why) if lanes.iter().all(|l| l.row.pairs.is_empty()) => Err(ProbeError::Cannot(why)),
        _ => Ok(lanes.into_iter().map(Lane::done).collect()),
    }
}
