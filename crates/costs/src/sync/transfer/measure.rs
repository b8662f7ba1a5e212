//! The cells: all pairs of CPUs in both directions.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind as Question, Pair, Row};
use machmeter_engine::experiment::{Cell, CellList, Enough, Visit};
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{Seats, threads::Threads};
use machmeter_sys::sched::Policy;

use super::laps::{self, Lap};
use super::plan::couples;
use super::trips::Kind;
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
        let row = |kind: &Kind| Row::new(PART.name, kind.name(), Question::Latency).refused(NEEDS_TWO);
        at.rows.extend(Kind::ALL.iter().map(row));
        return Ok(());
    }
    let all = couples(&at.host.topology, &cpus, at.host.seed);
    let affordable = (at.left_ns() / (2 * u64::from(Enough::QUICK.visits) * VISIT_NS)).max(1) as usize;
    let chosen = &all[..all.len().min(affordable).min(COUPLES_MAX)];
    at.facts.set(&COUPLES, all.len());
    at.facts.set(&CLASSES, chosen.iter().map(|c| (c.low, c.high, c.distance.to_string())).collect());
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
            let mut row =
                Row::new(PART.name, kind.name(), Question::Latency).with("from", from).with("to", to);
            (row.long_turns, row.per_turn) = kind.batch();
            row
        };
        Self { from, to, policy, clock, rows: Kind::ALL.iter().map(row).collect(), failed: None }
    }

    /// Takes over laps whose placement is known: those with a compare-and-swap sample.
    fn take(&mut self, laps: &[Lap], ns: &dyn Fn(u64) -> f64) {
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
                        regime_ns: ns(regime) / (turns as f64 * ways),
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
        match laps::take(&TeamVisit { laps: LAPS, laps_ns: VISIT_NS, ..once }, Kind::ALL) {
            Ok(laps) => {
                let rate = self.clock.rate;
                self.take(&laps, &|ticks| rate.ns(ticks));
            }
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
