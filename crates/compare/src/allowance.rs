//! How much two runs of an unchanged machine differ beyond what either run shows: the run-to-run component.
//!
//! Two single runs cannot tell an offset between them from a change. The component comes, in this order, from the caller, from
//! the spread of earlier runs, or from a default taken from a machine where it was measured (`docs/compare.md`).

use machmeter_stats::spread;

use crate::drift::{CANDIDATES, Fit};

/// Earlier runs needed before their spread replaces the default.
pub const MIN_HISTORY: usize = 6;
/// Default run-to-run standard deviation of a metric whose blocks do not vary at all, relative to its level.
const DEFAULT_SD: f64 = 0.015;
/// Default run-to-run standard deviation per standard deviation of the blocks within a run. On the machine it was taken from
/// the ratio lay between 0.8 and 2.2 for seven metrics whose levels of noise differ a hundredfold.
const DEFAULT_SD_PER_BLOCK_SD: f64 = 1.25;
/// Degrees of freedom of the default: run-to-run offsets have heavier tails than the normal law.
const DEFAULT_DOF: f64 = 10.0;
/// The default is multiplied by this when the conditions of the runs are in doubt.
const WEAKENED_FACTOR: f64 = 2.0;

/// The run-to-run variance of one metric on the scale of comparison.
#[derive(Debug, Clone)]
pub(crate) enum Allowance {
    /// Assumed: variance per run and its degrees of freedom.
    Assumed { variance: f64, dof: f64 },
    /// Measured: total variance of the locations of earlier runs, and what those runs show within themselves.
    Measured { total: f64, within: [f64; CANDIDATES], dof: f64 },
}

impl Allowance {
    /// The default for runs whose blocks have the standard deviations `block_sds` about a level of size `level` (1 on a
    /// logarithmic scale).
    pub(crate) fn default_for(block_sds: [f64; 2], level: f64, weakened: bool) -> Self {
        let factor = if weakened { WEAKENED_FACTOR } else { 1.0 };
        let block_variance = f64::midpoint(block_sds[0].powi(2), block_sds[1].powi(2));
        let variance = (DEFAULT_SD * level).powi(2) + DEFAULT_SD_PER_BLOCK_SD.powi(2) * block_variance;
        Self::Assumed { variance: factor.powi(2) * variance, dof: DEFAULT_DOF }
    }

    /// What the caller declared: a standard deviation relative to `level`, taken as known.
    pub(crate) fn declared(relative_sd: f64, level: f64) -> Self {
        Self::Assumed { variance: (relative_sd * level).powi(2), dof: 1e6 }
    }

    /// The spread of at least two earlier runs with these locations and fits.
    pub(crate) fn from_history(locations: &[f64], fits: &[Fit]) -> Option<Self> {
        let total = spread::variance(locations)?;
        let mut within = [0.0; CANDIDATES];
        for fit in fits {
            for (sum, v) in within.iter_mut().zip(&fit.variance) {
                *sum += v / fits.len() as f64;
            }
        }
        Some(Self::Measured { total, within, dof: (locations.len() - 1) as f64 })
    }

    /// How well each candidate goes with the spread between earlier runs: logarithm of its likelihood over that of the best
    /// run-to-run component. A candidate whose drift alone would scatter the runs farther than they were is unlikely.
    pub(crate) fn log_likelihood(&self) -> [f64; CANDIDATES] {
        match self {
            Self::Measured { total, within, dof } if *total > 0.0 => within.map(|expected| {
                let ratio = (total / expected).min(1.0);
                0.5 * dof * (ratio.ln() + 1.0 - ratio)
            }),
            _ => [0.0; CANDIDATES],
        }
    }

    /// Variance and degrees of freedom of the difference of two runs whose locations have the variances of `a` and `b` under
    /// candidate `k` (Welch 1947, Satterthwaite 1946).
    ///
    /// With a history the component is the part of its spread that its runs do not show within themselves, so that a pair as
    /// noisy as the history gets twice the history's variance, and a noisier pair gets more.
    pub(crate) fn difference(&self, a: &Fit, b: &Fit, k: usize) -> (f64, f64) {
        let (va, vb) = (a.variance[k], b.variance[k]);
        // `doubt` is the squared standard error of the component's part, over two, as Satterthwaite's formula needs it.
        let (component, doubt) = match self {
            Self::Assumed { variance, dof } => (2.0 * variance, (2.0 * variance).powi(2) / dof),
            Self::Measured { total, within, dof } => {
                (2.0 * (total - within[k]).max(0.0), (2.0 * total).powi(2) / dof)
            }
        };
        let variance = va + vb + component;
        let doubt = doubt + va * va / a.dof + vb * vb / b.dof;
        let dof = if doubt > 0.0 { (variance * variance / doubt).clamp(1.0, 1e6) } else { 1e6 };
        (variance, dof)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_as_noisy_as_its_history_gets_twice_its_variance() {
        let fit = Fit::flat(1.0, 19.0);
        let h = Allowance::from_history(&[0.0, 4.0, 8.0, 4.0, 4.0], &[fit.clone(), fit.clone()]).unwrap();
        // Variance of the locations: 8, within 1, so 7 between.
        let (variance, dof) = h.difference(&fit, &fit, 0);
        assert!((variance - 16.0).abs() < 1e-12);
        assert!(dof > 3.5 && dof < 4.1, "{dof}");
        let noisy = Fit::flat(10.0, 19.0);
        assert!((h.difference(&fit, &noisy, 0).0 - 25.0).abs() < 1e-12);
    }

    #[test]
    fn drift_that_would_scatter_runs_farther_than_they_were_is_unlikely() {
        let fits = [Fit::flat(4.0, 19.0), Fit::flat(4.0, 19.0)];
        let of = |spread: f64| {
            let locations: Vec<f64> = (0..12).map(|i| spread * f64::from(i % 2)).collect();
            Allowance::from_history(&locations, &fits).unwrap().log_likelihood()[3]
        };
        assert_eq!(of(10.0), 0.0);
        assert!(of(1.0) < -5.0, "{}", of(1.0));
    }

    #[test]
    fn doubtful_conditions_widen_the_default() {
        let still = Fit::flat(0.0, 19.0);
        let of = |weak| Allowance::default_for([0.0, 0.0], 1.0, weak).difference(&still, &still, 0).0.sqrt();
        assert!((of(false) - DEFAULT_SD * 2.0_f64.sqrt()).abs() < 1e-12);
        assert!((of(true) / of(false) - WEAKENED_FACTOR).abs() < 1e-12);
    }
}
