//! How often one may look: the error bound is spent over at most five looks, little of it early.
//!
//! The spending function is that of Lan and `DeMets` (Biometrika 70, 1983) of the O'Brien-Fleming type,
//! `alpha(t) = 2 - 2 Phi(z / sqrt t)`. A look may spend what the function has grown since the look before. That the looks'
//! parts add up to the bound makes it valid for any statistic and any dependence between looks (Boole's inequality); the
//! sharper boundaries need normal increments and save a few percent of the runs.
//!
//! The smallest bound at which some look would have rejected is the sequential p-value (Liu and Anderson, Statistics in
//! Medicine 27, 2008); Holm's procedure on sequential p-values keeps the family's error (Maurer and Bretz, Statistics in
//! Biopharmaceutical Research 5, 2013).

use machmeter_stats::distribution::{normal_quantile, normal_sf};

pub(super) const MOST_LOOKS: usize = 5;

/// Rounds before the first look: fewer differences say nothing about their spread.
pub const LEAST_ROUNDS: usize = 4;

/// Bounds above this one are not searched: no verdict is given there.
const LARGEST_BOUND: f64 = 0.2;

/// After which rounds one looks, and what each look may spend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InterimLooks {
    /// Rounds done at each look, ascending.
    pub(super) at: Vec<usize>,
    /// Shares of the planned rounds at each look; the last is 1.
    fractions: Vec<f64>,
}

impl InterimLooks {
    /// The looks of a run of `planned` rounds, of which `recorded` are there. The last look of a run that ended before its
    /// plan (its time was over) may spend all that is left, since its end had nothing to do with the figures; so may one
    /// of a run that got further than its plan.
    pub(super) fn new(planned: usize, recorded: usize) -> Self {
        let planned = planned.max(1);
        let mut at: Vec<usize> = (1..=MOST_LOOKS)
            .map(|k| (planned * k).div_ceil(MOST_LOOKS).max(LEAST_ROUNDS.min(planned)))
            .collect();
        at.dedup();
        at.retain(|r| *r < recorded.min(planned) || (*r == recorded && recorded < planned));
        let mut fractions: Vec<f64> = at.iter().map(|r| *r as f64 / planned as f64).collect();
        if at.last() != Some(&recorded) {
            at.push(recorded);
            fractions.push(1.0);
        }
        Self { at, fractions }
    }

    /// Whether the last look is one of the plan before its end: a run that goes on, or was ended by its figures, may spend
    /// no more than that look's own part there.
    pub(super) fn is_planned_look(&self) -> bool {
        self.fractions.last().is_some_and(|f| *f < 1.0)
    }

    /// The same looks, the last of which may spend all that is left.
    #[must_use]
    pub(super) fn ended(mut self) -> Self {
        if let Some(last) = self.fractions.last_mut() {
            *last = 1.0;
        }
        self
    }

    /// What look `k` may spend of the bound `alpha`.
    pub(super) fn level(&self, k: usize, alpha: f64) -> f64 {
        let before = if k == 0 { 0.0 } else { spent(self.fractions[k - 1], alpha) };
        (spent(self.fractions[k], alpha) - before).max(0.0)
    }

    /// The smallest bound at which look `k` would have rejected a hypothesis of probability `p`; at least `p`, and 1 where
    /// it lies above any bound of interest.
    pub(super) fn sequential_p(&self, k: usize, p: f64) -> f64 {
        if p.is_nan() || self.level(k, LARGEST_BOUND) < p {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, LARGEST_BOUND);
        for _ in 0..40 {
            let middle = f64::midpoint(low, high);
            if self.level(k, middle) >= p { high = middle } else { low = middle }
        }
        high.max(p)
    }
}

/// Part of the bound `alpha` that may be spent until the share `t` of the plan is done.
fn spent(t: f64, alpha: f64) -> f64 {
    if t >= 1.0 {
        return alpha;
    }
    let tail = normal_quantile(1.0 - alpha / 2.0).and_then(|z| normal_sf(z / t.max(1e-9).sqrt()));
    tail.map_or(0.0, |sf| (2.0 * sf).min(alpha))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_spend_the_bound_and_no_more() {
        for planned in 1..60 {
            for recorded in 1..=planned {
                for alpha in [0.05, 0.01, 0.001] {
                    let looks = InterimLooks::new(planned, recorded).ended();
                    assert!(looks.at.len() <= MOST_LOOKS && looks.at.windows(2).all(|w| w[0] < w[1]));
                    assert_eq!(looks.at.last(), Some(&recorded));
                    let sum: f64 = (0..looks.at.len()).map(|k| looks.level(k, alpha)).sum();
                    assert!((sum - alpha).abs() < 1e-12, "{planned} {recorded} {alpha} {sum}");
                }
            }
        }
    }

    #[test]
    fn spending_is_that_of_lan_and_demets() {
        // Reboussin, DeMets, Kim and Lan (2000), two-sided 0.05, O'Brien-Fleming type: cumulative alpha at 0.2, 0.4, 0.6, 0.8.
        for (t, expected) in [(0.2, 0.00001), (0.4, 0.00194), (0.6, 0.01140), (0.8, 0.02843), (1.0, 0.05)] {
            assert!((spent(t, 0.05) - expected).abs() < 1e-5, "{t} {}", spent(t, 0.05));
        }
    }

    #[test]
    fn looks_come_at_the_same_rounds_whatever_was_recorded() {
        assert_eq!(InterimLooks::new(25, 25).at, [5, 10, 15, 20, 25]);
        assert_eq!(InterimLooks::new(25, 10).at, [5, 10]);
        assert!(InterimLooks::new(25, 10).is_planned_look());
        assert_eq!(InterimLooks::new(25, 12).at, [5, 10, 12]);
        assert!(!InterimLooks::new(25, 12).is_planned_look(), "ended by its time");
        assert_eq!(InterimLooks::new(25, 10).level(0, 0.05), InterimLooks::new(25, 25).level(0, 0.05));
        assert_eq!(InterimLooks::new(25, 30).at, [5, 10, 15, 20, 30]);
        assert_eq!(InterimLooks::new(3, 3).at, [3]);
        assert_eq!(InterimLooks::new(6, 6).at, [4, 5, 6]);
    }

    #[test]
    fn the_sequential_p_is_the_inverse_of_the_level() {
        let looks = InterimLooks::new(25, 25);
        for k in 1..5 {
            for alpha in [0.1, 0.05, 0.003] {
                let p = looks.level(k, alpha);
                assert!((looks.sequential_p(k, p) - alpha).abs() < 1e-6, "{k} {alpha}");
            }
        }
        assert_eq!(looks.sequential_p(4, 0.5), 1.0);
        assert_eq!(looks.sequential_p(4, f64::NAN), 1.0);
    }
}
