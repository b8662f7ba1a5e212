//! A visit to a pair of CPUs: batches of every kind, lap after lap, and what a lap's batches say together.

use machmeter_engine::disturbance::Rejected;
use machmeter_engine::disturbance::distance::{BATCHES, condense};
use machmeter_engine::team::Arena;
use machmeter_engine::team::sampler::{Batches, Rule, TeamCell, TeamVisit, Turns};

use super::trips::{Exchange, Kind, Lines, WORDS};

#[derive(Debug, Clone)]
pub(super) struct Lap {
    /// When it began, ns after the start of the measurement.
    pub(super) at_ns: u64,
    /// By kind, in the order asked for: ticks of a batch, and batches thrown away.
    pub(super) kinds: Vec<(Option<u64>, Rejected)>,
}

/// Visits a pair with these kinds, in this order in the first lap (member 0 measures; pages come from its memory). Laps that were
/// begun; empty when the partner never came.
pub(super) fn take(visit: &TeamVisit<'_>, kinds: &[Kind]) -> Result<Vec<Lap>, String> {
    let arena = Arena::new(0, WORDS * size_of::<u64>()).map_err(|e| e.to_string())?;
    let lines = Lines(arena.heap().atomics());
    let exchanges: Vec<Exchange<'_>> =
        kinds.iter().map(|kind| Exchange { kind: *kind, lines, seed: visit.seed }).collect();
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
    let found = visit.take(&cells)?;
    let lap = |lap: usize| {
        let of_lap = || found.samples.iter().filter(move |s| s.lap == lap);
        let kinds = (0..cells.len()).map(|kind| condense(of_lap().filter(|s| s.cell == kind)));
        Some(Lap { at_ns: of_lap().map(|s| s.at_ns).min()?, kinds: kinds.collect() })
    };
    Ok((0..visit.laps).map_while(lap).collect())
}
