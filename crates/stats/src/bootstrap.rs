//! Bootstrap intervals for series that are correlated in time.
//!
//! Circular moving blocks: Politis & Romano, "A Circular Block-Resampling Procedure for Stationary Data" (1992).
//! Block length: Politis & White, "Automatic Block-Length Selection for the Dependent Bootstrap" (2004) with the
//! correction of Patton, Politis & White (2009). Tail probabilities are widened for the small number of blocks as in Hesterberg,
//! "What Teachers Should Know About the Bootstrap" (2015), section 4.3; without it blocks undercover.

use crate::autocorr::{autocovariance, integrated_time};
use crate::distribution::{normal_cdf, t_quantile};
use crate::error::{check, finite};
use crate::interval::{Interval, valid_level};
use crate::quantile::quantile;
use crate::random::Random;
use crate::spread::sum;

/// Options of the block bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BootstrapOptions {
    /// Confidence level in `(0, 1)`.
    pub level: f64,
    /// Number of resamples, at least 20.
    pub resamples: usize,
    /// Block length in samples; `None` chooses it from the data.
    pub block_len: Option<usize>,
    /// Seed of the random stream.
    pub seed: u64,
}

impl Default for BootstrapOptions {
    fn default() -> Self {
        Self { level: 0.95, resamples: 1000, block_len: None, seed: 0x6d61_6368 }
    }
}

/// At most this many blocks make up one resample of a ratio; longer series use longer blocks.
const MAX_BLOCKS: usize = 2000;

/// What the autocovariances say about a series, summed with Politis and White's flat-top weights.
struct Dependence {
    /// `sum |k| R(k)` over all lags.
    slope: f64,
    /// `sum R(k)` over all lags: the variance of the mean times `n`.
    long_run: f64,
}

fn dependence(xs: &[f64]) -> Option<Dependence> {
    check("series", xs, 8).ok()?;
    let n = xs.len() as f64;
    let run = 5_usize.max(n.log10().sqrt().ceil() as usize);
    let max_lag = (n.sqrt().ceil() as usize + run).min(xs.len() - 1);
    let covariance = autocovariance(xs, max_lag)?;
    let mut out = Dependence { slope: 0.0, long_run: covariance[0].max(0.0) };
    if out.long_run == 0.0 {
        return Some(out);
    }
    let bound = 2.0 * (n.log10() / n).sqrt();
    let quiet = |lag: usize| covariance.get(lag).is_none_or(|c| (c / covariance[0]).abs() < bound);
    let cutoff = (0..max_lag).find(|m| (m + 1..=m + run).all(quiet)).unwrap_or(max_lag);
    let bandwidth = (2 * cutoff.max(1)).min(max_lag) as f64;
    for (lag, c) in covariance.iter().enumerate().skip(1).take(bandwidth as usize) {
        let s = lag as f64 / bandwidth;
        let weight = if s <= 0.5 { 1.0 } else { 2.0 * (1.0 - s) };
        out.slope += 2.0 * weight * lag as f64 * c;
        out.long_run += 2.0 * weight * c;
    }
    Some(out)
}

impl Dependence {
    fn block_len(&self, n: f64) -> usize {
        if self.long_run <= 0.0 {
            return 1;
        }
        let longest = (3.0 * n.sqrt()).min(n / 3.0).ceil();
        (1.5 * (self.slope / self.long_run).powi(2) * n).cbrt().clamp(1.0, longest).ceil() as usize
    }

    /// Factor on the width for what blocks of this length miss: the variance between blocks is short by
    /// `slope / (block_len * long_run)` of itself (Lahiri, *Resampling Methods for Dependent Data*, 2003, ch. 5).
    fn widening(&self, block_len: usize) -> f64 {
        let missing = self.slope / (block_len as f64 * self.long_run);
        if missing.is_finite() { 1.0 / (1.0 - missing.clamp(0.0, 0.5)).sqrt() } else { 1.0 }
    }
}

/// Number of independent samples that would carry the same information about the mean, in `[1, n]`.
pub fn effective_sample_size(xs: &[f64]) -> Option<f64> {
    let n = xs.len() as f64;
    finite(n / integrated_time(xs)?).map(|ess| ess.clamp(1.0, n))
}

/// Interval for `stat` of a correlated series. Costs `resamples` calls of `stat` on `n` values.
///
/// `None` for fewer than 8 values, non-finite values, a bad option, fewer than 3 blocks, or if `stat` is not
/// finite on the data or on more than a tenth of the resamples.
pub fn block_bootstrap(
    xs: &[f64],
    stat: impl Fn(&[f64]) -> f64,
    opts: &BootstrapOptions,
) -> Option<Interval> {
    let cut = cut(xs, opts, 1)?;
    let (n, block) = (xs.len(), cut.block);
    finite(stat(xs))?;
    let mut random = Random::new(opts.seed);
    let mut resample = Vec::with_capacity(n + block);
    let mut replicates = Vec::with_capacity(opts.resamples);
    for _ in 0..opts.resamples {
        resample.clear();
        while resample.len() < n {
            let start = random.below(n);
            let take = block.min(n - resample.len());
            let first = take.min(n - start);
            resample.extend_from_slice(&xs[start..start + first]);
            resample.extend_from_slice(&xs[..take - first]);
        }
        replicates.push(stat(&resample));
    }
    interval(replicates, &cut, opts)
}

/// Interval for `sum(num) / sum(den)` of two series sampled together, for example stolen time over elapsed time.
///
/// Blocks come from prefix sums, so a resample costs at most 2000 draws whatever the length of the series. The
/// automatic block length is that of the linearized series `num - ratio * den`.
pub fn ratio_block_bootstrap(num: &[f64], den: &[f64], opts: &BootstrapOptions) -> Option<Interval> {
    let n = num.len();
    if den.len() != n || check("denominator", den, 8).is_err() || check("numerator", num, 8).is_err() {
        return None;
    }
    let estimate = ratio(sum(num), sum(den))?;
    let linear: Vec<f64> = num.iter().zip(den).map(|(a, b)| a - estimate * b).collect();
    let cut = cut(&linear, opts, n.div_ceil(MAX_BLOCKS))?;
    let block = cut.block;
    let (num, den) = (CircularSums::new(num), CircularSums::new(den));
    let mut random = Random::new(opts.seed);
    let replicates = (0..opts.resamples)
        .map(|_| {
            let (mut a, mut b, mut filled) = (0.0, 0.0, 0);
            while filled < n {
                let take = block.min(n - filled);
                let start = random.below(n);
                a += num.block(start, take);
                b += den.block(start, take);
                filled += take;
            }
            ratio(a, b).unwrap_or(f64::NAN)
        })
        .collect();
    interval(replicates, &cut, opts)
}

fn ratio(num: f64, den: f64) -> Option<f64> {
    if den == 0.0 { None } else { finite(num / den) }
}

/// How a series is cut, and what that does to the width of the interval.
struct Cut {
    block: usize,
    blocks: f64,
    widening: f64,
}

fn cut(xs: &[f64], opts: &BootstrapOptions, shortest: usize) -> Option<Cut> {
    if !valid_level(opts.level) || opts.resamples < 20 || opts.block_len == Some(0) {
        return None;
    }
    let dependence = dependence(xs)?;
    let block = opts.block_len.unwrap_or_else(|| dependence.block_len(xs.len() as f64)).max(shortest);
    // A length that was asked for is taken as it is: the caller knows something about the series.
    let widening = if opts.block_len.is_some() { 1.0 } else { dependence.widening(block) };
    (xs.len() / block >= 3).then_some(Cut { block, blocks: xs.len() as f64 / block as f64, widening })
}

/// Prefix sums that answer sums over circular blocks.
struct CircularSums(Vec<f64>);

impl CircularSums {
    fn new(xs: &[f64]) -> Self {
        let mut sums = Vec::with_capacity(xs.len() + 1);
        let (mut total, mut lost) = (0.0_f64, 0.0_f64);
        sums.push(0.0);
        for &x in xs {
            let next = total + x;
            lost += if total.abs() >= x.abs() { (total - next) + x } else { (x - next) + total };
            total = next;
            sums.push(total + lost);
        }
        Self(sums)
    }

    fn total(&self) -> f64 {
        self.0[self.0.len() - 1]
    }

    fn block(&self, start: usize, len: usize) -> f64 {
        let n = self.0.len() - 1;
        let end = start + len;
        if end <= n { self.0[end] - self.0[start] } else { self.total() - self.0[start] + self.0[end - n] }
    }
}

/// Quantile at position `p (B + 1)`: that of type 7 would leave out too much of the tails of a few hundred values.
fn replicate_quantile(ascending: &[f64], p: f64) -> Option<f64> {
    let b = ascending.len() as f64;
    quantile(ascending, ((p * (b + 1.0) - 1.0) / (b - 1.0)).clamp(0.0, 1.0))
}

fn interval(mut replicates: Vec<f64>, cut: &Cut, opts: &BootstrapOptions) -> Option<Interval> {
    let drawn = replicates.len();
    replicates.retain(|r| r.is_finite());
    if replicates.len() * 10 < drawn * 9 {
        return None;
    }
    replicates.sort_unstable_by(f64::total_cmp);
    let dof = (cut.blocks - 1.0).max(1.0);
    let z = cut.widening * (cut.blocks / dof).sqrt() * t_quantile(0.5 + opts.level / 2.0, dof)?;
    let (low, high) =
        (replicate_quantile(&replicates, normal_cdf(-z)?)?, replicate_quantile(&replicates, normal_cdf(z)?)?);
    Interval::new(opts.level, low.min(high), low.max(high))
}
