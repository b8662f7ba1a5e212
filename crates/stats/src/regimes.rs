//! Levels between which a series jumps, as costs between two CPUs of a guest do with their placement. A level is a mode of the
//! density of logarithms, a given factor from the next, with a valley between that the samples prove. Disturbed samples are dense
//! nowhere; they take the level of their neighbors in time.

use crate::distribution::binomial_cdf;
use crate::error::{StatsError, check, check_pair, out_of_range};
use crate::interval::Interval;
use crate::quantile::{median, quantile_interval, sorted};
use crate::serial;

/// Density between two levels relative to the lower of their peaks, at most.
const VALLEY: f64 = 0.5;
/// Chance that a peak and its valley are equally dense, at most: for levels of at least [`LARGE`] of the samples, and for
/// smaller ones, of which a long tail offers many.
const CHANCE: (f64, f64) = (1e-3, 1e-5);
const LARGE: f64 = 0.05;
/// Samples that stay on a level for so many in a row on average need less of other proof, if there are so many.
const PERSISTENT_RUN: f64 = 3.0;
const PERSISTENT_SAMPLES: usize = 6;
const PERSISTENT_CHANCE: f64 = 0.05;
/// Mean length of stays from which on a single sample on another level than all its neighbors is a disturbance.
const STEADY_STAY: f64 = 5.0;

/// Ratio from which on two costs are of two levels, not one that scatters.
pub const LEVEL_RATIO: f64 = 1.5;

#[derive(Debug, Clone, PartialEq)]
pub struct Regime {
    /// Median of its samples.
    pub center: f64,
    /// Rank interval of the median; `None` with fewer than 6 samples.
    pub interval: Option<Interval>,
    /// Share of the time of the series.
    pub share: f64,
    /// Interval of the share that respects how long stays last; `None` for too short a series.
    pub share_interval: Option<Interval>,
    /// Samples whose value lies on it.
    pub n: usize,
    /// Times it was entered.
    pub stays: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Regimes {
    /// Levels, ascending.
    pub regimes: Vec<Regime>,
    /// Index of the level of each sample.
    pub tags: Vec<usize>,
}

impl Regimes {
    /// Index of the level with the largest share of the time.
    pub fn main(&self) -> usize {
        let share = |i: &usize| self.regimes.get(*i).map_or(0.0, |r| r.share);
        (0..self.regimes.len()).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(0)
    }

    /// Level nearest to `value` on the logarithm.
    pub fn nearest(&self, value: f64) -> usize {
        let distance = |i: &usize| (value / self.regimes[*i].center).ln().abs();
        (0..self.regimes.len()).min_by(|a, b| distance(a).total_cmp(&distance(b))).unwrap_or(0)
    }
}

/// Name of level `i` of `n` by rising value, for keys: `near` for the first, which may be the only one, `far` for the last, else
/// `level 2 of 3`. It does not depend on how often a run saw the level.
pub fn level_name(i: usize, n: usize) -> String {
    match i {
        0 => "near".to_owned(),
        i if i + 1 == n => "far".to_owned(),
        i => format!("level {} of {n}", i + 1),
    }
}

/// Finds the levels, at least a factor of `gap` apart, of `values` taken at `times` (ascending, any unit). A sample stands for the
/// time half way to its neighbors; `level` is the confidence of the intervals.
/// Errors: no sample, values that are not positive and finite, times that go backward, a gap of 1 or less.
pub fn regimes(times: &[f64], values: &[f64], gap: f64, level: f64) -> Result<Regimes, StatsError> {
    check_pair("times and values", times.len(), values.len())?;
    check("values", values, 1)?;
    check("times", times, 1)?;
    if !(gap > 1.0 && gap.is_finite()) {
        return Err(out_of_range("gap", gap, "above 1"));
    }
    if let Some(bad) = values.iter().find(|v| **v <= 0.0) {
        return Err(out_of_range("value", *bad, "above 0"));
    }
    if let Some(w) = times.windows(2).find(|w| w[1] < w[0]) {
        return Err(out_of_range("time", w[1], "not before the one before"));
    }
    let logs: Vec<f64> = values.iter().map(|v| v.ln()).collect();
    let gap = gap.ln();
    let levels = levels(&logs, gap);
    let by_value: Vec<Option<usize>> = logs.iter().map(|x| levels.of(*x, gap)).collect();
    let tags = steady(&filled(times, &by_value));
    let weights = weights(times);
    let all: f64 = weights.iter().sum();
    let regime = |k: usize| -> Result<Regime, StatsError> {
        let own = values.iter().zip(&by_value).filter(|(_, t)| **t == Some(k)).map(|(v, _)| *v);
        let own = sorted(&own.collect::<Vec<_>>())?;
        let hits: Vec<bool> = tags.iter().map(|t| *t == k).collect();
        let spent: f64 = weights.iter().zip(&hits).filter(|(_, hit)| **hit).map(|(w, _)| w).sum();
        let share = (spent / all).clamp(0.0, 1.0);
        let like = serial::share_interval(&hits, &logs, &[hits.len()], level).ok().map(|e| e.interval);
        Ok(Regime {
            center: median(&own).unwrap_or_else(|| levels.peaks[k].exp()),
            interval: quantile_interval(&own, 0.5, level),
            share,
            share_interval: like.and_then(|i| Interval::new(i.level, i.low.min(share), i.high.max(share))),
            n: own.len(),
            stays: hits.windows(2).filter(|w| w[1] && !w[0]).count() + usize::from(hits[0]),
        })
    };
    let regimes = (0..levels.peaks.len()).map(regime).collect::<Result<_, _>>()?;
    Ok(Regimes { regimes, tags })
}

/// Modes of the logarithms and the valleys between them.
struct Levels {
    peaks: Vec<f64>,
    valleys: Vec<f64>,
}

impl Levels {
    /// The level that a value lies on; none for one too far from its level's mode.
    fn of(&self, x: f64, gap: f64) -> Option<usize> {
        let k = self.valleys.iter().filter(|v| x >= **v).count();
        ((x - self.peaks[k]).abs() <= gap / 2.0).then_some(k)
    }
}

fn levels(logs: &[f64], gap: f64) -> Levels {
    let mut ordered = logs.to_vec();
    ordered.sort_unstable_by(f64::total_cmp);
    let density = Density::of(&ordered, gap / 4.0);
    let mut peaks = density.peaks();
    loop {
        let cuts: Vec<usize> = peaks.windows(2).map(|w| density.lowest(w[0], w[1])).collect();
        let lower = |i: usize| density.at[peaks[i]].min(density.at[peaks[i + 1]]);
        let depth = |i: usize| density.at[cuts[i]] / lower(i).max(f64::MIN_POSITIVE);
        // The pair least apart is joined first, until all pairs are apart.
        let joined = (0..cuts.len())
            .filter(|i| !apart(&density, logs, &ordered, gap, [peaks[*i], cuts[*i], peaks[*i + 1]]))
            .max_by(|a, b| depth(*a).total_cmp(&depth(*b)));
        let Some(i) = joined else {
            let x = |at: &usize| density.x(*at);
            return Levels { peaks: peaks.iter().map(x).collect(), valleys: cuts.iter().map(x).collect() };
        };
        let lower = if density.at[peaks[i]] < density.at[peaks[i + 1]] { i } else { i + 1 };
        peaks.remove(lower);
    }
}

/// Whether two neighboring peaks are two levels: far apart, with a deep valley, and more samples on the smaller than by chance.
fn apart(density: &Density, logs: &[f64], ordered: &[f64], gap: f64, [left, cut, right]: [usize; 3]) -> bool {
    let smaller = if density.at[left] < density.at[right] { left } else { right };
    if density.x(right) - density.x(left) < gap || density.at[cut] > VALLEY * density.at[smaller] {
        return false;
    }
    let half = gap / 4.0;
    let within =
        |at: f64| ordered.partition_point(|x| *x <= at + half) - ordered.partition_point(|x| *x < at - half);
    let peak = density.x(smaller);
    let (on_peak, in_valley) = (within(peak), within(density.x(cut)));
    let all = (on_peak + in_valley) as u64;
    let chance = binomial_cdf(in_valley as u64, all, 0.5).unwrap_or(1.0);
    let large = on_peak as f64 >= LARGE * logs.len() as f64;
    if chance < if large { CHANCE.0 } else { CHANCE.1 } {
        return true;
    }
    let on: Vec<bool> = logs.iter().map(|x| (x - peak).abs() <= half).collect();
    let runs = on.windows(2).filter(|w| w[1] && !w[0]).count() + usize::from(on.first() == Some(&true));
    on_peak >= PERSISTENT_SAMPLES
        && on_peak as f64 >= PERSISTENT_RUN * runs as f64
        && chance < PERSISTENT_CHANCE
}

/// Density on an even grid by a Gaussian kernel.
struct Density {
    start: f64,
    step: f64,
    at: Vec<f64>,
}

impl Density {
    /// Of ascending samples, with this kernel width.
    fn of(ordered: &[f64], width: f64) -> Self {
        let step = width / 4.0;
        let (first, last) = (ordered[0], ordered[ordered.len() - 1]);
        let start = first - 4.0 * width;
        let points = ((last - first + 8.0 * width) / step).ceil() as usize + 1;
        let mut at = vec![0.0; points];
        for x in ordered {
            let center = ((x - start) / step).round() as usize;
            for (i, d) in at.iter_mut().enumerate().take(center + 13).skip(center.saturating_sub(12)) {
                let z = (start + i as f64 * step - x) / width;
                *d += (-0.5 * z * z).exp();
            }
        }
        Self { start, step, at }
    }

    fn x(&self, i: usize) -> f64 {
        self.start + i as f64 * self.step
    }

    /// Local maxima; of a flat top the first point. At least one.
    fn peaks(&self) -> Vec<usize> {
        let mut out: Vec<usize> = (1..self.at.len().saturating_sub(1))
            .filter(|i| self.at[*i] > self.at[i - 1] && self.at[*i] >= self.at[i + 1] && self.at[*i] > 0.0)
            .collect();
        if out.is_empty() {
            out.push(self.at.len() / 2);
        }
        out
    }

    fn lowest(&self, from: usize, to: usize) -> usize {
        // The middle of the lowest stretch, so that an empty valley is cut half way.
        let low = self.at[from..=to].iter().copied().fold(f64::INFINITY, f64::min);
        let lowest: Vec<usize> = (from..=to).filter(|i| self.at[*i] <= low).collect();
        lowest[lowest.len() / 2]
    }
}

/// Samples without a level take that of the nearest in time that has one.
fn filled(times: &[f64], tags: &[Option<usize>]) -> Vec<usize> {
    let known: Vec<(usize, usize)> = tags.iter().enumerate().filter_map(|(i, t)| Some((i, (*t)?))).collect();
    let nearest = |i: usize| {
        let (before, behind) = known.split_at(known.partition_point(|k| k.0 <= i));
        match (before.last(), behind.first()) {
            (Some(b), Some(n)) if times[i] - times[b.0] > times[n.0] - times[i] => n.1,
            (b, n) => b.or(n).map_or(0, |k| k.1),
        }
    };
    (0..tags.len()).map(nearest).collect()
}

/// Where stays are long, a single sample that differs from the two before and the two after is one of them that was disturbed.
fn steady(tags: &[usize]) -> Vec<usize> {
    let stays = 1 + tags.windows(2).filter(|w| w[0] != w[1]).count();
    if (tags.len() as f64) < STEADY_STAY * stays as f64 {
        return tags.to_vec();
    }
    let mut out = tags.to_vec();
    for (i, w) in tags.windows(5).enumerate() {
        if w[0] == w[1] && w[1] == w[3] && w[3] == w[4] {
            out[i + 2] = w[0];
        }
    }
    out
}

/// Time that each sample stands for; equal where all times are the same.
fn weights(times: &[f64]) -> Vec<f64> {
    let n = times.len();
    if n < 2 || times[n - 1] <= times[0] {
        return vec![1.0; n];
    }
    let middle = |i: usize| f64::midpoint(times[i.saturating_sub(1)], times[i.min(n - 1)]);
    (0..n).map(|i| middle(i + 1) - middle(i)).collect()
}

#[cfg(test)]
mod tests;
