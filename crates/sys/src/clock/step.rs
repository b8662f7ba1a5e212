//! How fine a counter steps. A counter may count in its own unit but be updated less often: AMD Zen's time stamp
//! counter advances by some 26 ticks every 10 ns.

use std::collections::BTreeMap;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StepEstimate {
    /// Greatest common divisor of the differences but for rare ones: a virtual CPU that is moved shifts the
    /// counter's phase, which shows as one odd difference.
    pub step_ticks: u64,
    /// The distance between neighboring values of the counter. Equal to `step_ticks` unless a hypervisor scales the
    /// counter by a fraction: then values lie 25 or 26 ticks apart, say, the divisor is 1 and this is 25.6.
    pub granularity_ticks: f64,
}

/// Multiples up to which a scaled counter is still recognized; rounding adds up to one tick whatever the multiple.
const LARGEST_MULTIPLE: f64 = 6.0;
/// Share of the differences that must be multiples of the step.
const COMMON_SHARE: f64 = 0.98;
/// Share of the small differences that each of two multiples must have.
const MULTIPLE_SHARE: f64 = 0.03;
/// Below this a scaled or bumped step can't be told from a counter that counts every tick.
const SMALLEST_COARSE_TICKS: u64 = 8;

/// The step from differences of successive reads; `None` without any positive one.
pub fn step_from_deltas(deltas_ticks: &[i64]) -> Option<StepEstimate> {
    let positive: Vec<u64> = deltas_ticks.iter().filter(|d| **d > 0).map(|d| d.unsigned_abs()).collect();
    let smallest_ticks = *positive.iter().min()?;
    let coarse_ticks = divisor_of_most(&merge_bumps(&positive));
    // Only a coarse counter can have bumps; in a fine one a difference of 1 is a step like any other.
    let has_bumps = coarse_ticks >= SMALLEST_COARSE_TICKS;
    let step_ticks = if has_bumps { coarse_ticks } else { divisor_of_most(&positive) };
    let scaled = if step_ticks * 4 < smallest_ticks { scaled_step(&positive, smallest_ticks) } else { None };
    Some(StepEstimate { step_ticks, granularity_ticks: scaled.unwrap_or(step_ticks as f64) })
}

/// Adds every difference of 1 to the one that follows it. Some processors (seen on AMD Zen 5) give a read within one step of the
/// read before that value plus one tick, to keep them apart; the next read that waited for a step makes up for it.
fn merge_bumps(positive: &[u64]) -> Vec<u64> {
    let mut merged = Vec::with_capacity(positive.len());
    let mut pending = 0;
    for d in positive {
        pending += d;
        if *d != 1 {
            merged.push(pending);
            pending = 0;
        }
    }
    merged
}

/// The divisor of the most frequent values that together make up [`COMMON_SHARE`] of all: one difference out of line
/// must not turn 26 into 1.
fn divisor_of_most(positive: &[u64]) -> u64 {
    let mut counts = BTreeMap::new();
    for d in positive {
        *counts.entry(*d).or_insert(0_usize) += 1;
    }
    let mut by_count: Vec<(u64, usize)> = counts.into_iter().collect();
    by_count.sort_by_key(|(d, count)| (std::cmp::Reverse(*count), *d));
    let wanted = (positive.len() as f64 * COMMON_SHARE).ceil() as usize;
    let (mut divisor, mut seen) = (0, 0);
    for (d, count) in by_count {
        if seen >= wanted {
            break;
        }
        divisor = gcd(divisor, d);
        seen += count;
    }
    divisor
}

/// The non-integer distance of values. The smallest difference seen is one such distance, or a few where reads take longer.
fn scaled_step(positive: &[u64], smallest_ticks: u64) -> Option<f64> {
    (1..=3).find_map(|steps| scaled_step_near(positive, (smallest_ticks as f64 + 0.5) / f64::from(steps)))
}

/// The same if it is near `guess`: hardly any of the small differences is more than a tick from its multiples, and at least two
/// different multiples were seen often.
fn scaled_step_near(positive: &[u64], guess: f64) -> Option<f64> {
    if guess < SMALLEST_COARSE_TICKS as f64 {
        return None;
    }
    // Each pass uses the multiples found with the last value: larger multiples give a longer lever.
    let mut step = guess;
    for reach in [1.0, 2.0, 4.0, LARGEST_MULTIPLE] {
        let (mut ticks, mut steps) = (0.0, 0.0);
        for d in positive.iter().map(|d| *d as f64).filter(|d| *d < (reach + 0.5) * step) {
            ticks += d;
            steps += (d / step).round();
        }
        if steps > 0.0 {
            step = ticks / steps;
        }
    }
    let near: Vec<f64> =
        positive.iter().map(|d| *d as f64).filter(|d| *d < (LARGEST_MULTIPLE + 0.5) * step).collect();
    let all = near.len() as f64;
    let fitting: Vec<f64> =
        near.into_iter().filter(|d| (d - (d / step).round() * step).abs() <= 1.05).collect();
    // A stray value is no second multiple.
    let often =
        |m: f64| fitting.iter().filter(|d| (**d / step).round() == m).count() as f64 >= MULTIPLE_SHARE * all;
    let multiples = (1..=LARGEST_MULTIPLE as u32).filter(|m| often(f64::from(*m))).count();
    (fitting.len() as f64 >= COMMON_SHARE * all && multiples >= 2).then_some(step)
}

fn gcd(a: u64, b: u64) -> u64 {
    let (mut a, mut b) = (a, b);
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn found(deltas_ticks: &[i64]) -> (u64, f64) {
        let step = step_from_deltas(deltas_ticks).unwrap();
        (step.step_ticks, step.granularity_ticks)
    }

    #[test]
    fn zen_step_of_26_with_zeros_backward_steps_and_preemptions() {
        assert_eq!(found(&[26, 52, 26, 0, -26, 26 * 40_000, 78, 52]), (26, 26.0));
    }

    #[test]
    fn a_counter_that_keeps_reads_apart_by_one_tick_still_steps_by_26() {
        // A counter stepping by 26 every 26 time units, read every 7 to 37: a repeated value is given plus one.
        let (mut t, mut last) = (0_i64, -26_i64);
        let deltas: Vec<i64> = (0..1000)
            .map(|i| {
                t += 7 + i * 11 % 31;
                let value = (t / 26 * 26).max(last + 1);
                let delta = value - last;
                last = value;
                delta
            })
            .collect();
        assert!(deltas.iter().filter(|d| **d == 1).count() > 50 && deltas.contains(&25));
        assert_eq!(found(&deltas), (26, 26.0));
    }

    #[test]
    fn a_few_phase_shifts_do_not_hide_the_step_but_many_odd_values_do() {
        let mut deltas: Vec<i64> = (0..1000).map(|i| 26 * (1 + i % 4)).collect();
        deltas.extend([27, 1_000_003, 53]);
        assert_eq!(found(&deltas), (26, 26.0));
        deltas.extend((0..40).map(|i| 27 + 26 * (i % 4)));
        assert_eq!(found(&deltas).0, 1);
    }

    #[test]
    fn a_counter_that_steps_by_one_is_one() {
        assert_eq!(found(&[17, 18, 21, 30, 1004]), (1, 1.0));
        assert_eq!(found(&[0, 0, 1, 0, 1, 0, 2]), (1, 1.0));
    }

    #[test]
    fn a_scaled_counter_shows_its_real_granularity() {
        // Values floor(k * 25.64): neighbors 25 or 26 apart.
        let value = |k: i64| (k as f64 * 25.64) as i64;
        let mut k = 0;
        let deltas: Vec<i64> = (0..2000)
            .map(|i| {
                let ahead = 1 + i % 3;
                k += ahead;
                value(k) - value(k - ahead)
            })
            .collect();
        let step = step_from_deltas(&deltas).unwrap();
        assert_eq!(step.step_ticks, 1);
        assert!((step.granularity_ticks - 25.64).abs() < 0.05, "{step:?}");
    }

    #[test]
    fn a_scaled_counter_is_seen_although_reads_take_longer_than_a_step() {
        // As a virtual machine on AMD Zen 5 showed it: 10 ns are 24.45 ticks, a read takes 27; once the phase shifted.
        let value = |k: i64| (k as f64 * 24.4543) as i64;
        let mut k = 0;
        let mut deltas: Vec<i64> = (0..2_000)
            .map(|i| {
                let ahead = [2, 3, 2, 4, 2, 3][i % 6];
                k += ahead;
                value(k) - value(k - ahead)
            })
            .collect();
        deltas.push(61);
        let step = step_from_deltas(&deltas).unwrap();
        assert_eq!(step.step_ticks, 1);
        assert!((step.granularity_ticks - 24.4543).abs() < 0.05, "{step:?}");
        // A counter that counts every tick is none of that, however few values its differences have.
        let fine: Vec<i64> = (0..2_000).map(|i| 48 + (i * 7) % 60).collect();
        assert_eq!(step_from_deltas(&fine).unwrap().granularity_ticks, 1.0);
        let narrow: Vec<i64> = (0..2_000).map(|i| if i % 200 == 0 { 61 } else { 26 + i % 3 }).collect();
        assert_eq!(step_from_deltas(&narrow).unwrap().granularity_ticks, 1.0);
    }

    #[test]
    fn without_a_positive_difference_there_is_no_step() {
        assert_eq!(step_from_deltas(&[]), None);
        assert_eq!(step_from_deltas(&[0, -3]), None);
    }

    proptest! {
        #[test]
        fn step_is_found_from_multiples_with_coprime_factors(step in 1_i64..5000, more in proptest::collection::vec(1_i64..50, 0..40)) {
            let mut deltas: Vec<i64> = vec![2 * step, 3 * step];
            deltas.extend(more.iter().map(|m| m * step));
            prop_assert_eq!(step_from_deltas(&deltas).unwrap().step_ticks, step.unsigned_abs());
        }
    }
}
