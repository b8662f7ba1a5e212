//! Spectra and memory of evenly sampled series.
//!
//! Welch, "The Use of Fast Fourier Transform for the Estimation of Power Spectra" (1967), scaled as `scipy.signal.welch`: one-sided
//! density, constant detrending, periodic Hann window. Pass counts with rare long holes through [`clip_robust`] first.

use crate::error::{StatsError, check, finite, out_of_range};
use crate::fourier;
use crate::quantile::select_median;
use crate::spread::{mad, sum};

/// A one-sided power spectral density.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Frequencies from 0 to half the rate.
    pub freq_hz: Vec<f64>,
    /// Density in squared units of the series per Hz.
    pub power: Vec<f64>,
}

/// Averaged spectrum of segments of `segment_len` samples, neighbors sharing `overlap` samples.
/// Errors: fewer samples than one segment, non-finite samples, a rate that is not positive, `segment_len` below 4,
/// `overlap` not below `segment_len`.
pub fn welch(xs: &[f64], rate_hz: f64, segment_len: usize, overlap: usize) -> Result<Spectrum, StatsError> {
    if segment_len < 4 {
        return Err(out_of_range("segment_len", segment_len as f64, "at least 4 samples"));
    }
    if overlap >= segment_len {
        return Err(out_of_range("overlap", overlap as f64, "below segment_len"));
    }
    if !(rate_hz > 0.0 && rate_hz.is_finite()) {
        return Err(out_of_range("rate_hz", rate_hz, "positive and finite"));
    }
    check("series", xs, segment_len)?;
    let taper = hann(segment_len);
    let energy: f64 = taper.iter().map(|w| w * w).sum();
    let mut power = vec![0.0; segment_len / 2 + 1];
    let mut segments = 0_usize;
    for segment in xs.windows(segment_len).step_by(segment_len - overlap) {
        let center = sum(segment) / segment_len as f64;
        let tapered: Vec<f64> = segment.iter().zip(&taper).map(|(x, w)| (x - center) * w).collect();
        for (total, bin) in power.iter_mut().zip(fourier::forward(&tapered)) {
            *total += bin.norm_sqr();
        }
        segments += 1;
    }
    let scale = 1.0 / (rate_hz * energy * segments as f64);
    for (i, p) in power.iter_mut().enumerate() {
        // Zero and half the rate have no mirror image to fold in.
        let single = i == 0 || (segment_len.is_multiple_of(2) && i == segment_len / 2);
        *p *= if single { scale } else { 2.0 * scale };
    }
    if !power.iter().all(|p| p.is_finite()) {
        return Err(StatsError::Overflow("spectrum"));
    }
    let freq_hz = (0..power.len()).map(|i| i as f64 * rate_hz / segment_len as f64).collect();
    Ok(Spectrum { freq_hz, power })
}

fn hann(len: usize) -> Vec<f64> {
    let step = std::f64::consts::TAU / len as f64;
    (0..len).map(|i| 0.5 - 0.5 * (step * i as f64).cos()).collect()
}

/// Values limited to the median plus or minus `k_mad` scaled MADs; unchanged if the MAD is zero.
///
/// `None` if empty, non-finite, or `k_mad` is not positive.
pub fn clip_robust(xs: &[f64], k_mad: f64) -> Option<Vec<f64>> {
    let spread = mad(xs)?;
    if !(k_mad > 0.0 && k_mad.is_finite()) {
        return None;
    }
    if spread == 0.0 {
        return Some(xs.to_vec());
    }
    let center = select_median(&mut xs.to_vec());
    let reach = finite(k_mad * spread)?;
    Some(xs.iter().map(|x| x.clamp(center - reach, center + reach)).collect())
}

/// Autocorrelation at lags `0..=max_lag` (the first is 1); `None` for a constant series.
///
/// `max_lag` is lowered to `n - 1`.
pub fn autocorrelation(xs: &[f64], max_lag: usize) -> Option<Vec<f64>> {
    check("series", xs, 2).ok()?;
    let n = xs.len() as f64;
    let covariance: Vec<f64> = fourier::lagged_products(xs, max_lag).iter().map(|p| p / n).collect();
    let variance = *covariance.first()?;
    if xs.iter().all(|x| *x == xs[0]) || variance <= 0.0 || !covariance.iter().all(|v| v.is_finite()) {
        return None;
    }
    Some(covariance.iter().map(|c| (c / variance).clamp(-1.0, 1.0)).collect())
}
