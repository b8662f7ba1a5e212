//! Interval of a median of values that were taken in visits: what the machine did at that moment it did to all of a visit.
//!
//! Woodruff's method (J. Am. Stat. Assoc. 1952) with visits as clusters; never narrower than of independent values.

use crate::Interval;
use crate::distribution::t_quantile;
use crate::quantile::{median, quantile, quantile_interval, sorted};

/// Visits from which on their differences are looked at.
const FEWEST: usize = 3;

/// Interval of the median of `values` taken in `visits`: values of one visit stand together and have one number. As
/// [`quantile_interval`] where there are fewer than three visits, and never narrower. `None` for fewer than six values.
pub fn median_interval(visits: &[u32], values: &[f64], level: f64) -> Option<Interval> {
    let ordered = sorted(values).ok()?;
    let independent = quantile_interval(&ordered, 0.5, level)?;
    let middle = median(&ordered)?;
    // Values equal to the median count half.
    let side = |v: f64| f64::from(u8::from(v > middle)) / 2.0 - f64::from(u8::from(v < middle)) / 2.0;
    let mut sums = Vec::new();
    let mut rest = values.iter();
    for visit in visits.chunk_by(|a, b| a == b) {
        sums.push(rest.by_ref().take(visit.len()).map(|v| side(*v)).sum::<f64>());
    }
    if sums.len() < FEWEST {
        return Some(independent);
    }
    let squares: f64 = sums.iter().map(|s| s * s).sum();
    let count = sums.len() as f64;
    let error = (squares * count / (count - 1.0)).sqrt() / values.len() as f64;
    let reach = t_quantile(f64::midpoint(1.0, level), count - 1.0)? * error;
    let low = quantile(&ordered, (0.5 - reach).max(0.0))?.min(independent.low);
    let high = quantile(&ordered, (0.5 + reach).min(1.0))?.max(independent.high);
    Interval::new(level, low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Values around 10 in visits of `each`, whose levels differ by `between`.
    fn taken(random: &mut Random, visits: u32, each: usize, between: f64) -> (Vec<u32>, Vec<f64>) {
        let (mut numbers, mut values) = (Vec::new(), Vec::new());
        for v in 0..visits {
            let level = 10.0 + between * random.normal();
            for _ in 0..each {
                numbers.push(v + 1);
                values.push(level + 0.1 * random.normal());
            }
        }
        (numbers, values)
    }

    /// Share of 1,000 intervals that hold 10.
    fn covered(mut taken: impl FnMut() -> (Vec<u32>, Vec<f64>)) -> f64 {
        let holds = (0..1_000).filter(|_| {
            let (numbers, values) = taken();
            median_interval(&numbers, &values, 0.95).unwrap().contains(10.0)
        });
        holds.count() as f64 / 1_000.0
    }

    #[test]
    fn intervals_cover_the_median_of_independent_and_of_clustered_values() {
        let mut random = Random::new(5);
        for (visits, each, between) in
            [(40, 4, 0.0), (6, 8, 0.0), (40, 4, 0.3), (12, 8, 0.3), (6, 8, 0.1), (3, 20, 0.2)]
        {
            let share = covered(|| taken(&mut random, visits, each, between));
            assert!(share >= 0.93, "{visits} visits of {each}, levels apart by {between}: {share}");
        }
    }

    #[test]
    fn visits_of_which_a_fifth_is_lost_are_known_by_their_numbers() {
        let mut random = Random::new(9);
        let share = covered(|| {
            let (numbers, values) = taken(&mut random, 20, 2, 0.3);
            numbers.into_iter().zip(values).filter(|_| random.unit() < 0.8).unzip()
        });
        assert!(share >= 0.93, "{share}");
    }

    #[test]
    fn one_visit_and_equal_values_are_as_independent() {
        let values: Vec<f64> = (0..20).map(|i| 5.0 + f64::from(i % 7)).collect();
        let independent = quantile_interval(&sorted(&values).unwrap(), 0.5, 0.95);
        assert_eq!(median_interval(&[1; 20], &values, 0.95), independent);
        let apart: Vec<u32> = (0..20).map(|i| i / 4).collect();
        let same = median_interval(&apart, &[3.0; 20], 0.95).unwrap();
        assert_eq!((same.low, same.high), (3.0, 3.0));
        assert_eq!(median_interval(&apart[..4], &values[..4], 0.95), None);
    }
}
