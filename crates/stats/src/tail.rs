//! The rare, long values: peaks over threshold, return levels.
//!
//! Excesses over a high threshold follow a generalized Pareto law (Pickands 1975). It is fitted by probability
//! weighted moments (Hosking & Wallis, "Parameter and Quantile Estimation for the Generalized Pareto
//! Distribution", Technometrics 1987), which needs no iteration and is stable for the shapes that occur in
//! detour lengths (shape below 0.5).

use crate::error::{check, finite};
use crate::interval::{Interval, valid_level};
use crate::quantile::quantile;
use crate::random::Random;

/// Fewer excesses than this support no fit.
pub const MIN_EXCESSES: usize = 30;

/// Options of the tail bootstrap.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TailOptions {
    /// Confidence level in `(0, 1)`.
    pub level: f64,
    /// Number of resamples, at least 20.
    pub resamples: usize,
    /// Seed of the random stream.
    pub seed: u64,
}

impl Default for TailOptions {
    fn default() -> Self {
        Self { level: 0.95, resamples: 500, seed: 0x7461_696c }
    }
}

/// A level exceeded on average once in a given number of values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReturnLevel {
    /// The level, in the unit of the values.
    pub level: f64,
    /// Bootstrap interval of the level.
    pub interval: Option<Interval>,
    /// Whether the horizon is longer than the record, so that the level is an extrapolation.
    pub extrapolated: bool,
}

/// Level exceeded on average once in `horizon` values (for events at a known rate: rate times duration).
///
/// `None` for fewer than [`MIN_EXCESSES`] or non-finite values, excesses all equal, a shape estimate of 0.5 or more
/// (the moments do not exist there), a bad option, or a level below the threshold.
pub fn return_level(xs: &[f64], threshold: f64, horizon: f64, opts: &TailOptions) -> Option<ReturnLevel> {
    let excesses = excesses(xs, threshold)?;
    let share = excesses.len() as f64 / xs.len() as f64;
    let expected = horizon * share;
    if !(expected.is_finite() && expected > 1.0) {
        return None;
    }
    let level = level_of(threshold, pareto_moments(&excesses)?, expected)?;
    let fits = refits(&excesses, opts)?;
    let levels: Vec<f64> = fits.iter().filter_map(|f| level_of(threshold, *f, expected)).collect();
    Some(ReturnLevel {
        level,
        interval: percentile(levels, opts.level, fits.len()),
        extrapolated: horizon > xs.len() as f64,
    })
}

fn excesses(xs: &[f64], threshold: f64) -> Option<Vec<f64>> {
    check("sample", xs, MIN_EXCESSES).ok()?;
    finite(threshold)?;
    let mut out: Vec<f64> = xs.iter().filter(|x| **x > threshold).map(|x| x - threshold).collect();
    out.sort_unstable_by(f64::total_cmp);
    (out.len() >= MIN_EXCESSES && out.iter().all(|x| x.is_finite())).then_some(out)
}

/// Shape and scale from the first two probability weighted moments of ascending excesses.
fn pareto_moments(ascending: &[f64]) -> Option<(f64, f64)> {
    let n = ascending.len() as f64;
    let (mut first, mut second) = (0.0, 0.0);
    for (i, x) in ascending.iter().enumerate() {
        first += x / n;
        // Unbiased estimate of E[X (1 - F(X))].
        second += x * (n - 1.0 - i as f64) / (n - 1.0) / n;
    }
    let denominator = first - 2.0 * second;
    let shape = finite(2.0 - first / denominator)?;
    let scale = finite(2.0 * first * second / denominator)?;
    (shape < 0.5 && scale > 0.0).then_some((shape, scale))
}

fn level_of(threshold: f64, (shape, scale): (f64, f64), expected: f64) -> Option<f64> {
    let growth = if shape.abs() < 1e-9 { expected.ln() } else { (shape * expected.ln()).exp_m1() / shape };
    finite(threshold + scale * growth)
}

/// Fits to resampled excesses; `None` for bad options.
fn refits(excesses: &[f64], opts: &TailOptions) -> Option<Vec<(f64, f64)>> {
    if !valid_level(opts.level) || opts.resamples < 20 {
        return None;
    }
    let n = excesses.len();
    let mut random = Random::new(opts.seed);
    let mut counts = vec![0_u32; n];
    let mut resample = Vec::with_capacity(n);
    let mut fits = Vec::with_capacity(opts.resamples);
    for _ in 0..opts.resamples {
        counts.fill(0);
        (0..n).for_each(|_| counts[random.below(n)] += 1);
        resample.clear();
        for (x, count) in excesses.iter().zip(&counts) {
            resample.extend(std::iter::repeat_n(*x, *count as usize));
        }
        fits.extend(pareto_moments(&resample));
    }
    // With many failed fits the surviving ones are a biased choice.
    (fits.len() * 10 >= opts.resamples * 9).then_some(fits)
}

fn percentile(mut values: Vec<f64>, level: f64, drawn: usize) -> Option<Interval> {
    if values.len() < drawn || values.is_empty() {
        return None;
    }
    values.sort_unstable_by(f64::total_cmp);
    let tail = (1.0 - level) / 2.0;
    Interval::new(level, quantile(&values, tail)?, quantile(&values, 1.0 - tail)?)
}
