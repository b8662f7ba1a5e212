//! Interval of a quantile of values that were taken in visits: the state of the machine at a visit is common to all its values.
//!
//! Woodruff's method (J. Am. Stat. Assoc. 1952) with visits as clusters: the error of the share of values below the quantile becomes two
//! positions in the sample. It is never less than that of independent values. Few values have no value at such a position: the interval
//! then continues beyond the extreme value as steeply as the sample rises inside it.

use crate::Interval;
use crate::distribution::t_quantile;
use crate::interval::valid_level;
use crate::quantile::{quantile, sorted};

/// Visits from which on their differences are estimated; values of fewer visits are taken as independent.
const FEWEST: usize = 3;
/// Values from which on there is an interval: the error has two degrees of freedom then.
pub const FEWEST_VALUES: usize = 3;

/// Interval of quantile `p` of `values` taken in `visits`: values of one visit stand together and have one number. Beyond the extreme
/// values it continues in ratios where all values are positive. `None` for fewer than [`FEWEST_VALUES`] values, values that are not
/// finite, and a quantile or level outside of (0, 1).
pub fn quantile_interval_of_visits(visits: &[u32], values: &[f64], p: f64, level: f64) -> Option<Interval> {
    let ordered = sorted(values).ok()?;
    if ordered.len() < FEWEST_VALUES || !(p > 0.0 && p < 1.0) || !valid_level(level) {
        return None;
    }
    let (n, point) = (ordered.len() as f64, quantile(&ordered, p)?);
    let sure = f64::midpoint(1.0, level);
    let independent = t_quantile(sure, n - 1.0)? * (p * (1.0 - p) / n).sqrt();
    let clustered = between_visits(visits, values, &ordered, point)
        .and_then(|(variance, freedom)| Some(t_quantile(sure, freedom)? * variance.sqrt()));
    let reach = clustered.unwrap_or(0.0).max(independent);
    let inside = [(p - reach).max(0.0), (p + reach).min(1.0)];
    let [low, high] = [quantile(&ordered, inside[0])?, quantile(&ordered, inside[1])?];
    let beyond = [(reach - p).max(0.0), (p + reach - 1.0).max(0.0)].map(|b| b / (inside[1] - inside[0]));
    let (low, high) = if ordered[0] > 0.0 {
        let ratio = high / low;
        (low * ratio.powf(-beyond[0]), high * ratio.powf(beyond[1]))
    } else {
        (low - beyond[0] * (high - low), high + beyond[1] * (high - low))
    };
    Interval::new(level, low, high)
}

/// Variance of the share of values below `point` by how visits differ in it, with its degrees of freedom; `None` for too few visits.
fn between_visits(visits: &[u32], values: &[f64], ordered: &[f64], point: f64) -> Option<(f64, f64)> {
    let n = ordered.len() as f64;
    let below = ordered.partition_point(|v| *v < point) as f64 / n;
    let up_to = ordered.partition_point(|v| *v <= point) as f64 / n;
    // Values equal to the quantile count half.
    let expected = f64::midpoint(below, up_to);
    let side = |v: f64| f64::from(u8::from(v < point)) / 2.0 + f64::from(u8::from(v <= point)) / 2.0;
    let mut rest = values.iter();
    let sum = |visit: &[u32]| rest.by_ref().take(visit.len()).map(|v| side(*v) - expected).sum::<f64>();
    let sums: Vec<f64> = visits.chunk_by(|a, b| a == b).map(sum).collect();
    if sums.len() < FEWEST {
        return None;
    }
    let (count, squares) = (sums.len() as f64, sums.iter().map(|s| s * s).sum::<f64>());
    Some((squares * count / (count - 1.0) / (n * n), count - 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Visits of one case: their number, values of each, standard deviation of their levels beside that of the values, 0.1.
    type Case = (u32, u32, f64);

    /// Values around 10 in visits whose levels differ; some are lost.
    fn taken(random: &mut Random, (visits, each, between): Case, lost: f64) -> (Vec<u32>, Vec<f64>) {
        let mut out = (Vec::new(), Vec::new());
        for v in 0..visits {
            let level = 10.0 + between * random.normal();
            for _ in 0..each {
                let value = level + 0.1 * random.normal();
                if random.unit() >= lost {
                    out.0.push(v + 1);
                    out.1.push(value);
                }
            }
        }
        out
    }

    /// Share of 1,000 intervals of quantile `p` that hold the true one.
    fn covered(random: &mut Random, case: Case, lost: f64, p: f64) -> f64 {
        let truth = 10.0 + case.2.hypot(0.1) * crate::distribution::normal_quantile(p).unwrap();
        let holds = (0..1_000).filter(|_| {
            let (numbers, values) = taken(random, case, lost);
            quantile_interval_of_visits(&numbers, &values, p, 0.95).is_some_and(|i| i.contains(truth))
        });
        holds.count() as f64 / 1_000.0
    }

    #[test]
    fn intervals_cover_quantiles_of_independent_and_of_clustered_values() {
        let mut random = Random::new(5);
        let few = [(3, 1, 0.0), (4, 1, 0.1), (3, 2, 0.1), (5, 2, 0.1), (3, 20, 0.2)];
        let usual = [(8, 3, 0.0), (8, 3, 0.1), (8, 3, 0.3), (12, 2, 0.1), (6, 8, 0.1), (12, 8, 0.3)];
        let many = [(40, 4, 0.0), (40, 4, 0.3)];
        for case in few.into_iter().chain(usual).chain(many) {
            for p in [0.25, 0.5, 0.75] {
                let share = covered(&mut random, case, 0.0, p);
                // Of few values a median's interval is wider than it need be.
                let most = if p == 0.5 { 0.995 } else { 0.99 };
                assert!((0.9..=most).contains(&share), "{case:?}, quantile {p}: {share}");
            }
        }
    }

    #[test]
    fn visits_that_lost_a_fifth_of_their_values_are_known_by_their_numbers() {
        let share = covered(&mut Random::new(9), (20, 2, 0.3), 0.2, 0.25);
        assert!((0.92..=0.98).contains(&share), "{share}");
    }

    #[test]
    fn one_visit_is_as_independent_and_equal_values_have_no_width() {
        let values: Vec<f64> = (0..20).map(|i| 5.0 + f64::from(i % 7)).collect();
        let of = |visits: &[u32], values: &[f64]| quantile_interval_of_visits(visits, values, 0.25, 0.95);
        let independent = of(&[1; 20], &values).unwrap();
        let by_rank = crate::quantile::quantile_interval(&sorted(&values).unwrap(), 0.25, 0.95).unwrap();
        let same = independent.low == by_rank.low && (independent.high - by_rank.high).abs() < 1.0;
        assert!(same, "{independent:?} {by_rank:?}");
        let apart: Vec<u32> = (0..20).map(|i| i / 4).collect();
        let same = of(&apart, &[3.0; 20]).unwrap();
        assert_eq!((same.low, same.high), (3.0, 3.0));
        assert_eq!(of(&apart[..2], &values[..2]), None);
        assert_eq!(quantile_interval_of_visits(&apart, &values, 1.0, 0.95), None);
    }

    #[test]
    fn three_values_reach_beyond_themselves_and_costs_stay_positive() {
        let of = |values: &[f64]| quantile_interval_of_visits(&[1, 2, 3], values, 0.25, 0.95).unwrap();
        let costs = of(&[1.0, 10.0, 100.0]);
        assert!(costs.low > 0.0 && costs.low < 1.0 && costs.high > 100.0, "{costs:?}");
        let around_zero = of(&[-1.0, 0.0, 1.0]);
        assert!(around_zero.low < -1.0 && around_zero.high > 1.0, "{around_zero:?}");
    }
}
