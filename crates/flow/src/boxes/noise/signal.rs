//! A signal like speech, white noise, and the segmental signal-to-noise ratio.

use std::f64::consts::TAU;

use machmeter_stats::random::Random;

use super::CLASSES;
use crate::boxes::Gauss;

/// What the graph is given and what it makes of it.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub frames: u64,
    /// Segments, and greatest magnitudes of what branches give, by class.
    pub segments: [u64; CLASSES],
    pub peaks: [f32; CLASSES],
    /// Empty where samples were given.
    pub clean: Vec<f32>,
    pub noisy: Vec<f32>,
    pub enhanced: Vec<f32>,
}

impl Report {
    /// Hands samples on, and notes their level.
    pub fn meter(&mut self, class: usize, x: &[f32], y: &mut [f32]) {
        y.copy_from_slice(x);
        self.peaks[class] = x.iter().fold(self.peaks[class], |peak, x| peak.max(x.abs()));
    }

    /// Segmental SNR before and after, dB; none where the clean signal is not known.
    pub fn snr_db(&self, rate_hz: f64) -> Option<(f64, f64)> {
        let of = |samples| segmental_snr_db(&self.clean, samples, rate_hz);
        of(&self.noisy).zip(of(&self.enhanced))
    }
}

/// Sum of squares.
fn energy(x: impl IntoIterator<Item = f32>) -> f64 {
    x.into_iter().map(|x| f64::from(x).powi(2)).sum()
}

/// Mean over stretches of 16 ms with speech (within 40 dB of the loudest) of the SNR, each bounded to -10..35 dB.
/// Source: Hansen and Pellom, "An Effective Quality Evaluation Protocol for Speech Enhancement Algorithms", 1998.
pub fn segmental_snr_db(clean: &[f32], samples: &[f32], rate_hz: f64) -> Option<f64> {
    let length = ((0.016 * rate_hz) as usize).max(1);
    let signal = |x: &[f32]| energy(x.iter().copied());
    let loudest = clean.chunks_exact(length).map(signal).fold(0.0, f64::max);
    let (mut sum, mut n) = (0.0, 0_u32);
    for (x, y) in clean.chunks_exact(length).zip(samples.chunks_exact(length)) {
        if signal(x) > 1e-4 * loudest {
            let error = energy(x.iter().zip(y).map(|(x, y)| x - y)).max(f64::MIN_POSITIVE);
            sum += (10.0 * (signal(x) / error).log10()).clamp(-10.0, 35.0);
            n += 1;
        }
    }
    (n > 0).then(|| sum / f64::from(n))
}

/// White noise added so that energies have this ratio over all of the signal.
pub fn add_noise(clean: &[f32], snr_db: f64, seed: u64) -> Vec<f32> {
    let mut gauss = Gauss::new(seed);
    let noise: Vec<f32> = clean.iter().map(|_| gauss.next()).collect();
    let ratio = energy(clean.iter().copied()) / energy(noise.iter().copied());
    let scale = (ratio / 10_f64.powf(snr_db / 10.0)).sqrt() as f32;
    clean.iter().zip(noise).map(|(x, n)| x + scale * n).collect()
}

/// Syllables with pauses: a burst, then harmonics of a gliding pitch under three formants. It begins with 0.3 s of pause.
pub fn speech(n: usize, rate_hz: f64, seed: u64) -> Vec<f32> {
    let (mut random, mut gauss) = (Random::new(seed), Gauss::new(!seed));
    let mut y = vec![0.0; n];
    let mut at = (0.3 * rate_hz) as usize;
    while at < n {
        let mut between = |least: f64, most: f64| least + (most - least) * random.unit();
        let burst = n.min(at + (between(0.0, 0.06) * rate_hz) as usize);
        y[at..burst].fill_with(|| 0.03 * gauss.next());
        let end = n.min(burst + (between(0.12, 0.35) * rate_hz) as usize);
        let (pitch, glide) = (between(90.0, 220.0) / rate_hz, between(-0.2, 0.2));
        let formants_hz = [between(300.0, 800.0), between(900.0, 2_200.0), between(2_400.0, 3_200.0)];
        voice(&mut y[burst..end], pitch, glide, formants_hz.map(|hz| hz / rate_hz));
        at = end + (between(0.1, 0.7).powi(2) * rate_hz) as usize;
    }
    y
}

/// Harmonics up to a quarter of the rate. Pitch and formants are by the rate; `glide` is the change of pitch over the syllable.
fn voice(y: &mut [f32], pitch: f64, glide: f64, formants: [f64; 3]) {
    let weight = |h: usize| {
        // Resonances are 90 Hz wide to each side at 16 kHz, and each is half of the last.
        let resonance =
            |i: usize| 0.5_f64.powi(i as i32) / (1.0 + ((h as f64 * pitch - formants[i]) / 0.0056).powi(2));
        0.1 * (0..3).map(resonance).sum::<f64>() + 0.001
    };
    let weights: Vec<f64> = (1..=(0.25 / pitch) as usize).map(weight).collect();
    let (mut phase, length) = (0.0_f64, y.len() as f64);
    for (i, y) in y.iter_mut().enumerate() {
        let part = i as f64 / length;
        phase = (phase + TAU * pitch * (1.0 + glide * part)) % TAU;
        // sin((h + 1) a) = 2 cos(a) sin(h a) - sin((h - 1) a)
        let (sin, cos) = phase.sin_cos();
        let (mut last, mut this, mut sum) = (0.0, sin, 0.0);
        for weight in &weights {
            sum += weight * this;
            (last, this) = (this, 2.0 * cos * this - last);
        }
        *y = (sum * (8.0 * part).min(4.0 * (1.0 - part)).min(1.0)) as f32;
    }
}
