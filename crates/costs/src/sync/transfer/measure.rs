//! The cells: pairs of CPUs in both directions, one of each class of neighborhood first, then the rest, so that few visits tell most.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind as Question, Pair, Row};
use machmeter_engine::disturbance::distance::{BATCHES, condense};
use machmeter_engine::disturbance::{Distance, Rejected};
use machmeter_engine::experiment::{Cell, CellList, Enough, Visit};
use machmeter_engine::team::sampler::{Batches, HostClock, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{Seats, threads::Threads};
use machmeter_loops::sync::transfer::{self, Kind};
use machmeter_stats::random::Random;
use machmeter_sys::sched::Policy;
use machmeter_sys::topology::Topology;

use super::{CLASSES, COUPLES, PART};
use crate::sync::Params;
use crate::sync::cost::NEEDS_TWO;
use machmeter_engine::part::PartContext;

/// Length of a visit on idle CPUs, ns; for planning.
const VISIT_NS: u64 = 6_000_000;
const LAPS: usize = 3;
/// Couples at most, of which both directions are visited.
const COUPLES_MAX: usize = 512;
/// Longest visit, ns: on busy CPUs both members must first have a slice at once.
const LIMIT_NS: u64 = 100_000_000;

pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    crate::sync::begin(at, params, PART.name)?;
    let cpus = at.cpus();
    if cpus.len() < 2 {
        let row =
            |kind: &Kind| Row::new(PART.name, kind.name(), Question::Latency).of_batches().refused(NEEDS_TWO);
        at.rows.extend(Kind::ALL.iter().map(row));
        return Ok(());
    }
    let all = couples(&at.host.topology, &cpus, at.host.seed);
    let affordable = (at.left_ns() / (2 * u64::from(Enough::QUICK.visits) * VISIT_NS)).max(1) as usize;
    let chosen = &all[..all.len().min(affordable).min(COUPLES_MAX)];
    at.facts.set(&COUPLES, all.len());
    at.facts.set(&CLASSES, chosen.iter().map(|c| (c.low, c.high, c.distance.name().to_owned())).collect());
    let (policy, clock) = (at.policy, at.clock());
    let lanes = chosen.iter().flat_map(|c| [(c.low, c.high), (c.high, c.low)]);
    at.run(lanes.map(|(from, to)| Lane::new(from, to, policy, clock)).collect::<CellList<'_>>());
    Ok(())
}

/// One direction of a couple: `from` measures, and the lines lie in the memory near it.
struct Lane {
    from: usize,
    to: usize,
    policy: Policy,
    clock: HostClock,
    rows: Vec<Row>,
    failed: Option<String>,
}

impl Lane {
    fn new(from: usize, to: usize, policy: Policy, clock: HostClock) -> Self {
        let row = |kind: &Kind| {
            let row = Row::new(PART.name, kind.name(), Question::Latency).of_batches();
            let mut row = row.with("from", from).with("to", to);
            (row.long_turns, row.per_turn) = kind.batch();
            row
        };
        Self { from, to, policy, clock, rows: Kind::ALL.iter().map(row).collect(), failed: None }
    }

    /// Takes over laps whose placement is known: those with a compare-and-swap sample.
    fn record(&mut self, laps: &[Lap]) {
        let (turns, ways) = Kind::Cas.batch();
        // Laps follow each other within milliseconds: one visit.
        let visit = self.rows.iter().map(Row::next_visit).max().unwrap_or(1);
        for lap in laps {
            let regime = lap.kinds.first().and_then(|(ticks, _)| *ticks);
            for (row, (ticks, rejected)) in self.rows.iter_mut().zip(&lap.kinds) {
                row.rejected.add(*rejected);
                if let (Some(regime), Some(ticks)) = (regime, ticks) {
                    row.pairs.push(Pair {
                        at_ns: lap.at_ns as f64,
                        visit,
                        short_ticks: 0,
                        long_ticks: *ticks,
                        regime_ns: self.clock.rate.ns(regime) / (turns as f64 * ways),
                        ..Pair::default()
                    });
                }
            }
        }
    }
}

impl Cell for Lane {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn expected_ns(&self) -> u64 {
        VISIT_NS
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let limit_ns = visit.left_ns().min(LIMIT_NS);
        let seats = Seats { cpus: vec![self.from, self.to], policy: self.policy };
        let start_ns = visit.sampler.start_ns;
        let once = TeamVisit::new(&Threads, &seats, &self.clock, start_ns, limit_ns, visit.bits);
        match take(&TeamVisit { laps: LAPS, laps_ns: VISIT_NS, ..once }) {
            Ok(laps) => self.record(&laps),
            Err(why) => self.failed = Some(why),
        }
    }

    fn into_rows(mut self: Box<Self>) -> Vec<Row> {
        for row in self.rows.iter_mut().filter(|r| r.pairs.is_empty()) {
            row.refused.clone_from(&self.failed);
        }
        self.rows
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Couple {
    pub(super) low: usize,
    pub(super) high: usize,
    pub(super) distance: Distance,
}

/// All couples of `cpus`, in the order in which they should be visited: by turns one of each class, within a class at random.
pub(super) fn couples(topology: &Topology, cpus: &[usize], seed: u64) -> Vec<Couple> {
    let mut classes: Vec<Vec<Couple>> = vec![Vec::new(); Distance::ALL.len()];
    for (i, low) in cpus.iter().enumerate() {
        for high in &cpus[i + 1..] {
            let distance = Distance::shown(topology, *low, *high);
            classes[distance as usize].push(Couple { low: *low, high: *high, distance });
        }
    }
    let mut random = Random::new(seed);
    for class in &mut classes {
        random.shuffle(class);
    }
    let longest = classes.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|i| classes.iter().filter_map(move |c| c.get(i).copied()).collect::<Vec<_>>())
        .collect()
}

#[derive(Debug, Clone)]
pub(super) struct Lap {
    /// When it began, ns after the start of the measurement.
    pub(super) at_ns: u64,
    /// By kind: ticks of a batch, and batches thrown away.
    pub(super) kinds: Vec<(Option<u64>, Rejected)>,
}

/// Laps of batches of every kind; member 0 measures, from its memory. Empty when the partner never came.
pub(super) fn take(visit: &TeamVisit<'_>) -> Result<Vec<Lap>, String> {
    let memory = transfer::memory().map_err(|e| e.to_string())?;
    let exchange = |kind: &Kind| (kind.batch().0, transfer::exchange(*kind, &memory, visit.seed));
    let exchanges: Vec<_> = Kind::ALL.iter().map(exchange).collect();
    let cells: Vec<TeamCell<'_>> = exchanges
        .iter()
        .map(|(turns, exchange)| {
            let turns = Turns::fixed(*turns);
            let cell = TeamCell::new(&**exchange, 2, turns, BATCHES);
            TeamCell { batches: Batches::Single(turns), rule: Rule::Awake, ..cell }
        })
        .collect();
    let found = visit.take(&cells)?;
    let lap = |lap: usize| {
        let of_lap = || found.samples.iter().filter(move |s| s.lap == lap);
        let kinds = (0..cells.len()).map(|kind| condense(of_lap().filter(|s| s.cell == kind)));
        Some(Lap { at_ns: of_lap().map(|s| s.at_ns).min()?, kinds: kinds.collect() })
    };
    Ok((0..visit.laps).map_while(lap).collect())
}
