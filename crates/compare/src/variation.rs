//! Estimates the spread between runs of a metric without a change.
//!
//! The runs of both sides and earlier runs measure it, each about the median of its group and with its weight ([`crate::weights`]). Metrics of one kind
//! share their spreads (Smyth 2004). A run in another state is included: the spread grows with the shift that it causes. If no run measures the
//! spread, it is assumed.

use machmeter_stats::moderate::{Variance, moderated_at_least};
use machmeter_stats::quantile;

use crate::assumed;
use crate::comparison::{Scale, SpreadFrom};
use crate::follows::Follows;
use crate::pair::Pair;
use crate::weights::Weights;

/// Least number of earlier runs that measure a spread.
const LEAST_EARLIER: usize = 3;
/// Least degrees of freedom of the common spread of similar metrics. With fewer, sides that agree by chance imply a spread that no such row has. Tests put
/// each figure into another state in a third of its runs (`tests/honesty.rs`). False changes occurred in 5 of 60 comparisons of four runs per side with 3.
/// With five runs per side they occurred in 9 of 500 with 5, and in 4 of 500 with 6.
const LEAST_COMMON_DOF: f64 = 6.0;
/// Iterations that alternate between the share of the clock and the remaining variance; two are enough to converge.
const ROUNDS: usize = 3;

/// The variance of a metric's run, and its dependence on the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variation {
    pub(crate) variance: Variance,
    pub(crate) follows: Follows,
    pub(crate) from: SpreadFrom,
}

impl Variation {
    /// Variation among the runs of a pair; `None` if each side has one run and there are too few earlier ones.
    pub(crate) fn of_runs(pair: &Pair<'_>) -> Option<Self> {
        let mut groups = vec![&pair.a, &pair.b];
        let has_earlier = pair.earlier.len() >= LEAST_EARLIER;
        if has_earlier {
            groups.push(&pair.earlier);
        }
        let centered = |runs: &&Vec<&machmeter_data::Metric>| {
            let all = [pair.values(runs), pair.cycles(runs)];
            let [value, cycle] = all.each_ref().map(|v| quantile::median_of(v).unwrap_or_default());
            all[0].iter().zip(&all[1]).map(|(v, c)| [v - value, c - cycle]).collect::<Vec<_>>()
        };
        let deviations: Vec<[f64; 2]> = groups.iter().filter(|g| g.len() > 1).flat_map(centered).collect();
        let weights: Vec<Weights> = groups.iter().map(|runs| Weights::new(pair, runs)).collect();
        let squares = |share: f64| {
            let of =
                groups.iter().zip(&weights).map(|(runs, w)| w.squares(&pair.at_equal_clocks(runs, share)));
            of.fold([0.0, 0.0], |[sum, dof], [s, d]| [sum + s, dof + d])
        };
        let dof = squares(0.0)[1];
        if dof < 1.0 {
            return None;
        }
        let left = |share: f64| squares(share)[0] / dof;
        let recorded = pair.follows();
        let (mut follows, mut value) = (recorded, left(recorded.share));
        for _ in 0..ROUNDS {
            follows = recorded.refined(&deviations, value);
            value = left(follows.share);
        }
        let from = if has_earlier { SpreadFrom::Earlier } else { SpreadFrom::Sides };
        Some(Self { variance: Variance { value, dof }, follows, from })
    }
}

/// Shares variations between similar metrics (one probe, population and scale), relative to the errors of their runs. A metric without a spread takes the
/// common one.
pub(crate) fn lend(pairs: &[(&str, &Pair<'_>)], own: &mut [Option<Variation>]) {
    let kind = |i: usize| (pairs[i].0.split('.').next(), pairs[i].1.population, pairs[i].1.scale);
    let scales: Vec<f64> = pairs.iter().map(|(_, p)| scale(p)).collect();
    let mut done = vec![false; own.len()];
    for i in 0..pairs.len() {
        if done[i] {
            continue;
        }
        let alike: Vec<usize> = (i..pairs.len()).filter(|j| kind(*j) == kind(i)).collect();
        let known: Vec<Variation> = alike.iter().filter_map(|j| own[*j]).collect();
        let of_known = alike.iter().filter(|j| own[**j].is_some());
        let part =
            |(v, j): (&Variation, &usize)| Variance { value: v.variance.value / scales[*j], ..v.variance };
        let parts: Vec<_> = known.iter().zip(of_known).map(part).collect();
        let (lent, common) = moderated_at_least(&parts, LEAST_COMMON_DOF);
        let mut lent = lent.into_iter();
        // The scale of a share is its own interval, which some shares lack.
        let common = common.filter(|_| kind(i).2 == Scale::Relative);
        let from = known.first().map(|v| v.from);
        for j in alike {
            done[j] = true;
            let mine = own[j].and_then(|_| lent.next());
            // Runs that read the same step of a clock agree exactly, but still differ by less than that step.
            let variance = match (mine, common) {
                (Some(v), Some(c)) if v.value <= 0.0 => {
                    let dof = c.dof + v.dof;
                    Some(Variance { value: c.value * c.dof / dof, dof })
                }
                (mine, common) => mine.or(common),
            };
            let found = variance.zip(own[j].map(|v| v.from).or(from));
            own[j] = found.map(|(v, from)| {
                let variance = Variance { value: v.value * scales[j], dof: v.dof };
                Variation {
                    variance,
                    follows: own[j].map_or_else(|| pairs[j].1.follows(), |v| v.follows),
                    from,
                }
            });
        }
    }
}

/// The unit of variance in which a metric shares its spread. Rows with small errors also vary less between runs. For runs without intervals, the assumed
/// variance.
fn scale(pair: &Pair<'_>) -> f64 {
    let runs: Vec<&machmeter_data::Metric> = pair.a.iter().chain(&pair.b).copied().collect();
    let own = pair.own_variances(&runs).and_then(|own| quantile::median_of(&own)).filter(|v| *v > 0.0);
    own.filter(|_| pair.scale == Scale::Relative).unwrap_or_else(|| assumed_sd(pair).powi(2))
}

/// Assumed spread between the runs of this pair beyond their own errors: a standard deviation on its scale, above 0.
pub(crate) fn assumed_sd(pair: &Pair<'_>) -> f64 {
    if pair.scale == Scale::Relative {
        return assumed::sd(pair.a[0], pair.population);
    }
    let own = pair.own_sd_of_all();
    if own > 0.0 { own } else { 1.0 }
}
