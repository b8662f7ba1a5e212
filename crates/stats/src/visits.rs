//! Interval of a median of values that were taken in visits: values of one visit are alike, because whatever the machine did at that
//! moment it did to all of them.
//!
//! Woodruff's method ("Confidence Intervals for Medians and Other Position Measures", J. Am. Stat. Assoc. 1952) with visits as
//! clusters: the share of values below the median has a variance between visits; that of independent values is its lower bound.
//! The ranks that this share may be at bound the median.

use crate::Interval;
use crate::distribution::t_quantile;
use crate::quantile::{median, quantile, quantile_interval, sorted};

/// A pause so many times as long as the usual one from value to value begins another visit.
const PAUSE: f64 = 3.0;
/// Visits from which on their differences are looked at.
const FEWEST: usize = 3;

/// Interval of the median of `values` taken at `times` (ascending, any unit). As [`quantile_interval`] where there are fewer than
/// three visits, and never narrower. `None` for fewer than six values.
pub fn median_interval(times: &[f64], values: &[f64], level: f64) -> Option<Interval> {
    let ordered = sorted(values).ok()?;
    let independent = quantile_interval(&ordered, 0.5, level)?;
    let middle = median(&ordered)?;
    let visits = visits(times);
    let n = values.len().min(times.len());
    if visits.len() < FEWEST {
        return Some(independent);
    }
    // Values equal to the median count half.
    let side = |v: f64| f64::from(u8::from(v > middle)) / 2.0 - f64::from(u8::from(v < middle)) / 2.0;
    let squares: f64 =
        visits.iter().map(|v| values[v.clone()].iter().map(|v| side(*v)).sum::<f64>().powi(2)).sum();
    let count = visits.len() as f64;
    let error = (squares * count / (count - 1.0)).sqrt() / n as f64;
    let reach = t_quantile(f64::midpoint(1.0, level), count - 1.0)? * error;
    let low = quantile(&ordered, (0.5 - reach).max(0.0))?.min(independent.low);
    let high = quantile(&ordered, (0.5 + reach).min(1.0))?.max(independent.high);
    Interval::new(level, low, high)
}

/// Ranges of values without a pause between them.
fn visits(times: &[f64]) -> Vec<std::ops::Range<usize>> {
    let steps: Vec<f64> = times.windows(2).map(|t| t[1] - t[0]).collect();
    let usual = sorted(&steps).ok().and_then(|s| median(&s)).unwrap_or(0.0);
    let mut out = Vec::new();
    let mut first = 0;
    for (i, step) in steps.iter().enumerate() {
        if *step > PAUSE * usual {
            out.push(first..i + 1);
            first = i + 1;
        }
    }
    out.push(first..times.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Values around 10 in visits of `each`, whose levels differ by `between`.
    fn taken(random: &mut Random, visits: usize, each: usize, between: f64) -> (Vec<f64>, Vec<f64>) {
        let (mut times, mut values) = (Vec::new(), Vec::new());
        for v in 0..visits {
            let level = 10.0 + between * random.normal();
            for i in 0..each {
                times.push(v as f64 * 1_000.0 + i as f64 * (1.0 + 0.2 * random.unit()));
                values.push(level + 0.1 * random.normal());
            }
        }
        (times, values)
    }

    #[test]
    fn intervals_cover_the_median_of_independent_and_of_clustered_values() {
        let mut random = Random::new(5);
        for (visits, each, between) in
            [(40, 4, 0.0), (6, 8, 0.0), (40, 4, 0.3), (12, 8, 0.3), (6, 8, 0.1), (3, 20, 0.2)]
        {
            let covers = (0..1_000).filter(|_| {
                let (times, values) = taken(&mut random, visits, each, between);
                median_interval(&times, &values, 0.95).unwrap().contains(10.0)
            });
            let share = covers.count() as f64 / 1_000.0;
            assert!(share >= 0.93, "{visits} visits of {each}, levels apart by {between}: {share}");
        }
    }

    #[test]
    fn one_visit_and_equal_values_are_as_independent() {
        let times: Vec<f64> = (0..20).map(f64::from).collect();
        let values: Vec<f64> = times.iter().map(|t| 5.0 + t % 7.0).collect();
        let independent = quantile_interval(&sorted(&values).unwrap(), 0.5, 0.95);
        assert_eq!(median_interval(&times, &values, 0.95), independent);
        let apart: Vec<f64> = (0..20).map(|i| f64::from(i) + f64::from(i / 4) * 100.0).collect();
        let same = median_interval(&apart, &[3.0; 20], 0.95).unwrap();
        assert_eq!((same.low, same.high), (3.0, 3.0));
        assert_eq!(median_interval(&times[..4], &values[..4], 0.95), None);
    }
}
