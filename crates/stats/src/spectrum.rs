//! Spectra of evenly sampled series.
//!
//! Welch, "The Use of Fast Fourier Transform for the Estimation of Power Spectra" (1967). Scaling and conventions
//! are those of `scipy.signal.welch`: one-sided power spectral density, constant detrending per segment, periodic
//! window. Counts of noise are ruled by rare long holes: pass them through [`clip_robust`] first.

use crate::error::{StatsError, check, finite};
use crate::fourier;
use crate::quantile::select_median;
use crate::spread::{mad, sum};

/// Taper of each segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Window {
    /// Periodic Hann window.
    #[default]
    Hann,
    /// No taper.
    Rectangular,
}

/// A one-sided power spectral density.
#[derive(Debug, Clone, PartialEq)]
pub struct Spectrum {
    /// Frequencies from 0 to half the rate.
    pub freq_hz: Vec<f64>,
    /// Density in squared units of the series per Hz.
    pub power: Vec<f64>,
    /// Number of averaged segments.
    pub segments: usize,
}

/// A peak of a spectrum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpectralLine {
    /// Frequency of the peak, interpolated between bins.
    pub freq_hz: f64,
    /// Density of the highest bin.
    pub power: f64,
    /// Running median of the density around it.
    pub floor: f64,
    /// Power over floor in dB.
    pub over_floor_db: f64,
}

/// Spectrum of the whole series as one segment.
///
/// # Errors
/// As [`welch`].
pub fn periodogram(xs: &[f64], rate_hz: f64, window: Window) -> Result<Spectrum, StatsError> {
    welch(xs, rate_hz, xs.len(), 0, window)
}

/// Averaged spectrum of segments of `segment_len` samples, neighbors sharing `overlap` samples.
///
/// # Errors
/// Fewer samples than one segment, non-finite samples, a rate that is not positive, `segment_len` below 4,
/// `overlap` not below `segment_len`.
pub fn welch(
    xs: &[f64],
    rate_hz: f64,
    segment_len: usize,
    overlap: usize,
    window: Window,
) -> Result<Spectrum, StatsError> {
    if segment_len < 4 {
        return Err(StatsError::Parameter {
            name: "segment_len",
            value: segment_len as f64,
            allowed: "at least 4 samples",
        });
    }
    if overlap >= segment_len {
        return Err(StatsError::Parameter {
            name: "overlap",
            value: overlap as f64,
            allowed: "below segment_len",
        });
    }
    if !(rate_hz > 0.0 && rate_hz.is_finite()) {
        return Err(StatsError::Parameter {
            name: "rate_hz",
            value: rate_hz,
            allowed: "positive and finite",
        });
    }
    check("series", xs, segment_len)?;
    let taper = taper(window, segment_len);
    let energy: f64 = taper.iter().map(|w| w * w).sum();
    let mut power = vec![0.0; segment_len / 2 + 1];
    let mut segments = 0_usize;
    for segment in xs.windows(segment_len).step_by(segment_len - overlap) {
        let center = sum(segment) / segment_len as f64;
        let mut tapered: Vec<f64> = segment.iter().zip(&taper).map(|(x, w)| (x - center) * w).collect();
        for (total, bin) in power.iter_mut().zip(fourier::forward(&mut tapered)) {
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
        return Err(StatsError::Overflow { what: "spectrum" });
    }
    let freq_hz = (0..power.len()).map(|i| i as f64 * rate_hz / segment_len as f64).collect();
    Ok(Spectrum { freq_hz, power, segments })
}

fn taper(window: Window, len: usize) -> Vec<f64> {
    match window {
        Window::Rectangular => vec![1.0; len],
        Window::Hann => {
            let step = std::f64::consts::TAU / len as f64;
            (0..len).map(|i| 0.5 - 0.5 * (step * i as f64).cos()).collect()
        }
    }
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

/// Local maxima of at least `threshold_db` over the running median of the bins around them, strongest first.
///
/// The median covers a twentieth of the spectrum, at least 31 bins; bin 0 is left out. Lines within two bins of
/// a stronger one (the main lobe of the Hann window) are not repeated.
pub fn spectral_lines(spectrum: &Spectrum, threshold_db: f64) -> Vec<SpectralLine> {
    let power = &spectrum.power;
    let n = power.len().min(spectrum.freq_hz.len());
    if n < 8 || !threshold_db.is_finite() || check("power", power, 8).is_err() {
        return Vec::new();
    }
    let floor = running_median(&power[..n], (n / 20).max(31) / 2);
    let mut lines = Vec::new();
    for i in 1..n {
        let left = if i > 1 { power[i - 1] } else { 0.0 };
        let right = power.get(i + 1).copied().unwrap_or(0.0);
        let over_floor_db = 10.0 * (power[i] / floor[i]).log10();
        if power[i] > left && power[i] >= right && floor[i] > 0.0 && over_floor_db >= threshold_db {
            let freq_hz = interpolate(spectrum, i);
            lines.push((i, SpectralLine { freq_hz, power: power[i], floor: floor[i], over_floor_db }));
        }
    }
    lines.sort_by(|a, b| b.1.power.total_cmp(&a.1.power));
    let mut kept: Vec<(usize, SpectralLine)> = Vec::new();
    for (i, line) in lines {
        if kept.iter().all(|(j, _)| i.abs_diff(*j) > 2) {
            kept.push((i, line));
        }
    }
    kept.sort_by(|a, b| b.1.over_floor_db.total_cmp(&a.1.over_floor_db));
    kept.into_iter().map(|(_, line)| line).collect()
}

/// Peak of the parabola through the logarithms of a bin and its neighbors.
fn interpolate(spectrum: &Spectrum, i: usize) -> f64 {
    let (freq, power) = (&spectrum.freq_hz, &spectrum.power);
    if i + 1 >= power.len() || i + 1 >= freq.len() || i < 2 || power[i - 1] <= 0.0 || power[i + 1] <= 0.0 {
        return freq[i];
    }
    let (a, b, c) = (power[i - 1].ln(), power[i].ln(), power[i + 1].ln());
    let curvature = a - 2.0 * b + c;
    let offset = if curvature < 0.0 { (0.5 * (a - c) / curvature).clamp(-0.5, 0.5) } else { 0.0 };
    freq[i] + offset * (freq[i] - freq[i - 1])
}

/// Median of the `2 * half + 1` values around each value, fewer at the ends.
pub(crate) fn running_median(xs: &[f64], half: usize) -> Vec<f64> {
    let mut window: Vec<f64> = Vec::with_capacity(2 * half + 2);
    let place = |window: &[f64], x: f64| window.partition_point(|v| v.total_cmp(&x).is_lt());
    for &x in xs.iter().take(half) {
        window.insert(place(&window, x), x);
    }
    let mut out = Vec::with_capacity(xs.len());
    for i in 0..xs.len() {
        if let Some(&x) = xs.get(i + half) {
            window.insert(place(&window, x), x);
        }
        if i > half {
            window.remove(place(&window, xs[i - half - 1]));
        }
        let m = window.len();
        out.push(0.5 * (window[(m - 1) / 2] + window[m / 2]));
    }
    out
}
