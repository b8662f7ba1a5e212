//! Weights of the runs of a side.
//!
//! Some figures of a run include samples that a neighbor disturbed although the filter accepted them. Their own intervals show it. In 18 runs of `ops` (a
//! virtual machine beside neighbors), figures off by more than 2 % had half-widths of 4.6 %, the rest of 1 % (medians). A run therefore counts by the
//! inverse of its variance, as in the analysis of several trials (Cochran, Biometrics 10, 1954). The variance of the median run stands for the variance
//! between runs. Runs in two states with equal errors count equally.

use machmeter_data::Metric;
use machmeter_stats::quantile::median_of;

use crate::comparison::Scale;
use crate::pair::Pair;

/// Weights of the runs of a side; their sum is the number of equal runs with the same information.
#[derive(Debug, Clone)]
pub(crate) struct Weights(Vec<f64>);

impl Weights {
    /// Equal weights for shares, whose intervals grow with their values, and if a run has no interval.
    pub(crate) fn new(pair: &Pair<'_>, runs: &[&Metric]) -> Self {
        let own = pair.own_variances(runs);
        let own = own.filter(|_| pair.scale == Scale::Relative).unwrap_or_default();
        let middle = median_of(&own).filter(|v| *v > 0.0);
        Self::of(middle.map_or_else(
            || vec![1.0; runs.len()],
            |middle| own.iter().map(|v| (v + middle).recip()).collect(),
        ))
    }

    fn of(weights: Vec<f64>) -> Self {
        let (sum, squares) = weights.iter().fold((0.0, 0.0), |(s, q), w| (s + w, q + w * w));
        Self(weights.into_iter().map(|w| w * sum / squares).collect())
    }

    /// The number of equal runs with the same information.
    pub(crate) fn runs(&self) -> f64 {
        self.0.iter().sum()
    }

    pub(crate) fn mean(&self, values: &[f64]) -> f64 {
        self.0.iter().zip(values).map(|(w, v)| w * v).sum::<f64>() / self.runs()
    }

    /// Sum of squares about the median, and its degrees of freedom. About the mean it would be smaller: a few runs in two states would appear to agree.
    pub(crate) fn squares(&self, values: &[f64]) -> [f64; 2] {
        let middle = median_of(values).unwrap_or_default();
        [self.0.iter().zip(values).map(|(w, v)| w * (v - middle).powi(2)).sum(), self.runs() - 1.0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_runs_count_alike_and_one_that_knows_little_hardly() {
        let equal = Weights::of(vec![3.0; 4]);
        assert!((equal.runs() - 4.0).abs() < 1e-12);
        assert_eq!(equal.squares(&[1.0, 2.0, 3.0, 6.0]), [15.0, 3.0]);
        let one_wide = Weights::of(vec![1.0, 1.0, 1.0, 0.01]);
        assert!((one_wide.runs() - 3.02).abs() < 0.01, "{one_wide:?}");
        let values = [1.0, 1.0, 1.0, 100.0];
        assert!(one_wide.mean(&values) < 1.4 && one_wide.squares(&values)[1] < 2.1, "{one_wide:?}");
    }
}
