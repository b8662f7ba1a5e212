//! The cells: each visit of a row beside a look at the placement.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::sampler::{
    Batches, Found, HostClock, Others, Rule, TeamCell, TeamSample, TeamVisit, Turns,
};
use machmeter_engine::team::{Arena, Seats, Team, threads::Threads};
use machmeter_stats::quantile::{median, quantile_interval, sorted};
use machmeter_sys::sched::Policy;

use super::PART;
use super::operations::{CHUNK, OnWords, Operation};
use crate::sync::Params;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;

/// Distances of two counters, bytes; 0 is one counter for all.
const DISTANCES: [usize; 6] = [0, 8, 32, 64, 128, 4_096];
pub(super) const APART_BYTES: usize = 4_096;
/// Chunks that a sample is told in.
const CHUNKS: u64 = 64;
const BATCHES: usize = 6;
const MEMBERS_MAX: usize = 256;
/// Longest visit, ns.
const LIMIT_NS: u64 = 60_000_000;
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
pub(super) fn take(
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

#[allow(clippy::unnecessary_wraps, reason = "the form of all parts")]
pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    super::super::begin(at, params, super::PART.name)?;
    let cpus = at.cpus();
    let Some(placement) = PlacementDetector::of(at) else {
        at.rows.push(Lane::new(Operation::FetchAdd, 2, 0).row.refused("needs two CPUs, has 1"));
        return Ok(());
    };
    let setting =
        Rc::new(Setting { cpus, policy: at.policy, clock: at.clock(), placement: RefCell::new(placement) });
    let cell = |lane| LaneCell { lane, setting: Rc::clone(&setting) };
    at.run(lanes(setting.cpus.len()).into_iter().map(cell).collect::<CellList<'_>>());
    Ok(())
}

struct Setting {
    cpus: Vec<usize>,
    policy: Policy,
    clock: HostClock,
    placement: RefCell<PlacementDetector>,
}

struct LaneCell {
    lane: Lane,
    setting: Rc<Setting>,
}

impl Cell for LaneCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.lane.row)
    }

    fn expected_ns(&self) -> u64 {
        TEAM_NS + BATCHES as u64 * Pace::SHARED_BATCH_NS as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let Self { lane, setting } = self;
        let regime_ns = setting.placement.borrow_mut().one_way_ns(visit.bits);
        let limit_ns = visit.left_ns().min(LIMIT_NS);
        // By turns another CPU is the one that measures.
        let cpu = |k| setting.cpus[(k + visit.number as usize) % lane.members];
        let seats = Seats { cpus: (0..lane.members).map(cpu).collect(), policy: setting.policy };
        let start_ns = visit.sampler.start_ns;
        let team = TeamVisit::new(&Threads, &seats, &setting.clock, start_ns, limit_ns, visit.bits);
        match take(&team, lane.operation, lane.distance_bytes, BATCHES) {
            Ok(found) => lane.take(&found, regime_ns),
            Err(why) => lane.failed = Some(why),
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![self.lane.done()]
    }
}
