//! Rayleigh power at one frequency, exact.

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
