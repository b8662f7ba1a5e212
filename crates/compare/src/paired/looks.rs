//! Interim looks: after 2, 4, 8, ... rounds and at the end. A look spends a part of the error bound, in proportion to the rounds since the previous look.
//!
//! The parts add up to the bound, so the looks are valid for any statistic and any dependence between them (Boole's inequality). Linear spending (Kim and
//! `DeMets`, Biometrika 74, 1987, with rho = 1) leaves the last look of a doubling sequence at least a third of the bound. The first looks get enough for a
//! large change, when t has few degrees of freedom.
//!
//! The sequential p-value is the smallest bound at which some look would have rejected (Liu and Anderson, Statistics in Medicine 27, 2008). Holm's procedure
//! on sequential p-values keeps the error of the family (Maurer and Bretz, Statistics in Biopharmaceutical Research 5, 2013).

/// Rounds before the first look. One difference gives no information on the spread of differences.
pub const LEAST_ROUNDS: usize = 2;

/// Rounds after which a look takes place, and the part of the bound that each may spend.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct InterimLooks {
    /// Rounds done at each look, ascending.
    pub(super) at: Vec<usize>,
    /// Fraction of the planned rounds at each look; the last is 1.
    fractions: Vec<f64>,
}

impl InterimLooks {
    /// The looks of a run of `planned` rounds, of which `recorded` exist. A run may end before its plan because its time is over. Its last look may then spend
    /// the complete rest, because the end did not depend on the figures. The same applies to a run that exceeded its plan.
    pub(super) fn new(planned: usize, recorded: usize) -> Self {
        let planned = planned.max(1);
        let doubled = std::iter::successors(Some(LEAST_ROUNDS), |r| r.checked_mul(2));
        // The last look keeps a third of the bound.
        let mut at: Vec<usize> = doubled.take_while(|r| 3 * r <= 2 * planned).collect();
        at.retain(|r| *r <= recorded);
        let mut fractions: Vec<f64> = at.iter().map(|r| *r as f64 / planned as f64).collect();
        if at.last() != Some(&recorded) {
            at.push(recorded);
            fractions.push(1.0);
        }
        Self { at, fractions }
    }

    /// True if the last look is a planned one before the end. A run that continues, or was ended by its figures, may spend only this look's own part there.
    pub(super) fn is_planned_look(&self) -> bool {
        self.fractions.last().is_some_and(|f| *f < 1.0)
    }

    /// The same looks; the last one may spend the complete rest.
    #[must_use]
    pub(super) fn ended(mut self) -> Self {
        if let Some(last) = self.fractions.last_mut() {
            *last = 1.0;
        }
        self
    }

    /// Share of the bound for look `k`.
    pub(super) fn share(&self, k: usize) -> f64 {
        let before = if k == 0 { 0.0 } else { self.fractions[k - 1] };
        self.fractions[k] - before
    }

    /// The smallest bound at which look `k` would have rejected a hypothesis with probability `p`; at most 1.
    pub(super) fn sequential_p(&self, k: usize, p: f64) -> f64 {
        (p / self.share(k)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_looks_spend_the_bound_and_no_more() {
        for planned in 1..=100 {
            for recorded in 1..=planned {
                let looks = InterimLooks::new(planned, recorded).ended();
                assert!(looks.at.len() <= 7 && looks.at.windows(2).all(|w| w[0] < w[1]));
                assert_eq!(looks.at.last(), Some(&recorded));
                let shares: Vec<f64> = (0..looks.at.len()).map(|k| looks.share(k)).collect();
                assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{planned} {recorded} {shares:?}");
                assert!(shares.iter().all(|s| *s > 0.0), "{planned} {recorded} {shares:?}");
                let all = InterimLooks::new(planned, planned);
                assert!(all.share(all.at.len() - 1) >= 1.0 / 3.0 - 1e-9, "{planned}");
            }
        }
    }

    #[test]
    fn looks_come_at_the_same_rounds_whatever_was_recorded() {
        assert_eq!(InterimLooks::new(25, 25).at, [2, 4, 8, 16, 25]);
        assert_eq!(InterimLooks::new(25, 8).at, [2, 4, 8]);
        assert!(InterimLooks::new(25, 8).is_planned_look());
        assert_eq!(InterimLooks::new(25, 12).at, [2, 4, 8, 12]);
        assert!(!InterimLooks::new(25, 12).is_planned_look(), "ended by its time");
        assert_eq!(InterimLooks::new(25, 8).share(0), InterimLooks::new(25, 25).share(0));
        assert_eq!(InterimLooks::new(25, 30).at, [2, 4, 8, 16, 30]);
        assert_eq!(InterimLooks::new(3, 3).at, [2, 3]);
        assert_eq!(InterimLooks::new(2, 2).at, [2]);
        assert_eq!(InterimLooks::new(33, 33).at, [2, 4, 8, 16, 33]);
    }

    #[test]
    fn a_look_rejects_at_its_share_of_the_bound() {
        let looks = InterimLooks::new(25, 25);
        assert!((looks.sequential_p(0, 0.004) - 0.05).abs() < 1e-12, "2 of 25 rounds");
        assert_eq!(looks.sequential_p(4, 0.5), 1.0);
        assert!(InterimLooks::new(8, 8).sequential_p(0, f64::NAN) == 1.0);
    }
}
