//! Memory of an evenly sampled series.

use crate::error::check;
use crate::fourier::lagged_products;

/// Autocorrelation at lags `0..=max_lag` (the first is 1); `None` for a constant series.
///
/// `max_lag` is lowered to `n - 1`.
pub fn autocorrelation(xs: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    check("series", xs, 2).ok()?;
    let n = xs.len() as f64;
    let covariance: Vec<f64> = lagged_products(xs, max_lag).iter().map(|p| p / n).collect();
    let variance = *covariance.first()?;
    if xs.iter().all(|x| *x == xs[0]) || variance <= 0.0 || !covariance.iter().all(|v| v.is_finite()) {
        return None;
    }
    Some(covariance.iter().map(|c| (c / variance).clamp(-1.0, 1.0)).collect())
}
