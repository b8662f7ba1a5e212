//! Samples of a team as pairs of a row.

use super::{Found, TeamCell, TeamSample, TeamVisit};
use crate::cost::{Estimator, Pair, Row};

/// What rows say of the kernel's switches, in their `extras`.
pub const SLEEPS: &str = "voluntary_switches";
const TAKEN_OFF: &str = "involuntary_switches";
pub const TURNS_SEEN: &str = "turns_seen";

impl TeamVisit<'_> {
    /// Visits one cell and adds its samples to its row, beside what a look at the placement said (0: nobody looked).
    pub fn take_row(&self, cell: TeamCell<'_>, row: &mut Row, regime_ns: f64) -> Result<Found, String> {
        // As long as there is no pair nothing is known of the length.
        let known_turns = if row.pairs.is_empty() { 0 } else { row.short_turns };
        let found = self.take(&[TeamCell { known_turns, ..cell }])?;
        found.record(0, 0, row, regime_ns);
        Ok(found)
    }
}

impl Found {
    pub fn of(&self, cell: usize, member: usize) -> impl Iterator<Item = &TeamSample> {
        self.samples.iter().filter(move |s| s.cell == cell && s.member == member)
    }

    /// Adds the samples of a cell to its row, beside what a look at the placement said (0: nobody looked). Each lap is a visit.
    pub fn record(&self, cell: usize, member: usize, row: &mut Row, regime_ns: f64) {
        let first = row.next_visit();
        for sample in self.of(cell, member) {
            match sample.disturbance {
                Some(why) => row.rejected.count(why),
                None => push(row, sample, regime_ns, first.saturating_add(sample.lap as u32)),
            }
        }
    }
}

/// A row has its largest number of turns, to which others are scaled. One of single batches keeps its own.
fn push(row: &mut Row, sample: &TeamSample, regime_ns: f64, visit: u32) {
    let turns = sample.turns.max(1);
    let single = row.short_turns == 0 && row.long_turns > 0;
    if !single && (row.pairs.is_empty() || turns > row.short_turns) {
        let factor = turns as f64 / row.short_turns.max(1) as f64;
        for p in &mut row.pairs {
            [p.short_ticks, p.long_ticks] = [p.short_ticks, p.long_ticks].map(|t| scaled(t, factor));
        }
        (row.short_turns, row.long_turns) = (turns, 2 * turns);
    }
    let own = if single { row.long_turns } else { row.short_turns };
    let [short_ticks, long_ticks] =
        [sample.short_ticks, sample.long_ticks].map(|t| scaled(t, own as f64 / turns as f64));
    row.pairs.push(Pair {
        at_ns: sample.at_ns as f64,
        visit,
        short_ticks,
        long_ticks,
        regime_ns,
        core: sample.core,
    });
}

fn scaled(ticks: u64, factor: f64) -> u64 {
    (ticks as f64 * factor).round() as u64
}

/// Adds to the row's extras how often the members were switched in the samples that were kept.
pub fn record_switches<'a>(row: &mut Row, samples: impl Iterator<Item = &'a TeamSample>) {
    let mut add = |name: &str, value: u64| *row.extras.entry(name.to_owned()).or_default() += value as f64;
    for s in samples.filter(|s| s.disturbance.is_none()) {
        add(SLEEPS, s.voluntary);
        add(TAKEN_OFF, s.involuntary);
        add(TURNS_SEEN, if s.short_ticks > 0 { 3 * s.turns } else { s.turns });
    }
}

impl TeamVisit<'_> {
    /// Visits a cell of [`Batches::Trips`](super::Batches::Trips); its trips and switches go to `row`, all or none.
    pub fn take_trips(&self, cell: TeamCell<'_>, row: &mut Row, regime_ns: f64) -> Result<(), String> {
        let found = self.take(&[cell])?;
        (row.short_turns, row.long_turns, row.estimator) = (0, 1, Estimator::Trips);
        let visit = row.next_visit();
        for (i, sample) in found.samples.iter().enumerate() {
            let trips = || found.trips.iter().filter(|t| t.sample == i);
            match sample.disturbance {
                Some(why) => (0..trips().count().max(1)).for_each(|_| row.rejected.count(why)),
                None => row.pairs.extend(trips().map(|t| Pair {
                    at_ns: t.at_ns as f64,
                    visit,
                    long_ticks: t.ticks,
                    regime_ns,
                    ..Pair::default()
                })),
            }
        }
        record_switches(row, found.samples.iter());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::Kind;
    use crate::cost::estimate::values_ns;
    use crate::disturbance::Disturbance;

    fn found(turns: u64, short_ticks: u64, long_ticks: u64) -> Found {
        let sample = TeamSample { turns, short_ticks, long_ticks, ..TeamSample::default() };
        Found { samples: vec![sample], trips: Vec::new() }
    }

    #[test]
    fn visits_of_other_turns_say_the_same() {
        let mut row = Row::new("locks", "x", Kind::Latency);
        // 7 ticks a turn, and 30 beside.
        for turns in [10, 400, 16, 400, 7] {
            found(turns, 30 + 7 * turns, 30 + 14 * turns).record(0, 0, &mut row, 24.0);
        }
        assert_eq!((row.short_turns, row.long_turns), (400, 800));
        let each = values_ns(&row, &row.pairs, 1.0);
        assert!(each.len() == 5 && each.iter().all(|ns| (ns - 7.0).abs() < 0.01), "{each:?}");
        assert!(row.pairs.iter().all(|p| p.regime_ns == 24.0));
        assert_eq!(row.pairs.iter().map(|p| p.visit).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }

    #[test]
    fn a_row_of_single_batches_keeps_its_turns() {
        let mut row = Row::new("contention", "x", Kind::Throughput);
        row.long_turns = 64;
        found(16, 0, 400).record(0, 0, &mut row, 0.0);
        found(128, 0, 3_200).record(0, 0, &mut row, 0.0);
        assert_eq!((row.short_turns, row.long_turns), (0, 64));
        assert!(row.pairs.iter().all(|p| p.long_ticks == 1_600), "{:?}", row.pairs);
    }

    #[test]
    fn what_is_not_kept_is_counted_by_its_reason() {
        let mut row = Row::new("locks", "x", Kind::Latency);
        let because = |disturbance| TeamSample {
            disturbance,
            turns: 5,
            voluntary: 9,
            short_ticks: 1,
            ..TeamSample::default()
        };
        let samples: Vec<TeamSample> =
            [None, Some(Disturbance::Awake), Some(Disturbance::Awake), Some(Disturbance::Preempted)]
                .map(because)
                .into();
        let found = Found { samples, trips: Vec::new() };
        found.record(0, 0, &mut row, 0.0);
        record_switches(&mut row, found.of(0, 0));
        assert_eq!((row.pairs.len(), row.rejected.partner, row.rejected.preempted), (1, 2, 1));
        assert_eq!((row.extras[SLEEPS], row.extras[TURNS_SEEN]), (9.0, 15.0));
    }
}
