//! Estimates the dependence of a cost on the core's clock, together with its spread between runs.
//!
//! A cost that the core executes is proportional to the time of a cycle; a cost of waiting for memory is not. Comparisons at equal clocks need this share.

use machmeter_data::metric::FollowsClock;

/// Standard deviation of the logarithm of a clock reading beside a cost. On machines with a fixed clock (chains of additions within 0.01 %), readings differ
/// by 0.07 to 0.13 % between runs.
const CLOCK_SD: f64 = 0.001;

/// Common error of the recorded shares of all runs, because a visit measures its clock to about 0.3 %. In 25 recorded runs, the medians for calls and loops
/// that only the core executes were 0.98 to 1.00 instead of 1.
const COMMON_SD: f64 = 0.02;

/// Dependence of a cost on the time of a core's cycle: 1 if the core executes it completely, 0 if it waits for memory or another CPU.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follows {
    pub(crate) share: f64,
    pub(crate) variance: f64,
}

impl Follows {
    /// Without any data, each share from 0 to 1 is equally likely.
    pub(crate) const ANY: Self = Self { share: 0.5, variance: 1.0 / 12.0 };

    /// Combines the shares that the runs estimated from their own samples; [`Self::ANY`] if none did.
    pub(crate) fn recorded(runs: impl Iterator<Item = FollowsClock>) -> Self {
        let weights: Vec<[f64; 2]> =
            runs.filter(|f| f.sd > 0.0).map(|f| [f.sd.powi(-2), f.share * f.sd.powi(-2)]).collect();
        let [precision, share] = [0, 1].map(|i| weights.iter().map(|w| w[i]).sum::<f64>());
        if precision <= 0.0 {
            return Self::ANY;
        }
        Self { share: share / precision, variance: 1.0 / precision + COMMON_SD * COMMON_SD }
    }

    /// Refines the share by least squares with this prior, from deviations of runs in cost and cycle; costs have the additional error `variance`. It accounts
    /// for the error of the clock itself (Fuller 1987): a constant clock gives no information.
    pub(crate) fn refined(self, deviations: &[[f64; 2]], variance: f64) -> Self {
        let noise = variance + CLOCK_SD * CLOCK_SD;
        let sum = |of: fn(&[f64; 2]) -> f64| deviations.iter().map(of).sum::<f64>() / noise;
        let precision = 1.0 / self.variance + sum(|[_, cycle]| cycle * cycle - CLOCK_SD * CLOCK_SD).max(0.0);
        let share = (self.share / self.variance + sum(|[cost, cycle]| cost * cycle)) / precision;
        if !share.is_finite() {
            return self;
        }
        Self { share: share.clamp(0.0, 1.0), variance: 1.0 / precision }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_runs_learned_counts_by_how_sure_they_were() {
        let run = |(share, sd)| FollowsClock { share, sd };
        let both = Follows::recorded([(1.0, 0.01), (0.5, 0.3)].into_iter().map(run));
        assert!((both.share - 1.0).abs() < 0.01 && both.variance.sqrt() < 0.025, "{both:?}");
        let none = Follows::recorded(std::iter::empty());
        assert!((none.share - 0.5).abs() < 1e-9 && none.variance > 0.08, "{none:?}");
    }

    #[test]
    fn a_clock_that_stands_still_does_not_tell_how_far_a_cost_follows_it() {
        let by = |reach: f64, share: f64| {
            let cycles: Vec<f64> = (0..12).map(|i| reach * f64::from(i % 5 - 2) / 2.0).collect();
            let deviations: Vec<[f64; 2]> = cycles.iter().map(|c| [share * c, *c]).collect();
            Follows::ANY.refined(&deviations, 1e-8)
        };
        let still = by(1.5 * CLOCK_SD, 0.0);
        assert!((0.2..0.8).contains(&still.share) && still.variance > 0.06, "{still:?}");
        for share in [0.0, 1.0] {
            let moved = by(20.0 * CLOCK_SD, share);
            assert!((moved.share - share).abs() < 0.02 && moved.variance < 0.001, "{moved:?}");
        }
    }
}
