//! From power spectra to gains: noise, signal-to-noise ratios, rules, and what smooths gains.

use crate::{In, Out, Outcome, Primitive};

/// Least noise power of a bin: far below 24 bits, far above the smallest normal number.
const MIN_POWER: f32 = 1e-12;
/// Frames whose mean is the first estimate of noise: they should hold no speech.
const FIRST_FRAMES: u16 = 8;
/// SNR of a bin with speech, 15 dB: the optimum of Gerkmann and Hendriks.
const SPEECH_SNR: f32 = 31.622_776;
/// Least a-priori SNR, -25 dB (Cappé, "Elimination of the Musical Noise Phenomenon", 1994).
const MIN_PRIOR: f32 = 0.003_162_3;
/// Weight of the last frame in the decision-directed estimate (Ephraim and Malah, 1984).
const PRIOR_WEIGHT: f32 = 0.98;

/// What all branches know of noise and speech; it outlives segments.
pub struct NoiseState {
    frames: u16,
    bins: Vec<Bin>,
}

#[derive(Clone, Copy, Default)]
struct Bin {
    noise: f32,
    /// Probability of speech, smoothed.
    presence: f32,
    /// Power of speech in the last frame.
    speech: f32,
}

impl NoiseState {
    pub fn new(bins: usize) -> Self {
        Self { frames: 0, bins: vec![Bin::default(); bins] }
    }

    /// Noise from the power of a frame, by the probability of speech.
    /// Source: Gerkmann and Hendriks, "Unbiased MMSE-Based Noise Power Estimation", 2012.
    pub fn update_noise(&mut self, power: &[f32], y: &mut [f32]) {
        let is_first = self.frames < FIRST_FRAMES;
        self.frames += u16::from(is_first);
        let first_weight = 1.0 / f32::from(self.frames);
        for ((power, y), bin) in power.iter().zip(y).zip(&mut self.bins) {
            let mut weight = first_weight;
            if !is_first {
                let exponent = power / bin.noise.max(MIN_POWER) * (SPEECH_SNR / (1.0 + SPEECH_SNR));
                let p = 1.0 / (1.0 + (1.0 + SPEECH_SNR) * (-exponent).exp());
                bin.presence = 0.9 * bin.presence + 0.1 * p;
                // Noise that has risen looks like speech that never ends: the bound lets the estimate follow.
                weight = 0.2 * (1.0 - if bin.presence > 0.99 { p.min(0.99) } else { p });
            }
            bin.noise += weight * (power - bin.noise);
            *y = bin.noise.max(MIN_POWER);
        }
    }

    /// A-posteriori and decision-directed a-priori SNR; speech of the last frame is what Wiener's gain left of it.
    pub fn estimate_snr(&mut self, power: &[f32], noise: &[f32], post: &mut [f32], prior: &mut [f32]) {
        let inputs = power.iter().zip(noise).zip(&mut self.bins);
        for (((power, noise), bin), (post, prior)) in inputs.zip(post.iter_mut().zip(prior)) {
            *post = power / noise;
            let direct = (1.0 - PRIOR_WEIGHT) * (*post - 1.0).max(0.0);
            *prior = (PRIOR_WEIGHT * bin.speech / noise + direct).max(MIN_PRIOR);
            bin.speech = (*prior / (1.0 + *prior)).powi(2) * power;
        }
    }
}

/// Gains of bins from their a-posteriori and a-priori SNR.
pub type Rule = fn(post: &[f32], prior: &[f32], y: &mut [f32]);

fn each(post: &[f32], prior: &[f32], y: &mut [f32], gain: impl Fn(f32, f32) -> f32) {
    for ((post, prior), y) in post.iter().zip(prior).zip(y) {
        *y = gain(*post, *prior);
    }
}

/// Spectral subtraction of power, twice the noise (Boll, 1979; Berouti et al., 1979).
pub fn subtract(post: &[f32], prior: &[f32], y: &mut [f32]) {
    each(post, prior, y, |post, _| (1.0 - 2.0 / post).max(0.0).sqrt());
}

pub fn wiener(post: &[f32], prior: &[f32], y: &mut [f32]) {
    each(post, prior, y, |_, prior| prior / (1.0 + prior));
}

/// Least mean-square error of log amplitudes (Ephraim and Malah, 1985).
pub fn log_mmse(post: &[f32], prior: &[f32], y: &mut [f32]) {
    each(post, prior, y, |post, prior| {
        let wiener = prior / (1.0 + prior);
        // Bounded from below: the gain would be infinite where a bin has no power.
        wiener * (0.5 * exponential_integral((post * wiener).max(1e-4))).exp()
    });
}

/// `E1(x)` for `x > 0`: Abramowitz and Stegun 5.1.53 up to 1 (error below 2e-7), 5.1.56 above (2e-8 of `x exp(x) E1`).
#[allow(clippy::excessive_precision, reason = "digits as in the source")]
pub fn exponential_integral(x: f32) -> f32 {
    let polynomial = |c: [f32; 6]| c.into_iter().rev().fold(0.0, |sum, c| sum * x + c);
    if x <= 1.0 {
        let c = [-0.577_215_66, 0.999_991_93, -0.249_910_55, 0.055_199_68, -0.009_760_04, 0.001_078_57];
        return polynomial(c) - x.ln();
    }
    let over = [0.267_773_73, 8.634_760_9, 18.059_017, 8.573_328_7, 1.0, 0.0];
    let under = [3.958_496_9, 21.099_653, 25.632_956, 9.573_322_3, 1.0, 0.0];
    // Beyond 80 it is below 1e-36, and powers of x may overflow.
    if x > 80.0 { 0.0 } else { (-x).exp() * polynomial(over) / (x * polynomial(under)) }
}

/// Bounds gains: from below to keep some noise, which hides artifacts, from above by 1.
pub fn bound(least: f32, x: &[f32], y: &mut [f32]) {
    x.iter().zip(y).for_each(|(x, y)| *y = x.clamp(least, 1.0));
}

/// Mean of a bin and its neighbors, each of which has this weight.
pub fn smooth_over_bins(weight: f32, x: &[f32], y: &mut [f32]) {
    let last = x.len() - 1;
    for (k, y) in y.iter_mut().enumerate() {
        *y = x[k] + weight * (x[k.saturating_sub(1)] - 2.0 * x[k] + x[last.min(k + 1)]);
    }
}

/// Musical noise is single bins that stand out: their gain is at most `ratio` times that of the greater neighbor.
pub fn limit_peaks(ratio: f32, x: &[f32], y: &mut [f32]) {
    let last = x.len() - 1;
    for (k, y) in y.iter_mut().enumerate() {
        let (below, above) = (if k > 0 { x[k - 1] } else { 0.0 }, if k < last { x[k + 1] } else { 0.0 });
        *y = x[k].min(ratio * below.max(above));
    }
}

/// Recursive mean over frames of a segment.
pub struct TimeSmoothing {
    /// Of the past.
    pub weight: f32,
    pub last: Vec<f32>,
    pub is_first: bool,
}

impl Primitive for TimeSmoothing {
    type Ports = (In<f32>, Out<f32>);
    fn apply(&mut self, (x, y): (&[f32], &mut [f32])) -> Outcome {
        let bins = self.last.len();
        for (x, y) in x.chunks_exact(bins).zip(y.chunks_exact_mut(bins)) {
            let weight = if std::mem::take(&mut self.is_first) { 0.0 } else { self.weight };
            for ((x, y), last) in x.iter().zip(y).zip(&mut self.last) {
                *last = weight * *last + (1.0 - weight) * x;
                *y = *last;
            }
        }
        Outcome::Done
    }
    fn reset(&mut self) {
        self.is_first = true;
    }
}

#[test]
fn the_exponential_integral_has_the_errors_that_its_source_gives() {
    // Abramowitz and Stegun, tables 5.1 and 5.2.
    let known = [(0.01, 4.037_929_6), (0.5, 0.559_773_6), (1.0, 0.219_383_93), (2.0, 0.048_900_51)];
    for (x, e1) in known.into_iter().chain([(10.0, 4.156_968_9e-6)]) {
        let error: f32 = exponential_integral(x) - e1;
        assert!(error.abs() < 4e-7 * e1.max(1.0) && error.abs() < 3e-6 * e1, "{x}: {error}");
    }
}
