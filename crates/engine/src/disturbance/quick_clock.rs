//! Costs at one clock: the quickest at which the core ran regularly.
//!
//! The clock of a core moves with its load, its power and, on a rented machine, with what others do on the host: visits of one row ran at
//! 2.1 to 3.0 GHz within three seconds, and what the core executes cost by as much more. The additions beside each pair know the clock. How
//! far a row follows it is learned from its own visits, and each pair is taken as it would have been at the quick clock of the run. So a
//! figure is what the operation costs where nobody else takes the clock away, as it is what it costs where nobody else takes the core.

use machmeter_stats::follows::Follows;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::spread::mean;

use super::core_clock::{SLOWER, additions};
use crate::cost::Pair;
use crate::cost::estimate::FEWEST;

/// Share of the quickest additions that are passed over: a reading of the clock that took long makes one seem quicker.
const PASSED_OVER: f64 = 0.02;
/// Readings of the same clock lie as near to each other: a look knows it to 1 %, and steps of clocks are 25 MHz or more.
const SAME: f64 = 0.015;
/// A look that makes the clock quicker by more than this was held up in the shorter of its two chains, and says nothing.
const QUICKER: f64 = 0.1;
/// Most steps on the way to the middle of the readings of the quick clock.
const STEPS: usize = 50;
/// Deviations of the normal law that 5 % lie beyond, on both sides.
const DEVIATIONS: f64 = 1.96;

/// Ticks of a dependent addition at the quick clock: the middle of the readings around the quickest that came back. `None` where nobody looked.
pub(crate) fn quick_ticks<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Option<f64> {
    let ticks = sorted(&additions(pairs)).ok()?;
    let mut quick = quantile(&ticks, PASSED_OVER)?;
    for _ in 0..STEPS {
        let near: Vec<f64> = ticks.iter().copied().filter(|t| (t / quick - 1.0).abs() <= SAME).collect();
        let next = mean(&near)?;
        if next == quick {
            break;
        }
        quick = next;
    }
    Some(quick)
}

/// The clock at which costs are told, as ticks of an addition: the quick one of the run, or of an earlier run as long as it is not so much quicker that
/// something else must rule the clock now (a governor, a limit of power). So a host that is short of power for an hour changes no figure.
pub(crate) fn told(own_ticks: f64, before_ticks: Option<f64>) -> f64 {
    let is_near = |before: &f64| *before < own_ticks && *before >= (1.0 - SLOWER) * own_ticks;
    before_ticks.filter(is_near).unwrap_or(own_ticks)
}

/// Pairs of a row as they would have been at the quick clock.
#[derive(Debug, Clone)]
pub(crate) struct AtQuickClock {
    pub(crate) pairs: Vec<Pair>,
    pub(crate) follows: Follows,
    /// What a figure may be off by because it is not known how far the row follows the clock, as a fraction, at 95 %.
    pub(crate) error: f64,
}

impl AtQuickClock {
    /// Of pairs with their values in the order of time. How far the row follows the clock is learned from those that are `own` (undisturbed), as
    /// long as there are any.
    pub(crate) fn of(
        pairs: &[Pair],
        values: &[f64],
        is_own: impl Fn(&Pair) -> bool,
        quick_ticks: f64,
    ) -> Self {
        let cycles = cycles(pairs, quick_ticks);
        let known: Vec<(&Pair, [f64; 2])> = pairs
            .iter()
            .zip(cycles.iter().zip(values))
            .filter(|(_, (_, v))| **v > 0.0)
            .filter_map(|(p, (cycle, v))| Some((p, [(*cycle)?, v.ln()])))
            .collect();
        let own: Vec<[f64; 2]> = known.iter().filter(|(p, _)| is_own(p)).map(|(_, of)| *of).collect();
        let told = if own.is_empty() { known.into_iter().map(|(_, of)| of).collect() } else { own };
        let follows = Follows::of(&told);
        let at_quick = |((p, cycle), value): ((&Pair, &Option<f64>), &f64)| {
            let factor = cycle.map_or(1.0, |cycle| follows.factor(cycle));
            let of = |ticks: u64| (ticks as f64 / factor).round() as u64;
            let pair = Pair { short_ticks: of(p.short_ticks), long_ticks: of(p.long_ticks), ..*p };
            (pair, cycle.is_some_and(|cycle| cycle > 1.0 / (1.0 - SLOWER)), value / factor)
        };
        let pairs: Vec<(Pair, bool, f64)> = pairs.iter().zip(&cycles).zip(values).map(at_quick).collect();
        let quick = || pairs.iter().filter(|(_, is_slow, _)| !is_slow);
        let least = quick().map(|(.., value)| *value).fold(f64::INFINITY, f64::min);
        let is_known = quick().count() >= FEWEST;
        // A pair beside a slow clock that comes out below all others had another clock in its batches.
        let is_wrong = |is_slow: bool, value: f64| is_slow && is_known && value < (1.0 - SAME) * least;
        let slower = |[cycle, _]: &[f64; 2]| (cycle - 1.0).abs() / follows.factor(*cycle);
        let usual = median_of(&told.iter().map(slower).collect::<Vec<_>>());
        Self {
            pairs: pairs.iter().filter(|(_, is_slow, v)| !is_wrong(*is_slow, *v)).map(|(p, ..)| *p).collect(),
            follows,
            error: DEVIATIONS * follows.sd * usual.unwrap_or_default(),
        }
    }
}

/// The time of a cycle beside each pair as a multiple of that of the quick clock: all pairs of a visit tell it together, since a reading is
/// good to 1 %. `None` where they do not know it.
fn cycles(pairs: &[Pair], quick_ticks: f64) -> Vec<Option<f64>> {
    let of_visit = |visit: &[Pair]| {
        let ticks: Vec<f64> =
            additions(visit).into_iter().filter(|t| *t >= (1.0 - QUICKER) * quick_ticks).collect();
        vec![median_of(&ticks).map(|t| t / quick_ticks); visit.len()]
    };
    pairs.chunk_by(|a, b| a.visit == b.visit).flat_map(of_visit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Cost, Facts, Kind, Row, Rows};
    use crate::disturbance::sibling::CoreLook;
    use machmeter_stats::random::Random;

    const OPERATION_NS: f64 = 40.0;

    /// A run of rows of 12 visits of two pairs. Of each operation `share` is executed by the core, which runs at 3.0 GHz or in steps of 100 MHz below.
    fn run(random: &mut Random, share: f64, slowest_steps: f64) -> Rows {
        let mut row = |i: usize| {
            let mut row = Row::new("test", &format!("row{i}"), Kind::Latency).of_batches();
            (row.short_turns, row.long_turns) = (1_000, 2_000);
            let mut visit = |visit: u32| {
                let ghz = 3.0 - 0.1 * (random.unit() * (slowest_steps + 1.0)).floor();
                [0, 1].map(|_| {
                    let each = OPERATION_NS
                        * (1.0 - share + share * 3.0 / ghz)
                        * (1.0 + 0.002 * random.normal().abs());
                    let look = |random: &mut Random| {
                        // One reading in a hundred is held up in the shorter chain.
                        let held = if random.unit() < 0.01 { 0.1 } else { 1.0 };
                        held * 10.0 / ghz * (1.0 + 0.005 * random.normal())
                    };
                    let core = CoreLook { width: 4.0, addition_ticks: look(random) };
                    let ticks = |turns: f64| (10.0 * turns * each) as u64;
                    Pair { visit, short_ticks: ticks(1e3), long_ticks: ticks(2e3), core, ..Pair::default() }
                })
            };
            row.pairs = (1..=12).flat_map(&mut visit).collect();
            row
        };
        let rows = (0..40).map(&mut row).collect();
        // Ten ticks a nanosecond.
        let mut run = Rows { tick_hz: 1e10, step_ticks: 1, rows, ..Rows::default() };
        run.store_core();
        run
    }

    #[test]
    fn a_figure_is_that_of_the_quick_clock_however_often_the_clock_moved() {
        let mut random = Random::new(31);
        for share in [0.0, 0.5, 1.0] {
            for slowest_steps in [0.0, 3.0, 9.0] {
                let (mut off, mut covered) = (Vec::new(), Vec::new());
                for _ in 0..10 {
                    let run = run(&mut random, share, slowest_steps);
                    for row in &run.rows {
                        let cost = run.cost(row);
                        let k = cost.known().unwrap();
                        assert!((k.core_hz.unwrap() / 3e9 - 1.0).abs() < 0.005, "{k:?}");
                        off.push((k.value_ns / OPERATION_NS - 1.0).abs());
                        // The lower quartile of what is added to each pair.
                        let truth = OPERATION_NS * (1.0 + 0.002 * 0.3186);
                        covered.push(k.low_ns <= truth && truth <= k.high_ns);
                    }
                }
                let usual = median_of(&off).unwrap();
                let covered = covered.iter().filter(|c| **c).count() as f64 / covered.len() as f64;
                assert!(usual < 0.004, "{share}, {slowest_steps} steps: {usual}");
                assert!(covered >= 0.9, "{share}, {slowest_steps} steps: {covered}");
            }
        }
    }

    #[test]
    fn the_clock_of_an_earlier_run_holds_as_long_as_it_is_near() {
        let mut run = run(&mut Random::new(35), 1.0, 2.0);
        let value_ns = |run: &Rows| {
            let cost = run.cost(&run.rows[0]);
            cost.known().map(|k| (k.value_ns, k.core_hz.unwrap())).unwrap()
        };
        let own = value_ns(&run);
        assert!((own.0 / OPERATION_NS - 1.0).abs() < 0.005, "{own:?}");
        for (before_ghz, told_ghz) in [(2.0, 3.0), (3.3, 3.3), (4.5, 3.0)] {
            run.restore_quick_addition(Some(1.0 / before_ghz));
            run.store_core();
            let (ns, hz) = value_ns(&run);
            assert!((hz / 1e9 / told_ghz - 1.0).abs() < 0.005, "{before_ghz}: {hz}");
            assert!((ns * told_ghz / (OPERATION_NS * 3.0) - 1.0).abs() < 0.01, "{before_ghz}: {ns}");
        }
    }

    #[test]
    fn a_clock_that_moved_between_look_and_batch_makes_no_operation_cheap() {
        let mut run = run(&mut Random::new(34), 1.0, 3.0);
        for row in &mut run.rows {
            // The looks beside the last visit saw a third of the clock; its batches had all of it.
            row.pairs.iter_mut().filter(|p| p.visit == 12).for_each(|p| p.core.addition_ticks = 10.0);
            let pair = |p: &mut Pair| (p.short_ticks, p.long_ticks) = (400_000, 800_000);
            row.pairs.iter_mut().filter(|p| p.visit == 12).for_each(pair);
        }
        for row in &run.rows {
            let cost = run.cost(row);
            let k = cost.known().unwrap();
            assert!(k.low_ns > 0.98 * OPERATION_NS && k.value_ns > 0.99 * OPERATION_NS, "{k:?}");
        }
    }

    #[test]
    fn what_programs_paid_stays_in_the_quantiles() {
        let run = run(&mut Random::new(32), 1.0, 9.0);
        let cost = run.cost(&run.rows[0]);
        let k = cost.known().unwrap();
        assert!(k.usual_ns > 1.1 * k.value_ns && k.max_ns > 1.3 * k.value_ns, "{k:?}");
    }

    #[test]
    fn without_a_look_nothing_is_changed() {
        let mut run = run(&mut Random::new(33), 1.0, 9.0);
        for pair in run.rows.iter_mut().flat_map(|r| &mut r.pairs) {
            pair.core = CoreLook::default();
        }
        let of = |rows: &Rows| Cost::of(&rows.rows[0], rows.ns_per_tick(), rows.step_ticks);
        let plain = of(&run);
        run.facts = Facts::default();
        run.store_core();
        assert_eq!(run.cost(&run.rows[0]), plain);
    }
}
