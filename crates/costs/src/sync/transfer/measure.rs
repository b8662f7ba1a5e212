//! Rounds over all pairs of CPUs in both directions, spread over the time given.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Kind as Question, Pair, Row};
use machmeter_engine::rounds::Rounds;
use machmeter_engine::team::{Seats, threads::Threads};
use machmeter_sys::thread::monotonic_ns;

use super::PART;
use super::laps::{Lap, Plan, visit};
use super::plan::{Couple, couples};
use super::trips::Kind;
use crate::sync::Params;
use machmeter_engine::part::At;

/// Length of a visit on idle CPUs, ns; for planning.
const VISIT_NS: u64 = 6_000_000;
const LAPS: usize = 3;
const ROUNDS: u64 = 6;
/// Rounds over which the time is spread.
const SPREAD_ROUNDS: u64 = 400;
/// Couples at most, of which both directions are visited.
const COUPLES_MAX: usize = 512;
/// Longest visit, ns: on busy CPUs both members must first have a slice at once.
const LIMIT_NS: (u64, u64) = (8_000_000, 100_000_000);
/// Time that starting and ending a team takes, ns.
const TEAM_NS: u64 = 3_000_000;

pub(super) fn measure(at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    let cpus = at.cpus();
    if cpus.len() < 2 {
        return Ok(Kind::ALL.iter().map(|kind| refused(*kind)).collect());
    }
    let all = couples(&at.host.topology, &cpus, at.host.seed);
    let affordable = (at.left_ns() / (2 * ROUNDS * VISIT_NS)).max(1) as usize;
    let chosen = &all[..all.len().min(affordable).min(COUPLES_MAX)];
    let list = |f: &dyn Fn(&Couple) -> String| chosen.iter().map(f).collect::<Vec<_>>().join(",");
    at.facts.insert("transfer.couples".to_owned(), all.len().to_string());
    at.facts.insert("transfer.classes".to_owned(), list(&|c| format!("{}-{}={}", c.low, c.high, c.distance)));
    let mut lanes: Vec<Lane> =
        chosen.iter().flat_map(|c| [Lane::new(c.low, c.high), Lane::new(c.high, c.low)]).collect();
    let (start_ns, clock, until_ns) = (monotonic_ns(), at.clock(), at.until_ns.saturating_sub(TEAM_NS));
    let rounds = Rounds { most: usize::MAX, spread: SPREAD_ROUNDS, ..Rounds::of(at, 0, 2 * TEAM_NS) };
    rounds.run(lanes.len(), |turn| {
        let share_ns = at.left_ns() / (2 * chosen.len() as u64 * ROUNDS);
        let limit_ns = share_ns.clamp(LIMIT_NS.0, LIMIT_NS.1).min(until_ns.saturating_sub(monotonic_ns()));
        let plan = Plan { kinds: Kind::ALL, laps: LAPS, laps_ns: VISIT_NS, limit_ns, seed: turn.bits };
        let lane = &mut lanes[turn.index];
        let seats = Seats { cpus: vec![lane.from, lane.to], policy: at.policy };
        match visit(&Threads, &clock, &seats, &plan, start_ns) {
            Ok(laps) => lane.take(&laps, &|ticks| at.host.rate.ns(ticks)),
            Err(why) => lane.failed = Some(why),
        }
    });
    rows(lanes)
}

fn refused(kind: Kind) -> Row {
    let mut row = Row::new(PART.name, kind.name(), Question::Latency);
    row.refused = Some("needs two CPUs, has 1".to_owned());
    row
}

/// One direction of a couple: `from` measures, and the lines lie in the memory near it.
struct Lane {
    from: usize,
    to: usize,
    rows: Vec<Row>,
    failed: Option<String>,
}

impl Lane {
    fn new(from: usize, to: usize) -> Self {
        let row = |kind: &Kind| {
            let mut row =
                Row::new(PART.name, kind.name(), Question::Latency).with("from", from).with("to", to);
            (row.long_turns, row.per_turn) = kind.batch();
            row
        };
        Self { from, to, rows: Kind::ALL.iter().map(row).collect(), failed: None }
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

/// The rows, or the reason of the first visit that failed where none succeeded.
fn rows(lanes: Vec<Lane>) -> Result<Vec<Row>, ProbeError> {
    let nothing = |lane: &Lane| lane.rows.iter().all(|r| r.pairs.is_empty());
    if let Some(why) = lanes.iter().find_map(|l| l.failed.clone()).filter(|_| lanes.iter().all(nothing)) {
        return Err(ProbeError::Cannot(why));
    }
    let of_lane = |lane: Lane| {
        let Lane { rows, failed, .. } = lane;
        rows.into_iter().map(move |mut row| {
            if row.pairs.is_empty() {
                row.refused.clone_from(&failed);
            }
            row
        })
    };
    Ok(lanes.into_iter().flat_map(of_lane).collect())
}
