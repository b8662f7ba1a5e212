//! Quantiles and distribution-free intervals for them.
//!
//! Type 7 of Hyndman & Fan, "Sample Quantiles in Statistical Packages" (1996), the default of numpy and R. Rank intervals by David
//! & Nagaraja, *Order Statistics*, 3rd ed. 2003, section 7.1, of independent draws; for correlated series use [`crate::serial`].

use crate::bisection::first;
use crate::distribution::binomial_cdf;
use crate::error::{StatsError, check};
use crate::interval::{Interval, valid_level};

/// The values in ascending order.
/// Errors: [`StatsError::NonFinite`] if any value is NaN or infinite. An empty input gives an empty output.
pub fn sorted(xs: &[f64]) -> Result<Vec<f64>, StatsError> {
    check("sample", xs, 0)?;
    let mut out = xs.to_vec();
    out.sort_unstable_by(f64::total_cmp);
    Ok(out)
}

/// Quantile `p` in `[0, 1]` of an ascending sample, linear between order statistics (type 7).
///
/// `None` if the sample is empty, `p` is out of range, or the neighboring values are not finite.
pub fn quantile(sorted: &[f64], p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    let last = sorted.len().checked_sub(1)?;
    let position = last as f64 * p;
    let below = (position.floor() as usize).min(last);
    let fraction = position - below as f64;
    let low = *sorted.get(below)?;
    let high = *sorted.get((below + 1).min(last))?;
    if !low.is_finite() || !high.is_finite() || low > high {
        return None;
    }
    Some(between(low, high, fraction))
}

/// The point at `fraction` of the way from `low` up to `high`.
fn between(low: f64, high: f64, fraction: f64) -> f64 {
    let step = high - low;
    // The second form cannot overflow; the clamp undoes rounding in the last digit so that order is kept.
    let point =
        if step.is_finite() { low + step * fraction } else { low * (1.0 - fraction) + high * fraction };
    point.clamp(low, high)
}

/// Median of an ascending sample.
pub fn median(sorted: &[f64]) -> Option<f64> {
    quantile(sorted, 0.5)
}

/// Median of values in any order; `None` if empty or not finite.
pub fn median_of(xs: &[f64]) -> Option<f64> {
    check("sample", xs, 1).ok()?;
    let mut scratch = xs.to_vec();
    Some(select_median(&mut scratch))
}

/// Median by selection, reordering `xs`; the caller guarantees finite values. Zero for an empty slice.
pub(crate) fn select_median(xs: &mut [f64]) -> f64 {
    let n = xs.len();
    if n == 0 {
        return 0.0;
    }
    let (left, &mut upper, _) = xs.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return upper;
    }
    let lower = left.iter().copied().max_by(f64::total_cmp).unwrap_or(upper);
    between(lower, upper, 0.5)
}

/// Ranks `(low, high)`, counted from 1, whose order statistics enclose quantile `p` with probability of at
/// least `level`, each tail holding at most `(1 - level) / 2`.
///
/// `None` if `n` is too small for such a pair to exist (5 values for a median at 95 %, for example).
pub fn rank_interval(n: usize, p: f64, level: f64) -> Option<(usize, usize)> {
    if n == 0 || !(p > 0.0 && p < 1.0) || !valid_level(level) {
        return None;
    }
    let tail = (1.0 - level) / 2.0;
    // The number of values at or below the quantile is Binomial(n, p).
    let at_most = |k: u64| binomial_cdf(k, n as u64, p).unwrap_or(1.0);
    let low = first(0..n as u64, |k| at_most(k) > tail) as usize;
    let high = first(0..n as u64, |k| at_most(k) >= 1.0 - tail) as usize + 1;
    (low >= 1 && high <= n && low < high).then_some((low, high))
}

/// Distribution-free interval for quantile `p` of an ascending sample; see [`rank_interval`].
pub fn quantile_interval(sorted: &[f64], p: f64, level: f64) -> Option<Interval> {
    let (low, high) = rank_interval(sorted.len(), p, level)?;
    Interval::new(level, *sorted.get(low - 1)?, *sorted.get(high - 1)?)
}
