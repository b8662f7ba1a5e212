//! Samples of a figure, visit by visit. `compare` pools them over the runs of a side.
//!
//! A visit is one uninterrupted series of samples of an operation; the run returns to each operation many times.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::finite::cut_to;

/// Most samples per visit; a larger visit is reduced to quantiles.
const MOST: usize = 16;
/// Digits that a sample keeps.
const DIGITS: usize = 5;

/// The samples behind a figure, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Visits {
    /// The figure is this quantile of all samples: 0.25 for costs, 0.75 for rates.
    pub quantile: f64,
    /// By visit, in time order, each sorted: at most 16 samples, or 16 quantiles of a larger visit.
    pub values: Vec<Vec<f64>>,
}

impl Visits {
    /// Takes the samples of each visit in time order. Values that are not finite and visits without a sample are left out; `None` if nothing is left.
    pub fn new(quantile: f64, visits: impl IntoIterator<Item = Vec<f64>>) -> Option<Self> {
        let values: Vec<Vec<f64>> = visits.into_iter().map(condensed).filter(|v| !v.is_empty()).collect();
        (!values.is_empty()).then_some(Self { quantile, values })
    }

    /// All samples, visit after visit.
    pub fn all(&self) -> impl Iterator<Item = f64> + '_ {
        self.values.iter().flatten().copied()
    }
}

fn condensed(mut samples: Vec<f64>) -> Vec<f64> {
    samples.retain(|v| v.is_finite());
    samples.sort_by(f64::total_cmp);
    let n = samples.len();
    // The middle of each of MOST parts of equal weight.
    let kept = (0..n.min(MOST)).map(|i| samples[if n > MOST { (2 * i + 1) * n / (2 * MOST) } else { i }]);
    kept.map(|v| cut_to(v, DIGITS)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_are_kept_and_of_many_their_quantiles() {
        let few =
            Visits::new(0.25, [vec![3.0, f64::NAN, 1.0], vec![f64::INFINITY], vec![2.000_000_4]]).unwrap();
        assert_eq!(few.values, [vec![1.0, 3.0], vec![2.0]]);
        assert_eq!(few.all().collect::<Vec<_>>(), [1.0, 3.0, 2.0]);
        let many = Visits::new(0.25, [(0..1_000).map(f64::from).collect()]).unwrap();
        assert_eq!(many.values[0].len(), MOST);
        assert!((many.values[0][0] - 31.0).abs() <= 1.0 && (many.values[0][15] - 968.0).abs() <= 1.0);
        assert_eq!(Visits::new(0.25, [vec![], vec![f64::NAN]]), None);
    }
}
