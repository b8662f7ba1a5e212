//! Samples pooled over the runs of a side.

use machmeter_data::Metric;
use machmeter_stats::{quantile, spread};

use crate::comparison::Scale;
use crate::pair::Pair;

/// Variance of the lower quartile of normal values over that of their mean, less 1: `p (1 - p) / phi(z)^2 - 1` for p = 1/4.
const QUARTILE_EXCESS: f64 = 0.857;

/// The samples of all runs of a side, as logarithms.
#[derive(Debug)]
pub(crate) struct Pool {
    quantile: f64,
    sorted: Vec<f64>,
    /// Variance of a sample within its run.
    within: f64,
}

impl Pool {
    /// Of costs taken at equal clocks, which they follow to this `share`; `None` unless every run has its samples, of one quantile.
    pub(crate) fn new(pair: &Pair<'_>, runs: &[&Metric], share: f64) -> Option<Self> {
        if pair.scale != Scale::Relative {
            return None;
        }
        let quantile = runs.first()?.visits.as_ref()?.quantile;
        let (mut sorted, mut residuals) = (Vec::new(), Vec::new());
        for (m, cycle) in runs.iter().zip(pair.cycles(runs)) {
            let visits = m.visits.as_ref().filter(|v| v.quantile == quantile)?;
            let logs: Vec<f64> = visits.all().filter(|v| *v > 0.0).map(|v| v.ln() - share * cycle).collect();
            let middle = quantile::median_of(&logs)?;
            residuals.extend(logs.iter().map(|v| v - middle));
            sorted.extend(logs);
        }
        sorted.sort_by(f64::total_cmp);
        Some(Self { quantile, sorted, within: spread::mad(&residuals)?.powi(2) })
    }

    pub(crate) fn figure(&self) -> Option<f64> {
        quantile::quantile(&self.sorted, self.quantile)
    }

    /// How much larger the variance of the figure is than that of a mean of runs that differ by the variance `of_run`. Where samples differ
    /// by more than runs do it is the same; where the samples of each run lie together it is that of a quartile of the runs.
    pub(crate) fn factor(&self, of_run: f64) -> f64 {
        let all = of_run + self.within;
        1.0 + if all > 0.0 { QUARTILE_EXCESS * of_run / all } else { 0.0 }
    }
}
