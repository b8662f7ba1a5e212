//! What the runs of two sides say about one metric: the change, and how far apart the sides would be without one.
//!
//! A run is off by what its own interval tells, and by what runs differ by that no run sees of itself: the layout of memory that a
//! process was given. The second comes from the runs themselves: of both sides, and of earlier ones of the first side's state, each about
//! the median of its group. Where there are too few, it is assumed. The clock of the core stands beside each cost; how far a cost follows
//! it is learned from the same runs.

use machmeter_stats::distribution::{t_cdf, t_quantile};
use machmeter_stats::moderate::{Variance, moderated};
use machmeter_stats::{quantile, rank, spread};

use crate::assumed;
use crate::comparison::{Scale, Spread, SpreadFrom};
use crate::pair::Pair;

/// Confidence level of shifts.
const LEVEL: f64 = 0.95;
/// Degrees of freedom granted to the interval of a run, and to what is assumed.
const INTERVAL_DOF: f64 = 10.0;
/// Degrees of freedom of single runs at most: figures of runs have tails like that of Student's t with so few (`docs/compare.md`).
const SINGLE_DOF: f64 = 3.0;
/// Earlier runs that tell a spread at least.
const LEAST_EARLIER: usize = 3;
/// Residuals farther out than this many robust standard deviations are pulled in: one run in another state is no spread (Huber 1981).
const PULL_IN_SD: f64 = 4.0;
/// Variance of the shift of Hodges and Lehmann over that of a difference of means, for the normal law (Annals of Mathematical Statistics 34, 1963).
const SHIFT_VARIANCE: f64 = std::f64::consts::PI / 3.0;
/// Standard deviation of the logarithm of a clock beside a cost: where the clock stands still (chains of additions within 0.01 %) it reads
/// 0.07 to 0.13 % apart from run to run.
const CLOCK_SD: f64 = 0.001;
/// Probability of missing a change of the size given as detectable.
const MISS: f64 = 0.1;
/// Differences below this part of a value are taken for equal.
const RESOLUTION: f64 = 1e-6;

/// Rounds of learning how far a cost follows the clock, and what is left of its variance then: both settle in two.
const ROUNDS: usize = 3;

/// How far a cost follows the time of a cycle of the core: wholly (1) what the core executes, not at all (0) what waits for memory or for
/// others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Follows {
    pub(crate) share: f64,
    pub(crate) variance: f64,
}

impl Follows {
    /// Before anything is known each share from 0 to 1 is as likely.
    pub(crate) const ANY: Self = Self { share: 0.5, variance: 1.0 / 12.0 };

    /// By least squares with that prior, from deviations of runs in cost and cycle; costs are off by `variance` otherwise. What clocks
    /// are off by themselves is allowed for (Fuller 1987): one that stands still tells nothing.
    fn by(deviations: &[[f64; 2]], variance: f64) -> Self {
        let noise = variance + CLOCK_SD * CLOCK_SD;
        let sum = |of: fn(&[f64; 2]) -> f64| deviations.iter().map(of).sum::<f64>() / noise;
        let precision =
            1.0 / Self::ANY.variance + sum(|[_, cycle]| cycle * cycle - CLOCK_SD * CLOCK_SD).max(0.0);
        let share = (Self::ANY.share / Self::ANY.variance + sum(|[cost, cycle]| cost * cycle)) / precision;
        if !share.is_finite() {
            return Self::ANY;
        }
        Self { share: share.clamp(0.0, 1.0), variance: 1.0 / precision }
    }
}

/// What is known about the difference of a pair, on its scale.
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

/// The spread between runs of a metric by its own runs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seen {
    variance: Variance,
    follows: Follows,
    from: SpreadFrom,
}

/// What the runs of a pair differ by among themselves; `None` where each side has one and no earlier ones tell.
pub(crate) fn seen(pair: &Pair<'_>) -> Option<Seen> {
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
    if dof < 1.0 {
        return None;
    }
    let left = |share: f64| {
        let residuals: Vec<f64> = deviations.iter().map(|[cost, cycle]| cost - share * cycle).collect();
        let reach = PULL_IN_SD * spread::mad(&residuals)?;
        let pulled = |r: &f64| if pair.is_of_groups() && reach > 0.0 { r.clamp(-reach, reach) } else { *r };
        Some(residuals.iter().map(|r| pulled(r).powi(2)).sum::<f64>() / dof)
    };
    let (mut follows, mut value) = (Follows::ANY, left(0.0)?);
    for _ in 0..ROUNDS {
        follows = Follows::by(&deviations, value);
        value = left(follows.share)?;
    }
    let from = if has_earlier { SpreadFrom::Earlier } else { SpreadFrom::Sides };
    Some(Seen { variance: Variance { value, dof }, follows, from })
}

/// Lets the spreads of alike metrics lend to each other, as parts of what is assumed: those of one probe, population and scale. One that
/// has too few runs of its own takes what theirs have in common.
pub(crate) fn lend(pairs: &[(&str, &Pair<'_>)], seen: &mut [Option<Seen>]) {
    let kind = |i: usize| (pairs[i].0.split('.').next(), pairs[i].1.population, pairs[i].1.scale);
    let scales: Vec<f64> = pairs.iter().map(|(_, p)| assumed(p).powi(2)).collect();
    let mut done = vec![false; seen.len()];
    for i in 0..pairs.len() {
        if done[i] {
            continue;
        }
        let alike: Vec<usize> = (i..pairs.len()).filter(|j| kind(*j) == kind(i)).collect();
        let known: Vec<Seen> = alike.iter().filter_map(|j| seen[*j]).collect();
        let of_known = alike.iter().filter(|j| seen[**j].is_some());
        let part = |(s, j): (&Seen, &usize)| Variance { value: s.variance.value / scales[*j], ..s.variance };
        let (lent, common) = moderated(&known.iter().zip(of_known).map(part).collect::<Vec<_>>());
        let mut lent = lent.into_iter();
        // A share's scale is its own interval, which not every share has.
        let common = common.filter(|_| kind(i).2 == Scale::Relative);
        let from = known.first().map(|s| s.from);
        for j in alike {
            done[j] = true;
            let own = if seen[j].is_some() { lent.next() } else { common };
            let told = own.zip(seen[j].map(|s| s.from).or(from));
            seen[j] = told.map(|(v, from)| {
                let value = v.value * scales[j];
                let follows = seen[j].map_or(Follows::ANY, |s| s.follows);
                Seen { variance: Variance { value, dof: v.dof }, follows, from }
            });
        }
    }
}

/// The evidence of a pair; `None` where nothing tells how far its figures could be off.
pub(crate) fn weigh(pair: &Pair<'_>, seen: Option<Seen>) -> Option<Evidence> {
    let (a, b) = (pair.values(&pair.a), pair.values(&pair.b));
    let difference = rank::hodges_lehmann(&a, &b, LEVEL)?.estimate;
    let rises = difference >= 0.0;
    // A share of the time that others had is taken by its own variance: how it differs from run to run is what it tells.
    let between = match pair.scale {
        Scale::Relative => assumed(pair),
        Scale::Absolute => assumed::listed(pair.a[0], pair.population).map_or(0.0, |k| k.sd),
    };
    // Variance of a run: what runs were seen to differ by, which has what they know of themselves in it; of few runs not below that.
    let of_run = |own: Option<f64>| match seen {
        Some(s) if pair.is_of_groups() => Some(s.variance.value),
        Some(s) => Some(s.variance.value.max(own.unwrap_or_default().powi(2))),
        None => own.map(|own| own.powi(2) + between.powi(2)),
    };
    let of_side = |side: &[&machmeter_data::Metric], above| {
        let runs: Option<Vec<f64>> =
            side.iter().map(|m| of_run(pair.own_sd(m, above, seen.is_some()))).collect();
        Some(spread::mean(&runs?)? / side.len() as f64)
    };
    let shift = if a.len() + b.len() > 2 { SHIFT_VARIANCE } else { 1.0 };
    let listed = || assumed::listed(pair.a[0], pair.population).map_or(Follows::ANY, |k| k.follows);
    let follows = seen.map_or_else(listed, |s| s.follows);
    let [cycles_a, cycles_b] = [&pair.a, &pair.b].map(|side| pair.cycles(side));
    let equal = |costs: &[f64], cycles: &[f64]| -> Vec<f64> {
        costs.iter().zip(cycles).map(|(cost, cycle)| cost - follows.share * cycle).collect()
    };
    let (equal_a, equal_b) = (equal(&a, &cycles_a), equal(&b, &cycles_b));
    let at_equal_clocks = rank::hodges_lehmann(&equal_a, &equal_b, LEVEL)?.estimate;
    let slower = quantile::median_of(&cycles_b)? - quantile::median_of(&cycles_a)?;
    let variance =
        shift * (of_side(&pair.a, rises)? + of_side(&pair.b, !rises)?) + slower.powi(2) * follows.variance;
    let least = RESOLUTION * if pair.scale == Scale::Relative { 1.0 } else { quantile::median_of(&a)?.abs() };
    let dof = match seen {
        Some(s) if pair.is_of_groups() => s.variance.dof,
        Some(s) => s.variance.dof.min(SINGLE_DOF),
        // What is assumed has runs in other states in it.
        None => INTERVAL_DOF,
    };
    let from = seen.map_or(SpreadFrom::Assumed, |s| s.from);
    let sd = (variance / (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    let se = variance.sqrt().max(least);
    (se > 0.0 && se.is_finite()).then(|| Evidence {
        scale: pair.scale,
        difference,
        by_clock: difference - at_equal_clocks,
        se,
        dof,
        p_rank: pair.is_of_groups().then(|| rank::mann_whitney(&equal_a, &equal_b)).flatten(),
        spread: Spread { sd, dof, from },
    })
}

/// What runs of this pair are assumed to differ by beyond what they know of themselves: a standard deviation on its scale, above 0.
fn assumed(pair: &Pair<'_>) -> f64 {
    if pair.scale == Scale::Relative {
        return assumed::sd(pair.a[0], pair.population);
    }
    let own = pair.own_sd_of_all();
    if own > 0.0 { own } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_stands_still_does_not_tell_how_far_a_cost_follows_it() {
        let by = |reach: f64, share: f64| {
            let cycles: Vec<f64> = (0..12).map(|i| reach * f64::from(i % 5 - 2) / 2.0).collect();
            let deviations: Vec<[f64; 2]> = cycles.iter().map(|c| [share * c, *c]).collect();
            Follows::by(&deviations, 1e-8)
        };
        let still = by(1.5 * CLOCK_SD, 0.0);
        assert!((0.2..0.8).contains(&still.share) && still.variance > 0.06, "{still:?}");
        for share in [0.0, 1.0] {
            let moved = by(20.0 * CLOCK_SD, share);
            assert!((moved.share - share).abs() < 0.02 && moved.variance < 0.001, "{moved:?}");
        }
    }
}
