//! How quick the core was: dependent additions, one a cycle, beside each pair. A guest is not told of its clock.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;
use machmeter_stats::quantile::{median_of, sorted};
use machmeter_stats::spread::mean;

use super::quick_clock::quick_ticks;
use crate::cost::{Pair, Rows};

/// A clock slower by this share is told. Boosting cores move by up to 12 % (3.6 to 4.1 GHz on one host).
pub(super) const SLOWER: f64 = 0.15;
/// Share of the samples with a slow clock that is worth a word.
const SLOW_SHARE: f64 = 0.05;
/// Share of the quickest and of the slowest looks that say nothing of the clock: something stood in their way.
const LEFT_OUT: f64 = 0.1;

machmeter_data::code! { pub SLOW_CLOCK = "W449" "slow core clock",
    what: "The core ran slower during part of the samples than in the rest of the run, or than in an earlier run on this kind of machine.",
    why: "Operations that the core executes slow down with its clock. Operations that wait for memory or for the host hardly change. Figures refer to \
          the quick clock of the run (core_hz), which programs did not have all the time. Quantiles include all clocks.",
    how: "Chains of dependent additions, one cycle each, are timed before, between and after the two batches of each pair of samples.",
    next: "Check the governor and the power and temperature limits. On a rented machine the host may be at such a limit. Then measure again.",
}

/// Clock of the core beside pairs, Hz, in whole MHz; `None` where nobody looked. A look knows it to 1 % and in steps of the machine's
/// clock, which a median would keep: the mean of most is known to a tenth of that.
pub fn hz(pairs: &[Pair], ns_per_tick: f64) -> Option<f64> {
    let ticks = sorted(&additions(pairs)).ok()?;
    let left_out = (LEFT_OUT * ticks.len() as f64) as usize;
    let addition_ns = mean(ticks.get(left_out..ticks.len() - left_out)?)? * ns_per_tick;
    Some((1e3 / addition_ns).round() * 1e6)
}

pub(super) fn additions<'p>(pairs: impl IntoIterator<Item = &'p Pair>) -> Vec<f64> {
    pairs.into_iter().map(|p| p.core.addition_ticks).filter(|t| *t > 0.0).collect()
}

/// What a dependent addition took at the quick clock of this run, ns. `None` where nobody looked.
pub fn quick_addition_ns(rows: &Rows) -> Option<f64> {
    Some(quick_ticks(rows.rows.iter().flat_map(|r| &r.pairs))? * rows.ns_per_tick())
}

/// Says that the core was slower than an earlier run, or the rest of this one, shows it can be.
pub(crate) fn warning(probe: &str, rows: &Rows) -> Option<Warning> {
    let least_ns = rows.addition_before_ns().into_iter().chain(quick_addition_ns(rows)).reduce(f64::min)?;
    let ticks = additions(rows.rows.iter().flat_map(|r| &r.pairs));
    let most_ticks = least_ns / rows.ns_per_tick() / (1.0 - SLOWER);
    let slow: Vec<f64> = ticks.iter().copied().filter(|t| *t > most_ticks).collect();
    let share = slow.len() as f64 / ticks.len() as f64;
    if share <= SLOW_SHARE {
        return None;
    }
    let told = |ns: f64| human(1e9 / ns, Unit::Hertz);
    let slow_ns = median_of(&slow)? * rows.ns_per_tick();
    Some(SLOW_CLOCK.note(format!(
        "the core ran below its quick clock: at {} instead of {} during {:.0} % of {} samples of {probe}",
        told(slow_ns),
        told(least_ns),
        share * 100.0,
        ticks.len()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::{Kind, Row};
    use crate::disturbance::sibling::CoreLook;
    use machmeter_stats::random::Random;

    /// Pairs on a clock of 2 ticks a ns; of ten, `slow` ran at half of the clock of 4 GHz.
    fn rows(slow: usize) -> Rows {
        let mut row = Row::new("ops", "add", Kind::Latency).planted(10, [(100, 200); 200]);
        for (i, pair) in row.pairs.iter_mut().enumerate() {
            let addition_ticks = if i % 10 < slow { 1.0 } else { 0.5 };
            pair.core = CoreLook { width: 3.9, addition_ticks };
        }
        Rows { tick_hz: 2e9, rows: vec![row], ..Rows::in_nanoseconds(Vec::new()) }
    }

    #[test]
    fn a_clock_that_fell_is_told_by_the_rest_of_the_run_or_by_an_earlier_one() {
        let text = |slow, before_ns| {
            let mut rows = rows(slow);
            rows.restore_quick_addition(before_ns);
            warning("ops", &rows).map(|w| w.text)
        };
        assert_eq!(text(0, None), None);
        assert_eq!(text(0, Some(0.24)), None, "4.2 GHz once, 4.0 now");
        let part = text(3, None).unwrap();
        assert!(part.contains("at 2.00 GHz instead of 4.00 GHz") && part.contains("30 % of 200"), "{part}");
        // A whole run at half the clock looks like any other, but for what was seen before.
        assert_eq!(text(10, None), None);
        assert!(text(10, Some(0.25)).unwrap().contains("100 % of 200"));
        let mut empty = Rows::in_nanoseconds(Vec::new());
        empty.restore_quick_addition(Some(0.25));
        assert_eq!(warning("ops", &empty), None);
    }

    #[test]
    fn the_clock_is_told_finer_than_its_looks_know_it() {
        let mut random = Random::new(11);
        for planted_ghz in [2.9, 3.0, 3.1] {
            let mut row = Row::new("ops", "add", Kind::Latency).planted(10, [(100, 200); 200]);
            for pair in &mut row.pairs {
                // 2,048 additions by a clock of 10 ns; one look in 20 stood still for a while.
                let begin_ns = 10.0 * random.unit();
                let stall_ns = if random.unit() < 0.05 { 300.0 } else { 0.0 };
                let ns = ((begin_ns + 2_048.0 / planted_ghz + stall_ns) / 10.0).floor() * 10.0;
                pair.core = CoreLook { width: 3.9, addition_ticks: ns / 2_048.0 };
            }
            let ghz = hz(&row.pairs, 1.0).unwrap() / 1e9;
            assert!((ghz / planted_ghz - 1.0).abs() < 0.003, "{ghz} instead of {planted_ghz}");
        }
    }

    #[test]
    fn a_cost_has_its_clock_beside_it() {
        let rows = rows(10);
        let cost = rows.cost(&rows.rows[0]);
        assert_eq!(cost.known().and_then(|k| k.core_hz), Some(2e9));
    }
}
