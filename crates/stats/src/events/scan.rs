//! Rayleigh powers on a grid fine enough for the span, through binning and a Fourier transform.

use super::Log;
use crate::distribution::gamma_q;
use crate::fourier;
use crate::quantile::select_median;

/// Longest transform; longer logs are cut into segments whose powers are added.
const MAX_TRANSFORM: usize = 1 << 22;
/// Grid points per resolution cell `1 / span`.
const OVERSAMPLING: f64 = 4.0;
/// Fewest cycles a frequency must complete within a segment.
const MIN_CYCLES: f64 = 3.0;

/// Powers from zero frequency up, `step_hz` apart.
pub(super) struct Grid {
    pub(super) step_hz: f64,
    /// Power divided by the floor, summed over the segments: Gamma(segments) where there is no rhythm.
    pub(super) power: Vec<f64>,
    pub(super) segments: usize,
    pub(super) segment_span_s: f64,
}

impl Grid {
    /// Powers up to `top_hz`. Fewer grid points than 16 give an empty grid.
    pub(super) fn new(log: &Log, weights: &[f64], top_hz: f64) -> Self {
        let rate_hz = 4.0 * top_hz;
        let points = OVERSAMPLING * log.span_s * rate_hz;
        let segments = ((points / MAX_TRANSFORM as f64).ceil() as usize).max(1);
        let segment_span_s = log.span_s / segments as f64;
        let filled = ((segment_span_s * rate_hz).ceil() as usize).max(1);
        let len = fourier::fast_len((OVERSAMPLING * segment_span_s * rate_hz).ceil() as usize);
        let step_hz = rate_hz / len as f64;
        let wanted = ((top_hz / step_hz) as usize + 1).min(len / 2);
        let mut power = vec![0.0; wanted];
        let mut used = 0;
        let mut start = 0;
        for segment in 0..segments {
            let from_s = segment as f64 * segment_span_s;
            let count = if segment + 1 == segments {
                log.times_s.len() - start
            } else {
                log.times_s[start..].partition_point(|t| *t < from_s + segment_span_s)
            };
            let range = start..start + count;
            start += count;
            let norm: f64 = weights[range.clone()].iter().map(|w| w * w).sum();
            if norm <= 0.0 {
                continue;
            }
            used += 1;
            let mut bins = vec![0.0; len];
            for (t, w) in log.times_s[range.clone()].iter().zip(&weights[range.clone()]) {
                bins[(((t - from_s) * rate_hz) as usize).min(filled - 1)] += w;
            }
            // Without its mean the finite span itself would show as power at low frequencies.
            let mean = weights[range].iter().sum::<f64>() / filled as f64;
            bins[..filled].iter_mut().for_each(|b| *b -= mean);
            for (total, bin) in power.iter_mut().zip(fourier::forward(&bins)) {
                *total += bin.norm_sqr() / norm;
            }
        }
        let segments = used.max(1);
        let floor = floor(&power, segments);
        power.iter_mut().zip(&floor).for_each(|(p, f)| *p /= f);
        Self { step_hz, power, segments, segment_span_s }
    }

    /// Power over floor at the grid point nearest to `freq_hz`; `None` above the grid.
    pub(super) fn at(&self, freq_hz: f64) -> Option<f64> {
        self.power.get((freq_hz / self.step_hz).round() as usize).copied()
    }

    /// Lowest frequency with enough cycles in a segment.
    pub(super) fn lowest_hz(&self) -> f64 {
        MIN_CYCLES / self.segment_span_s
    }
}

/// Local background: medians of stretches of the grid that grow with frequency, over the median of Gamma.
///
/// Clustered events (bursts, long holes) have a spectrum above that of a Poisson process; without this every
/// burst would pass for a rhythm.
fn floor(power: &[f64], segments: usize) -> Vec<f64> {
    let shape = segments as f64;
    // Wilson and Hilferty's cube.
    let typical = shape * (1.0 - 1.0 / (9.0 * shape)).powi(3);
    let mut out = Vec::with_capacity(power.len());
    let (mut start, mut len) = (0, 64);
    while start < power.len() {
        let end = if power.len() - start < 2 * len { power.len() } else { start + len };
        let median = select_median(&mut power[start..end].to_vec());
        out.resize(end, (median / typical).max(1.0));
        start = end;
        len = (len + len / 4).min(1024);
    }
    out
}

/// Natural logarithm of the chance that Gamma(`shape`) is at least `x`, an upper bound where it underflows.
pub(super) fn ln_gamma_tail(shape: f64, x: f64) -> f64 {
    match gamma_q(shape, x) {
        Some(q) if q > 1e-280 => q.ln(),
        // Chernoff's bound.
        _ if x > shape => -(x - shape - shape * (x / shape).ln()),
        _ => 0.0,
    }
}
