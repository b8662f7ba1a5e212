//! A visit to a pair of CPUs: batches of every kind, lap after lap, and what a lap's batches say together.

use machmeter_engine::disturbance::Rejected;
use machmeter_engine::disturbance::distance::{BATCHES, condense};
use machmeter_engine::team::sampler::{Batches, Rule, TeamCell, TeamClock, TeamVisit, Turns};
use machmeter_engine::team::{Arena, Seats, Team};

use super::trips::{Exchange, Kind, Lines, WORDS};

#[derive(Debug, Clone)]
pub(super) struct Plan<'k> {
    /// Kinds, in this order in the first lap.
    pub(super) kinds: &'k [Kind],
    pub(super) laps: usize,
    /// No lap but the first begins later than this after the start, ns.
    pub(super) laps_ns: u64,
    /// Everything ends by then, ns.
    pub(super) limit_ns: u64,
    /// Order of the lines that are read.
    pub(super) seed: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Lap {
    /// When it began, ns after the start of the measurement.
    pub(super) at_ns: u64,
    /// By kind, in the plan's order: ticks of a batch, and batches thrown away.
    pub(super) kinds: Vec<(Option<u64>, Rejected)>,
}

/// Visits the pair of `seats` (member 0 measures; pages come from its memory). Laps that were begun; empty when the partner
/// never came.
pub(super) fn visit(
    team: &dyn Team,
    clock: &dyn TeamClock,
    seats: &Seats,
    plan: &Plan<'_>,
    start_ns: u64,
) -> Result<Vec<Lap>, String> {
    let arena = Arena::new(0, WORDS * size_of::<u64>()).map_err(|e| e.to_string())?;
    let lines = Lines(arena.heap().atomics());
    let exchanges: Vec<Exchange<'_>> =
        plan.kinds.iter().map(|kind| Exchange { kind: *kind, lines, seed: plan.seed }).collect();
    let cells: Vec<TeamCell<'_>> = exchanges
        .iter()
        .map(|e| {
            let turns = Turns::fixed(e.kind.batch().0);
            TeamCell {
                batches: Batches::Single(turns),
                rule: Rule::Awake,
                ..TeamCell::new(e, 2, turns, BATCHES)
            }
        })
        .collect();
    let visit = TeamVisit {
        laps: plan.laps,
        laps_ns: plan.laps_ns,
        ..TeamVisit::new(team, seats, clock, start_ns, plan.limit_ns, plan.seed)
    };
    let found = visit.take(&cells)?;
    let lap = |lap: usize| {
        let of_lap = || found.samples.iter().filter(move |s| s.lap == lap);
        let kinds = (0..cells.len()).map(|kind| condense(of_lap().filter(|s| s.cell == kind)));
        Some(Lap { at_ns: of_lap().map(|s| s.at_ns).min()?, kinds: kinds.collect() })
    };
    Ok((0..plan.laps).map_while(lap).collect())
}
