//! Rayleigh power at one frequency, exact.

use crate::error::check;

/// Rayleigh test of event times at one frequency.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rayleigh {
    /// Tested frequency.
    pub freq_hz: f64,
    /// `z = R^2 / n`, between 0 and `n`.
    pub power: f64,
    /// Probability of at least this power at one frequency chosen beforehand if phases are uniform.
    pub p: f64,
    /// Mean phase in cycles, in `[0, 1)`: events cluster at times `(phase + k) / freq_hz`.
    pub phase: f64,
    /// Number of events.
    pub n: usize,
}

/// Rayleigh test at `freq_hz`; `None` for no events, non-finite times or a frequency that is not positive.
pub fn rayleigh(times_s: &[f64], freq_hz: f64) -> Option<Rayleigh> {
    check("event times", times_s, 1).ok()?;
    if !(freq_hz > 0.0 && freq_hz.is_finite()) {
        return None;
    }
    let n = times_s.len() as f64;
    let (mut cosine, mut sine) = (0.0, 0.0);
    for t in times_s {
        let cycles = freq_hz * t;
        if !cycles.is_finite() {
            return None;
        }
        let (s, c) = (std::f64::consts::TAU * (cycles - cycles.floor())).sin_cos();
        cosine += c;
        sine += s;
    }
    let squared = cosine * cosine + sine * sine;
    let power = (squared / n).min(n);
    let p = ((1.0 + 4.0 * n + 4.0 * (n * n - squared).max(0.0)).sqrt() - (1.0 + 2.0 * n)).exp().min(1.0);
    let phase = (sine.atan2(cosine) / std::f64::consts::TAU).rem_euclid(1.0);
    Some(Rayleigh { freq_hz, power, p, phase: if phase < 1.0 { phase } else { 0.0 }, n: times_s.len() })
}

/// Sum of the weighted Rayleigh powers of the first `harmonics` multiples of `freq_hz`, coherent within each of
/// `segments` equal parts of the span and added up over them.
pub(super) fn harmonic_power(
    times_s: &[f64],
    weights: &[f64],
    span_s: f64,
    segments: usize,
    freq_hz: f64,
    harmonics: usize,
) -> f64 {
    let scale = segments as f64 / span_s;
    let segment = |t: f64| ((t * scale) as usize).min(segments - 1);
    let mut total = 0.0;
    let mut start = 0;
    let mut sums = vec![(0.0_f64, 0.0_f64); harmonics];
    while start < times_s.len() {
        let current = segment(times_s[start]);
        let len = times_s[start..].partition_point(|t| segment(*t) <= current);
        sums.fill((0.0, 0.0));
        let mut norm = 0.0;
        for (t, w) in times_s[start..start + len].iter().zip(&weights[start..start + len]) {
            let cycles = freq_hz * t;
            let (s, c) = (std::f64::consts::TAU * (cycles - cycles.floor())).sin_cos();
            let (mut re, mut im) = (*w, 0.0);
            for sum in &mut sums {
                (re, im) = (re * c - im * s, re * s + im * c);
                sum.0 += re;
                sum.1 += im;
            }
            norm += w * w;
        }
        if norm > 0.0 {
            total += sums.iter().map(|(a, b)| a * a + b * b).sum::<f64>() / norm;
        }
        start += len.max(1);
    }
    total
}

/// Frequency of the highest value of `power` within `reach` of `freq`, by golden sections.
pub(super) fn climb(freq: f64, reach: f64, power: impl Fn(f64) -> f64) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = (freq - reach, freq + reach);
    let (mut a, mut b) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut at_a, mut at_b) = (power(a), power(b));
    // Each step keeps 62 %: thirty leave a millionth of the reach.
    for _ in 0..30 {
        if at_a >= at_b {
            (high, b, at_b) = (b, a, at_a);
            a = high - GOLDEN * (high - low);
            at_a = power(a);
        } else {
            (low, a, at_a) = (a, b, at_b);
            b = low + GOLDEN * (high - low);
            at_b = power(b);
        }
    }
    f64::midpoint(low, high)
}
