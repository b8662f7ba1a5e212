//! How far a cost follows the time of a cycle, where some of its values are disturbed.
//!
//! A cost is made of a share that the core executes, in proportion to the time of a cycle, and of a rest that does not know the clock. The
//! share starts at the one that brings half of the values closest together (least median of squares: Rousseeuw, Journal of the American
//! Statistical Association 79, 1984), which other values cannot move, and ends at least squares over the values near that line. A share that
//! the values do not tell is one half, with the uncertainty of any from 0 to 1.

use crate::distribution::{normal_quantile, t_quantile};
use crate::quantile::{median_of, sorted};
use crate::spread::{mad, mean};

/// Shares that are tried first.
const SHARES: usize = 20;
/// Fewest values that are searched for a half that agrees.
const FEWEST: usize = 5;
/// Values farther from the line than this many robust deviations are left out, which of n values are too small by 1 + 5 / (n - 2)
/// (Rousseeuw and Leroy, Robust Regression and Outlier Detection, 1987, section 5.1).
const REACH: f64 = 2.5;
const TOO_SMALL_OF_FEW: f64 = 5.0;
/// Rounds of least squares; which values are left out does not change after two.
const ROUNDS: usize = 3;
/// Least deviation of a value from the line: two readings of a clock hardly agree better.
const LEAST_SD: f64 = 1e-3;

/// How far a cost follows the time of a cycle.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Follows {
    /// Share of the cost, at the clock that ratios are taken to, that the core executes: from 0 to 1.
    pub share: f64,
    /// Standard deviation of the share.
    pub sd: f64,
}

impl Follows {
    /// Before anything is known each share from 0 to 1 is as likely.
    pub const ANY: Self = Self { share: 0.5, sd: 0.288_675 };

    /// By pairs of the ratio of the time of a cycle to that of the clock of interest, and the logarithm of the cost meanwhile.
    pub fn of(pairs: &[[f64; 2]]) -> Self {
        let mut found = Self { share: first(pairs), ..Self::ANY };
        for _ in 0..ROUNDS {
            let Some(next) = found.refined(pairs) else { return Self::ANY };
            found = next;
        }
        found
    }

    /// What the cost is at this ratio of the time of a cycle, as a multiple of what it is at the clock of interest.
    pub fn factor(self, cycle: f64) -> f64 {
        1.0 + self.share * (cycle - 1.0)
    }

    /// Least squares about the line of this share, over the values near it (Gauss and Newton).
    fn refined(self, pairs: &[[f64; 2]]) -> Option<Self> {
        let rest = |[cycle, ln]: &[f64; 2]| ln - self.factor(*cycle).ln();
        let rests: Vec<f64> = pairs.iter().map(rest).collect();
        let few = 1.0 + TOO_SMALL_OF_FEW / rests.len().saturating_sub(2).max(1) as f64;
        let (middle, reach) = (median_of(&rests)?, REACH * few * mad(&rests)?.max(LEAST_SD));
        let near = || pairs.iter().zip(&rests).filter(|(_, rest)| (*rest - middle).abs() <= reach);
        let slopes: Vec<f64> = near().map(|([cycle, _], _)| (cycle - 1.0) / self.factor(*cycle)).collect();
        let rests: Vec<f64> = near().map(|(_, rest)| *rest).collect();
        let (x, y) = (mean(&slopes)?, mean(&rests)?);
        let sum =
            |of: fn(f64, f64) -> f64| slopes.iter().zip(&rests).map(|(a, b)| of(a - x, b - y)).sum::<f64>();
        let dof = rests.len().saturating_sub(2).max(1) as f64;
        // Few values know their own variance badly: Student's law, as wide as a normal one at 95 %.
        let wider = t_quantile(0.975, dof)? / normal_quantile(0.975)?;
        let variance = (sum(|_, b| b * b) / dof).max(LEAST_SD * LEAST_SD) * wider * wider;
        let prior = Self::ANY.sd.powi(-2);
        let precision = prior + sum(|a, _| a * a) / variance;
        let step = (prior * (Self::ANY.share - self.share) + sum(|a, b| a * b) / variance) / precision;
        let share = self.share + step;
        share.is_finite().then(|| Self { share: share.clamp(0.0, 1.0), sd: precision.powf(-0.5) })
    }
}

/// The share that brings half of the values closest together; one half where there are too few.
fn first(pairs: &[[f64; 2]]) -> f64 {
    let shares = (0..=SHARES).map(|i| i as f64 / SHARES as f64).filter(|_| pairs.len() >= FEWEST);
    let width = |share: f64| {
        let line = Follows { share, ..Follows::ANY };
        let rests: Vec<f64> = pairs.iter().map(|[cycle, ln]| ln - line.factor(*cycle).ln()).collect();
        shortest_half(&rests).unwrap_or(f64::INFINITY)
    };
    let best = shares.map(|s| (s, width(s))).min_by(|a, b| a.1.total_cmp(&b.1));
    best.map_or(Follows::ANY.share, |(share, _)| share)
}

fn shortest_half(values: &[f64]) -> Option<f64> {
    let sorted = sorted(values).ok()?;
    let half = sorted.len() / 2 + 1;
    sorted.windows(half).map(|w| w[half - 1] - w[0]).min_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Visits of two values on clocks in steps of 3 %, of which `wild` in ten cost half as much again.
    fn planted(share: f64, visits: usize, scatter: f64, wild: usize, random: &mut Random) -> Vec<[f64; 2]> {
        let visit = |v: usize| {
            let cycle = 3.0 / (3.0 - 0.1 * (random.unit() * 6.0).floor());
            let value = |random: &mut Random| {
                let disturbed = if v % 10 < wild { 0.4 * random.unit() } else { 0.0 };
                let ln = (1.0 + share * (cycle - 1.0)).ln() + scatter * random.normal() + disturbed;
                [cycle * (1.0 + 0.003 * random.normal()), ln]
            };
            [value(random), value(random)]
        };
        (0..visits).flat_map(visit).collect()
    }

    #[test]
    fn the_share_is_found_beside_disturbed_values() {
        let mut random = Random::new(7);
        for share in [0.0, 0.3, 1.0] {
            for wild in [0, 3] {
                let off: Vec<f64> = (0..200)
                    .map(|_| Follows::of(&planted(share, 10, 0.003, wild, &mut random)).share - share)
                    .collect();
                let (middle, spread) = (median_of(&off).unwrap(), mad(&off).unwrap());
                assert!(middle.abs() < 0.03 && spread < 0.06, "{share}, {wild} in ten: {middle} +- {spread}");
            }
        }
    }

    #[test]
    fn the_deviation_of_a_share_covers_what_it_is_off_by() {
        let mut random = Random::new(8);
        for (visits, scatter) in [(4, 0.01), (10, 0.003), (20, 0.02)] {
            let is_covered = |_: &usize| {
                let f = Follows::of(&planted(0.6, visits, scatter, 0, &mut random));
                (f.share - 0.6).abs() <= 1.96 * f.sd
            };
            let covered = (0..400).filter(is_covered).count();
            assert!(covered >= 340, "{covered} of 400 at {visits} visits, {scatter}");
        }
    }

    #[test]
    fn what_stands_still_tells_no_share() {
        let mut random = Random::new(9);
        for n in [0, 1, 3, 40] {
            let still: Vec<[f64; 2]> = (0..n).map(|_| [1.0, 5.0 + 0.01 * random.normal()]).collect();
            let f = Follows::of(&still);
            assert!((f.share - 0.5).abs() < 1e-9 && f.sd > 0.28, "{n}: {f:?}");
        }
    }
}
