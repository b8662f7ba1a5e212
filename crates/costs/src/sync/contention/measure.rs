//! Rounds over all rows, each visit beside a probe of the placement.

use machmeter_engine::ProbeError;
use machmeter_engine::budget::stop_requested;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Kind, Pair, Row};
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::{Seats, Team, threads::Threads};
use machmeter_stats::quantile::{median, quantile_interval, sorted};
use machmeter_stats::random::Random;
use machmeter_sys::thread;

use super::PART;
use super::operations::{CHUNK, Operation};
use super::visit::{MEMBERS_MAX, Plan, Sample, visit};
use crate::placement::Watch;
use crate::sync::Params;
use machmeter_engine::part::At;

/// Distances of two counters, bytes; 0 is one counter for all.
const DISTANCES: [usize; 6] = [0, 8, 32, 64, 128, 4_096];
/// Distance at which nothing is shared.
pub(super) const APART_BYTES: usize = 4_096;
/// Chunks that a sample is told in.
const CHUNKS: u64 = 64;
/// Batches of a visit.
const BATCHES: usize = 6;
/// Rounds that the time should suffice for, and rounds over which it is spread.
const ROUNDS: u64 = 4;
const SPREAD_ROUNDS: u64 = 200;
/// Longest pause between two rounds, ns.
const PAUSE_NS: u64 = 250_000_000;
/// Longest visit, ns.
const LIMIT_NS: (u64, u64) = (5_000_000, 60_000_000);
/// Time that starting and ending a team takes, ns.
const TEAM_NS: u64 = 3_000_000;

/// A row to measure.
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

    fn take(&mut self, samples: &[Sample], start_ns: u64, regime_ns: f64) {
        self.row.pairs.extend(samples.iter().map(|s| Pair {
            at_ns: s.at_ns.saturating_sub(start_ns) as f64,
            short_ticks: 0,
            // Batches have as many chunks as the time allowed: kept as ticks of a fixed number of them.
            long_ticks: (s.ticks as f64 * CHUNKS as f64 / s.chunks.max(1) as f64).round() as u64,
            regime_ns,
            core_width: s.core_width,
        }));
        self.fairness.extend(samples.iter().map(|s| s.fairness));
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

/// All rows, the most telling first.
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
    let Some(mut placement) = Watch::of(at) else {
        let mut refused = Lane::new(Operation::FetchAdd, 2, 0);
        refused.row.refused = Some("needs two CPUs, has 1".to_owned());
        return Ok(vec![refused.row]);
    };
    let start_ns = thread::monotonic_ns();
    let gap_ns = (at.left_ns() / SPREAD_ROUNDS).min(PAUSE_NS);
    let batch_ticks = at.host.rate.ticks(Pace::SHARED_BATCH_NS);
    let mut random = Random::new(at.host.seed);
    let mut order: Vec<usize> = (0..lanes.len()).collect();
    let mut regime_ns = 0.0;
    for round in 0_usize.. {
        if round > 0 {
            random.shuffle(&mut order);
        }
        for i in &order {
            let left_ns = at.left_ns();
            let Some(most_ns) = left_ns.checked_sub(2 * TEAM_NS) else { return rows(lanes) };
            if stop_requested() {
                return rows(lanes);
            }
            let lane = &mut lanes[*i];
            if most_ns > LIMIT_NS.1 {
                regime_ns = placement.one_way_ns(random.bits());
            }
            let share_ns = left_ns / (order.len() as u64 * ROUNDS);
            let plan = Plan {
                operation: lane.operation,
                distance_bytes: lane.distance_bytes,
                batches: BATCHES,
                batch_ticks,
                limit_ns: share_ns.clamp(LIMIT_NS.0, LIMIT_NS.1).min(most_ns),
            };
            // By turns another CPU is the one that measures.
            let chosen = (0..lane.members).map(|k| cpus[(k + round) % lane.members]).collect();
            let seats = Seats { cpus: chosen, policy: at.policy };
            match visit(&Threads, at.host.source(), &seats, &plan) {
                Ok((samples, rejected)) => {
                    lane.row.rejected.preempted += rejected.preempted;
                    lane.row.rejected.partner += rejected.partner;
                    lane.take(&samples, start_ns, regime_ns);
                }
                Err(why) => lane.failed = Some(why),
            }
        }
        let next_ns = start_ns + (round as u64 + 1) * gap_ns;
        thread::nanosleep_until(next_ns.min(at.until_ns).min(thread::monotonic_ns() + PAUSE_NS));
    }
    rows(lanes)
}

/// The rows, or the reason of the first visit that failed where none succeeded.
fn rows(lanes: Vec<Lane>) -> Result<Vec<Row>, ProbeError> {
    match lanes.iter().find_map(|l| l.failed.clone()) {
        Some(why) if lanes.iter().all(|l| l.row.pairs.is_empty()) => Err(ProbeError::Cannot(why)),
        _ => Ok(lanes.into_iter().map(Lane::done).collect()),
    }
}
