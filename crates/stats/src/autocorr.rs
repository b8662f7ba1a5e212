//! Memory of an evenly sampled series: autocorrelation, Ljung-Box test, integrated correlation time.
//!
//! Sources: Ljung & Box, "On a Measure of Lack of Fit in Time Series Models" (Biometrika 1978); Sokal, "Monte
//! Carlo Methods in Statistical Mechanics" (1997), for the self-consistent window of the correlation time.

use crate::distribution::chi2_sf;
use crate::error::{check, finite};
use crate::fourier::lagged_products;

/// Autocovariance (divisor `n`) at lags `0..=max_lag`.
pub fn autocovariance(xs: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    check("series", xs, 2).ok()?;
    let n = xs.len() as f64;
    let out: Vec<f64> = lagged_products(xs, max_lag).iter().map(|p| p / n).collect();
    out.iter().all(|v| v.is_finite()).then_some(out)
}

/// Autocorrelation at lags `0..=max_lag` (the first is 1); `None` for a constant series.
///
/// `max_lag` is lowered to `n - 1`.
pub fn autocorrelation(xs: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    let mut out = autocovariance(xs, max_lag)?;
    let variance = *out.first()?;
    if xs.iter().all(|x| *x == xs[0]) || variance <= 0.0 {
        return None;
    }
    for value in &mut out {
        *value = (*value / variance).clamp(-1.0, 1.0);
    }
    Some(out)
}

/// Result of the Ljung-Box test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LjungBox {
    /// Statistic over lags `1..=lags`.
    pub q: f64,
    /// Number of lags, the degrees of freedom.
    pub lags: usize,
    /// Probability of a statistic at least this large in white noise.
    pub p: f64,
}

/// Ljung-Box test that lags `1..=lags` carry no correlation.
pub fn ljung_box(xs: &[f64], lags: usize) -> Option<LjungBox> {
    if lags == 0 || lags >= xs.len() {
        return None;
    }
    let n = xs.len() as f64;
    let correlations = autocorrelation(xs, lags)?;
    let sum: f64 = correlations.iter().enumerate().skip(1).map(|(k, r)| r * r / (n - k as f64)).sum();
    let q = n * (n + 2.0) * sum;
    Some(LjungBox { q, lags, p: chi2_sf(q, lags as f64)? })
}

/// Integrated autocorrelation time `1 + 2 sum rho(k)` in samples, summed up to the first lag that exceeds five
/// times the running value (Sokal's window). At least a small positive number; 1 for white noise.
pub fn integrated_time(xs: &[f64]) -> Option<f64> {
    let correlations = autocorrelation(xs, xs.len().saturating_sub(1).min(100_000))?;
    let mut time = 1.0;
    for (lag, r) in correlations.iter().enumerate().skip(1) {
        time += 2.0 * r;
        if lag as f64 >= 5.0 * time {
            break;
        }
    }
    finite(time.max(1.0 / xs.len() as f64))
}
