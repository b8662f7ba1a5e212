//! Variance of the mean of a stream: from its lowest frequencies, or from its segments.

use super::memory::Memory;
use crate::distribution::beta_regularized;
use crate::error::StatsError;
use crate::spread::sum;

/// Segments from which on they are the units of the variance.
pub const SEGMENTS: usize = 6;
/// Cosines at most: more gain less than 4 % of width.
const MOST_COSINES: usize = 40;
/// Cosines at least.
const FEWEST_COSINES: usize = 2;
/// Mean height of the spectrum over the cosines used, relative to its height at zero, by the autoregression.
const FLAT: f64 = 0.9;
/// The same at which too little is known of the slow part: about five independent samples.
const STEEPEST: f64 = 0.55;
/// Level at which drift or differing segments count as seen.
const SEEN: f64 = 0.01;
/// Bins whose means show a memory so slow that neighbors hide it: a few more than the cosines that they are to judge.
const SLOW: usize = 64;
/// Longer streams are averaged to so many bins before the cosines, which are too slow to notice.
const BINS: usize = 256;

/// Variance of the mean of a stream.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variance {
    /// In the square of the unit.
    pub(super) of_mean: f64,
    /// Degrees of freedom.
    pub(super) dof: f64,
    /// Whether segments were the units, so that memory within them does not matter.
    pub(super) by_segments: bool,
}

/// Variance of the mean of a centered stream. `like` is the memory of what it comes from, which may be seen better there.
pub(super) fn variance(z: &[f64], segments: &[usize], like: Option<&Memory>) -> Result<Variance, StatsError> {
    let differ = |(v, dof): &(f64, f64)| {
        *dof >= (SEGMENTS - 1) as f64
            || f_tail(v / remembered(&within(z, segments)), *dof, MOST_COSINES as f64) < SEEN
    };
    let between = between_segments(z, segments).filter(differ);
    let by_segments = between.is_some();
    let (of_mean, dof) = between.map_or_else(|| cosines(z, like), Ok)?;
    if of_mean <= 0.0 || !of_mean.is_finite() {
        return Err(StatsError::Overflow("the variance of the mean"));
    }
    Ok(Variance { of_mean, dof, by_segments })
}

/// Variance of the mean and degrees of freedom from the sums of the segments; `None` for a single one.
fn between_segments(z: &[f64], segments: &[usize]) -> Option<(f64, f64)> {
    let lengths: Vec<usize> = segments.iter().copied().filter(|s| *s > 0).collect();
    if lengths.len() < 2 {
        return None;
    }
    let (mut start, mut squares) = (0, 0.0);
    for len in &lengths {
        squares += sum(&z[start..start + len]).powi(2);
        start += len;
    }
    let (s, n) = (lengths.len() as f64, z.len() as f64);
    Some((squares * s / (s - 1.0) / (n * n), s - 1.0))
}

/// The stream with every segment centered by itself.
pub(super) fn within(z: &[f64], segments: &[usize]) -> Vec<f64> {
    let mut own = Vec::with_capacity(z.len());
    let mut start = 0;
    for len in segments {
        let part = &z[start..start + len];
        let center = sum(part) / (*len).max(1) as f64;
        own.extend(part.iter().map(|z| z - center));
        start += len;
    }
    own
}

/// Variance of the mean of a centered stream by its memory alone.
fn remembered(z: &[f64]) -> f64 {
    let n = z.len() as f64;
    sum(&z.iter().map(|z| z * z).collect::<Vec<_>>()) / n * Memory::of(z).samples() / n
}

/// Variance of the mean of a centered stream and its degrees of freedom, from the cosine coefficients.
fn cosines(z: &[f64], like: Option<&Memory>) -> Result<(f64, f64), StatsError> {
    let n = z.len() as f64;
    let own = Memory::of(z);
    let memory = like.map_or(own, |l| own.at_least_as_slow_as(l));
    let most = MOST_COSINES.min(z.len() / 3);
    let means = || bins(z, SLOW).map(|(sum, [from, to])| sum / (to - from) as f64).collect::<Vec<_>>();
    let slow = (z.len() >= 2 * SLOW).then(|| Memory::of(&means()));
    let lowest = |m: &Memory, per: f64, k: usize| {
        let at = |j: usize| m.height(std::f64::consts::PI * j as f64 * per / n);
        (1..=k).map(at).sum::<f64>() / k as f64
    };
    let own_height = |k: usize| lowest(&memory, 1.0, k);
    // What changes from end to end is in the lowest cosines themselves: more than a correction is made up.
    let slow_height = |k: usize| slow.as_ref().map_or(1.0, |m| lowest(m, n / SLOW as f64, k).max(STEEPEST));
    let height = |k: usize| own_height(k).min(slow_height(k));
    let mut k = (FEWEST_COSINES..=most).rev().find(|k| height(*k) >= FLAT).unwrap_or(FEWEST_COSINES);
    if own_height(k) < STEEPEST {
        let got = (n / own.samples()) as usize;
        return Err(StatsError::TooFew { what: super::INDEPENDENT, needed: super::LEAST.max(got + 1), got });
    }
    let squares = coefficients_squared(z, k);
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    while k >= 8 {
        let (low, high) = squares[..k].split_at(k / 2);
        if f_tail(mean(low) / mean(high), low.len() as f64, high.len() as f64) >= SEEN {
            break;
        }
        k /= 2;
    }
    Ok((mean(&squares[..k]) / height(k) / n, k as f64))
}

/// Sums over nearly equal bins, with where each begins and ends.
fn bins(z: &[f64], n: usize) -> impl Iterator<Item = (f64, [usize; 2])> {
    let edge = move |b: usize| b * z.len() / n;
    (0..n).map(move |b| (z[edge(b)..edge(b + 1)].iter().sum(), [edge(b), edge(b + 1)]))
}

/// Squares of the first `k` cosine coefficients, each an estimate of the spectrum near zero (the long-run variance).
fn coefficients_squared(z: &[f64], k: usize) -> Vec<f64> {
    let n = z.len();
    // Each with the middle of its stretch.
    let middle = |(sum, [from, to]): (f64, [usize; 2])| (sum, (from + to) as f64 / 2.0 / n as f64);
    let parts: Vec<(f64, f64)> = bins(z, n.min(BINS)).map(middle).collect();
    (1..=k)
        .map(|j| {
            let w = std::f64::consts::PI * j as f64;
            let c: f64 = parts.iter().map(|(s, at)| s * (w * at).cos()).sum();
            c * c * 2.0 / n as f64
        })
        .collect()
}

/// `P(F > f)` with `a` and `b` degrees of freedom.
fn f_tail(f: f64, a: f64, b: f64) -> f64 {
    if !f.is_finite() {
        return 0.0;
    }
    beta_regularized(b / 2.0, a / 2.0, b / (b + a * f)).unwrap_or(1.0)
}
