//! Memory of an evenly sampled series: autocorrelation, integrated correlation time.
//!
//! Source: Sokal, "Monte Carlo Methods in Statistical Mechanics" (1997), for the self-consistent window of the
//! correlation time.

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
