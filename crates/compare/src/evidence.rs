//! What the runs of two sides say about one metric: the change, and how far apart the sides would be without one.
//!
//! The figure of a side is a quantile of the samples of all its runs, where its records have samples: the lower quartile of costs. A run in
//! a dearer state moves it little, and a run of few samples weighs little. Records without samples have a figure of each run, and the
//! change is the shift of Hodges and Lehmann.
//!
//! One law serves any number of runs. The variance of a run comes from the runs (see [`crate::variation`]). Its degrees of freedom grow with
//! the runs of the side that has fewer: single figures have tails like those of Student's t with three (`docs/compare.md`), and those of groups are
//! lighter. A run's own interval counts only where no other run tells what runs differ by.

use machmeter_data::Metric;
use machmeter_stats::distribution::{t_cdf, t_quantile};
use machmeter_stats::{quantile, rank, spread};

use crate::assumed;
use crate::comparison::{Scale, Spread, SpreadFrom};
use crate::follows::Follows;
use crate::pair::Pair;
use crate::pool::Pool;
use crate::variation::{Variation, assumed_sd};

/// Confidence level of shifts.
const LEVEL: f64 = 0.95;
/// Degrees of freedom granted to what is assumed, which has runs in other states in it.
const ASSUMED_DOF: f64 = 10.0;
/// Degrees of freedom of the law of single figures, at most.
const SINGLE_DOF: f64 = 3.0;
/// Variance of the shift of Hodges and Lehmann over that of a difference of means, for the normal law (Annals of Mathematical Statistics 34, 1963).
const SHIFT_VARIANCE: f64 = std::f64::consts::PI / 3.0;
/// Probability of missing a change of the size given as detectable.
pub(crate) const MISS: f64 = 0.1;
/// Differences below this part of a value are taken for equal.
const RESOLUTION: f64 = 1e-6;

/// The difference of a pair on its scale, and its error.
#[derive(Debug, Clone)]
pub(crate) struct Evidence {
    pub(crate) scale: Scale,
    /// Of the two sides.
    pub(crate) difference: f64,
    /// Of that, what the clock of the core explains.
    pub(crate) by_clock: f64,
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
        self.p_of(self.at_equal_clocks())
    }

    /// The same of another difference.
    pub(crate) fn p_of(&self, difference: f64) -> f64 {
        t_cdf(-difference.abs() / self.se, self.dof).map_or(1.0, |p| (2.0 * p).min(1.0))
    }

    /// Distance from zero that a difference without a change exceeds with the two-sided probability `p`.
    pub(crate) fn distance(&self, p: f64) -> Option<f64> {
        Some(t_quantile(1.0 - p / 2.0, self.dof)? * self.se).filter(|d| d.is_finite())
    }

    /// Smallest change that would have been found at the two-sided bound `p`, but for the probability [`MISS`].
    pub(crate) fn detectable(&self, p: f64) -> Option<f64> {
        let change = self.scale.change(self.distance(p)? + self.distance(2.0 * MISS)?);
        Some(change).filter(|c| c.is_finite())
    }

    /// Probability of a difference at most this large between sides that are `margin` or more apart (Schuirmann, Journal of
    /// Pharmacokinetics and Biopharmaceutics 15, 1987).
    pub(crate) fn p_outside(&self, margin: f64) -> f64 {
        t_cdf((self.difference.abs() - margin) / self.se, self.dof).unwrap_or(1.0)
    }
}

/// Difference of two sides with the factor by which its variance exceeds that of a difference of means of runs.
struct Difference {
    value: f64,
    factor: f64,
}

/// The evidence of a pair; `None` where nothing tells how far its figures could be off.
pub(crate) fn weigh(pair: &Pair<'_>, variation: Option<Variation>) -> Option<Evidence> {
    let plain = difference(pair, 0.0, variation)?;
    let rises = plain.value >= 0.0;
    let of_side = |side: &[&Metric], above| {
        let runs: Option<Vec<f64>> = side.iter().map(|m| of_run(pair, m, above, variation)).collect();
        Some(spread::mean(&runs?)? / side.len() as f64)
    };
    let listed = || assumed::listed(pair.a[0], pair.population).map_or(Follows::ANY, |k| k.follows);
    let follows = variation.map_or_else(listed, |v| v.follows);
    let equal = difference(pair, follows.share, variation)?;
    let [cycle_a, cycle_b] = [&pair.a, &pair.b].map(|side| quantile::median_of(&pair.cycles(side)));
    let slower = cycle_b? - cycle_a?;
    let runs = plain.factor * (of_side(&pair.a, rises)? + of_side(&pair.b, !rises)?);
    let variance = runs + slower.powi(2) * follows.variance;
    let of_a = quantile::median_of(&pair.values(&pair.a))?;
    let least = RESOLUTION * if pair.scale == Scale::Relative { 1.0 } else { of_a.abs() };
    let [in_a, in_b] = [&pair.a, &pair.b].map(|side| side.len() as f64);
    let dof = variation.map_or(ASSUMED_DOF, |v| v.variance.dof.min(most_dof(in_a.min(in_b))));
    let from = variation.map_or(SpreadFrom::Assumed, |v| v.from);
    let sd = (variance / (1.0 / in_a + 1.0 / in_b)).sqrt();
    let se = variance.sqrt().max(least);
    let at_equal_clocks = |side: &[&Metric]| -> Vec<f64> {
        pair.values(side).iter().zip(pair.cycles(side)).map(|(cost, c)| cost - follows.share * c).collect()
    };
    let by_ranks = || rank::mann_whitney(&at_equal_clocks(&pair.a), &at_equal_clocks(&pair.b));
    (se > 0.0 && se.is_finite()).then(|| Evidence {
        scale: pair.scale,
        difference: plain.value,
        by_clock: plain.value - equal.value,
        se,
        dof,
        p_rank: pair.is_of_groups().then(by_ranks).flatten(),
        spread: Spread { sd, dof, from },
    })
}

/// Degrees of freedom at most where the side with fewer runs has so many: those of single figures for each run beyond the first. Two runs are as
/// likely to be both in another state as to tell it.
pub(crate) fn most_dof(runs: f64) -> f64 {
    SINGLE_DOF * (runs - 1.0).max(1.0)
}

/// Difference of the sides where costs that follow the clock to this `share` are taken at equal clocks.
fn difference(pair: &Pair<'_>, share: f64, variation: Option<Variation>) -> Option<Difference> {
    if let [Some(a), Some(b)] = [&pair.a, &pair.b].map(|side| Pool::new(pair, side, share)) {
        let of_run = variation.map_or(0.0, |v| v.variance.value);
        let factor = f64::midpoint(a.factor(of_run), b.factor(of_run));
        return Some(Difference { value: b.figure()? - a.figure()?, factor });
    }
    let [a, b] = [&pair.a, &pair.b].map(|side| -> Vec<f64> {
        pair.values(side).iter().zip(pair.cycles(side)).map(|(cost, cycle)| cost - share * cycle).collect()
    });
    Some(Difference { value: rank::hodges_lehmann(&a, &b, LEVEL)?.estimate, factor: SHIFT_VARIANCE })
}

/// Variance of a run's figure: what runs differ by, which contains what each knows of itself. Only where no run tells is it the run's own
/// interval and what is assumed beyond it. `above`: the end of the interval that faces the other side.
fn of_run(pair: &Pair<'_>, m: &Metric, above: bool, variation: Option<Variation>) -> Option<f64> {
    let own = |is_known| pair.own_sd(m, above, is_known).map(|sd| sd.powi(2));
    match (variation, pair.scale) {
        (Some(v), Scale::Relative) => Some(v.variance.value),
        // A share is never known better than its samples permit: no misses in 30 frames is not none.
        (Some(v), Scale::Absolute) => Some(v.variance.value.max(own(true).unwrap_or_default())),
        (None, Scale::Relative) => Some(own(false)? + assumed_sd(pair).powi(2)),
        // How a share of the time that others took differs from run to run is what it tells.
        (None, Scale::Absolute) => {
            let between = assumed::listed(pair.a[0], pair.population).map_or(0.0, |k| k.sd);
            Some(own(false)? + between.powi(2))
        }
    }
}
