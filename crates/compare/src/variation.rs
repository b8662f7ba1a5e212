//! What runs of a metric differ by without a change: learned from the runs of both sides and from earlier ones, each about the median of its
//! group, and from what alike metrics differ by (Smyth 2004). Where no run tells, it is assumed.

use machmeter_stats::moderate::{Variance, moderated};
use machmeter_stats::{distribution::t_quantile, quantile, spread};

use crate::assumed;
use crate::comparison::{Scale, SpreadFrom};
use crate::follows::Follows;
use crate::pair::Pair;

/// Earlier runs that tell a spread at least.
const LEAST_EARLIER: usize = 3;
/// Probability of a residual beyond which one is pulled in: one run in another state is no spread (Huber 1981). Of the normal law it is four
/// standard deviations; few runs know their scale less well, and so it is that of Student's t with their degrees of freedom.
const PULL_IN: f64 = 6.3e-5;
/// Rounds of learning how far a cost follows the clock, and what is left of its variance then: both settle in two.
const ROUNDS: usize = 3;

/// The variance of a run of a metric, and how far it follows the clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variation {
    pub(crate) variance: Variance,
    pub(crate) follows: Follows,
    pub(crate) from: SpreadFrom,
}

impl Variation {
    /// What the runs of a pair differ by among themselves; `None` where each side has one and no earlier ones tell.
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
        let dof = groups.iter().map(|g| g.len().saturating_sub(1)).sum::<usize>() as f64;
        let far = t_quantile(1.0 - PULL_IN / 2.0, dof)?;
        let left = |share: f64| {
            let residuals: Vec<f64> = deviations.iter().map(|[cost, cycle]| cost - share * cycle).collect();
            let reach = far * spread::mad(&residuals)?;
            let pulled = |r: &f64| if reach > 0.0 { r.clamp(-reach, reach) } else { *r };
            Some(residuals.iter().map(|r| pulled(r).powi(2)).sum::<f64>() / dof)
        };
        let (mut follows, mut value) = (Follows::ANY, left(0.0)?);
        for _ in 0..ROUNDS {
            follows = Follows::new(&deviations, value);
            value = left(follows.share)?;
        }
        let from = if has_earlier { SpreadFrom::Earlier } else { SpreadFrom::Sides };
        Some(Self { variance: Variance { value, dof }, follows, from })
    }
}

/// Lets the variations of alike metrics lend to each other, as parts of what is assumed: those of one probe, population and scale. One that
/// has no runs of its own that tell takes what the others have in common.
pub(crate) fn lend(pairs: &[(&str, &Pair<'_>)], own: &mut [Option<Variation>]) {
    let kind = |i: usize| (pairs[i].0.split('.').next(), pairs[i].1.population, pairs[i].1.scale);
    let scales: Vec<f64> = pairs.iter().map(|(_, p)| assumed_sd(p).powi(2)).collect();
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
        let (lent, common) = moderated(&known.iter().zip(of_known).map(part).collect::<Vec<_>>());
        let mut lent = lent.into_iter();
        // A share's scale is its own interval, which not every share has.
        let common = common.filter(|_| kind(i).2 == Scale::Relative);
        let from = known.first().map(|v| v.from);
        for j in alike {
            done[j] = true;
            let mine = own[j].and_then(|_| lent.next());
            // Runs that read the same step of a clock differ by less than they can tell.
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
                Variation { variance, follows: own[j].map_or(Follows::ANY, |v| v.follows), from }
            });
        }
    }
}

/// What runs of this pair are assumed to differ by beyond what they know of themselves: a standard deviation on its scale, above 0.
pub(crate) fn assumed_sd(pair: &Pair<'_>) -> f64 {
    if pair.scale == Scale::Relative {
        return assumed::sd(pair.a[0], pair.population);
    }
    let own = pair.own_sd_of_all();
    if own > 0.0 { own } else { 1.0 }
}
