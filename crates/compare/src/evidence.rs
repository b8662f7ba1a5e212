//! Estimates the change of one metric between two sides, and its error.
//!
//! The change is the shift of Hodges and Lehmann: the median of all differences between runs of the two sides. A single run in another state hardly affects
//! it. One law applies to any number of runs. The variance of a run comes from the runs (see [`crate::variation`]); its own interval counts as one
//! more run. The degrees of freedom grow with the runs of the smaller side. Single figures have the tails of Student's t with three degrees of freedom
//! (`docs/compare.md`); shifts between groups have lighter ones.

use std::collections::BTreeMap;

use machmeter_data::Metric;
use machmeter_stats::distribution::{t_cdf, t_quantile};
use machmeter_stats::{quantile, rank};

use crate::assumed;
use crate::comparison::{Scale, Spread, SpreadFrom};
use crate::pair::Pair;
use crate::variation::{Variation, assumed_sd};
use crate::weights::Weights;

/// Most degrees of freedom in the law of single figures.
const SINGLE_DOF: f64 = 3.0;
/// Weight of a run's own interval relative to the spread between runs: that of one run. If the machine has two states, two or three runs can agree by chance,
/// but their intervals cover both. Without this weight, 8 of 140 comparisons of unchanged real runs had a false change; with it none.
const OWN_DOF: f64 = 1.0;
/// Variance of the shift of Hodges and Lehmann relative to that of a difference of means, for normal errors (Annals of Mathematical Statistics 34, 1963).
const SHIFT_VARIANCE: f64 = std::f64::consts::PI / 3.0;
/// Probability of missing a change of the detectable size.
pub(crate) const MISS: f64 = 0.1;
/// Relative difference up to which two values count as equal.
const RESOLUTION: f64 = 1e-6;

/// The difference of a pair on its scale, and its error.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) scale: Scale,
    /// Difference of the two sides.
    pub(crate) difference: f64,
    /// Part of the difference that the clock of the core explains.
    pub(crate) by_clock: f64,
    /// At equal clocks, the smaller of the shift and the difference of means; 0 if their signs differ. With runs in two states, the shift jumps between the
    /// states and scatters more than its estimated error. The mean does not jump, but a single run in another state moves it.
    pub(crate) least: f64,
    pub(crate) se: f64,
    pub(crate) dof: f64,
    pub(crate) p_rank: Option<f64>,
    pub(crate) spread: Spread,
}

impl Evidence {
    pub(crate) fn at_equal_clocks(&self) -> f64 {
        self.difference - self.by_clock
    }

    /// Two-sided probability of a difference this large at equal clocks without a change.
    pub(crate) fn p(&self) -> f64 {
        self.p_of(self.least)
    }

    /// The same for another difference.
    pub(crate) fn p_of(&self, difference: f64) -> f64 {
        t_cdf(-difference.abs() / self.se, self.dof).map_or(1.0, |p| (2.0 * p).min(1.0))
    }

    /// Distance from zero that a difference without a change exceeds with the two-sided probability `p`.
    pub(crate) fn distance(&self, p: f64, quantiles: &mut Quantiles) -> Option<f64> {
        Some(quantiles.t(1.0 - p / 2.0, self.dof)? * self.se).filter(|d| d.is_finite())
    }

    /// Smallest change that is found at the two-sided bound `p`, except with the probability [`MISS`].
    pub(crate) fn detectable(&self, p: f64, quantiles: &mut Quantiles) -> Option<f64> {
        let change = self.scale.change(self.distance(p, quantiles)? + self.distance(2.0 * MISS, quantiles)?);
        Some(change).filter(|c| c.is_finite())
    }

    /// Probability of a difference at most this large if the sides differ by `margin` or more (Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15,
    /// 1987).
    pub(crate) fn p_outside(&self, margin: f64) -> f64 {
        t_cdf((self.difference.abs() - margin) / self.se, self.dof).unwrap_or(1.0)
    }
}

/// Cache for quantiles of Student's t, which many rows share.
#[derive(Debug, Default)]
pub(crate) struct Quantiles(BTreeMap<[u64; 2], Option<f64>>);

impl Quantiles {
    fn t(&mut self, p: f64, dof: f64) -> Option<f64> {
        *self.0.entry([p.to_bits(), dof.to_bits()]).or_insert_with(|| t_quantile(p, dof))
    }
}

/// Shift and difference of weighted means of two sides, and the factor by which the variance of the shift exceeds that of the means.
struct Difference {
    value: f64,
    of_means: f64,
    factor: f64,
}

/// The evidence of a pair; `None` without any estimate of the error of its figures.
pub(crate) fn weigh(pair: &Pair<'_>, variation: Option<Variation>) -> Option<Evidence> {
    // A single run on a side is judged as a lone run, for example after marked runs were left out. Its state is unknown, even if the runs of other rows agree.
    let is_lone = pair.a.len().min(pair.b.len()) < 2;
    let variation = variation.filter(|v| !is_lone || v.from != SpreadFrom::Sides);
    let plain = difference(pair, 0.0)?;
    let rises = plain.value >= 0.0;
    let [weights_a, weights_b] = [&pair.a, &pair.b].map(|side| Weights::new(pair, side));
    let of_side = |side: &[&Metric], weights: &Weights, above| {
        let runs: Option<Vec<f64>> = side.iter().map(|m| of_run(pair, m, above, variation)).collect();
        Some(weights.mean(&runs?) / weights.runs())
    };
    let follows = variation.map_or_else(|| pair.follows(), |v| v.follows);
    let equal = difference(pair, follows.share)?;
    let [cycle_a, cycle_b] = [&pair.a, &pair.b].map(|side| quantile::median_of(&pair.cycles(side)));
    let slower = cycle_b? - cycle_a?;
    let runs = plain.factor * (of_side(&pair.a, &weights_a, rises)? + of_side(&pair.b, &weights_b, !rises)?);
    let variance = runs + slower.powi(2) * follows.variance;
    let of_a = quantile::median_of(&pair.values(&pair.a))?;
    let least = RESOLUTION * if pair.scale == Scale::Relative { 1.0 } else { of_a.abs() };
    let [in_a, in_b] = [weights_a.runs(), weights_b.runs()];
    let most = most_dof(in_a.min(in_b));
    let dof = variation.map_or(most, |v| v.variance.dof.min(most));
    let from = variation.map_or(SpreadFrom::Assumed, |v| v.from);
    let sd = (variance / (1.0 / in_a + 1.0 / in_b)).sqrt();
    let se = variance.sqrt().max(least);
    let [equal_a, equal_b] = [&pair.a, &pair.b].map(|side| pair.at_equal_clocks(side, follows.share));
    (se > 0.0 && se.is_finite()).then(|| Evidence {
        scale: pair.scale,
        difference: plain.value,
        by_clock: plain.value - equal.value,
        least: lesser(equal.value, equal.of_means),
        se,
        dof,
        p_rank: rank::mann_whitney(&equal_a, &equal_b),
        spread: Spread { sd, dof, from },
    })
}

/// The number closer to 0, if both have the same sign; else 0.
fn lesser(x: f64, y: f64) -> f64 {
    if x * y > 0.0 { x.signum() * x.abs().min(y.abs()) } else { 0.0 }
}

/// Most degrees of freedom with this number of runs on the smaller side: those of a single figure for each run beyond the first. Two runs can both be in
/// another state.
pub(crate) fn most_dof(runs: f64) -> f64 {
    SINGLE_DOF * (runs - 1.0).max(1.0)
}

/// Shift between the sides with costs converted to equal clocks, of which the part `share` follows the clock.
fn difference(pair: &Pair<'_>, share: f64) -> Option<Difference> {
    let [a, b] = [&pair.a, &pair.b].map(|side| pair.at_equal_clocks(side, share));
    // The shift of two single runs is their difference; with many runs it has its variance for normal errors.
    let factor = 1.0 + (SHIFT_VARIANCE - 1.0) * (1.0 - 2.0 / (a.len() + b.len()) as f64);
    let [of_a, of_b] =
        [(&pair.a, &a), (&pair.b, &b)].map(|(side, values)| Weights::new(pair, side).mean(values));
    Some(Difference { value: rank::shift(&a, &b)?, of_means: of_b - of_a, factor })
}

/// Variance of a run's figure: the spread between runs, with the run's own interval as one more estimate. Without a measured spread, it is the interval plus
/// the assumed spread. `None` if runs without intervals agree exactly, because nothing bounds their error. `above`: use the end of the interval that faces
/// the other side.
fn of_run(pair: &Pair<'_>, m: &Metric, above: bool, variation: Option<Variation>) -> Option<f64> {
    let own = |is_known| pair.own_sd(m, above, is_known).map(|sd| sd.powi(2));
    match (variation, pair.scale) {
        (Some(v), Scale::Relative) => {
            let own = own(true).unwrap_or(v.variance.value);
            Some((v.variance.dof * v.variance.value + OWN_DOF * own) / (v.variance.dof + OWN_DOF))
        }
        // A share is never more certain than its samples allow: no misses in 30 frames do not mean none at all.
        (Some(v), Scale::Absolute) => {
            Some(v.variance.value.max(own(true).unwrap_or_default())).filter(|v| *v > 0.0)
        }
        (None, Scale::Relative) => Some(own(false)? + assumed_sd(pair).powi(2)),
        // For a share of time taken by other programs, its variation between runs is the reported effect.
        (None, Scale::Absolute) => {
            let between = assumed::listed(pair.a[0], pair.population).map_or(0.0, |k| k.sd);
            Some(own(false)? + between.powi(2))
        }
    }
}
