//! Symbols to samples, the channel, and the front end of the receiver.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use rustfft::FftDirection;
use rustfft::num_complex::Complex32;

use super::coding::Prbs;
use super::recovery::{Bank, TAPS};
use super::{CHUNK, History, OVERSAMPLING, Oscillator, SYNC_SYMBOLS, SharedReport};
use crate::boxes::transform::Transform;
use crate::boxes::{ALL, Blocks, Gauss, Stage, function};
use crate::{In, Out};

/// Two bits to a point of the unit circle, by Gray's code: 0 is positive.
fn map_bits(bits: [u8; 2]) -> Complex32 {
    let [re, im] = bits.map(|b| (1.0 - 2.0 * f32::from(b)) * std::f32::consts::FRAC_1_SQRT_2);
    Complex32::new(re, im)
}

/// Symbols of the sync word, or of what frames have in its place that no one shall find.
pub fn sync_word(is_idle: bool) -> Vec<Complex32> {
    let mut bits = Prbs::new(u64::from(is_idle));
    (0..SYNC_SYMBOLS).map(|_| map_bits([bits.bit(), bits.bit()])).collect()
}

/// QPSK mapper: frames of coded bits to frames of symbols with a word in front.
/// Only `frames` have the sync word. Those before are for loops to acquire, those after drive the last frame through the filters.
pub fn map_frames(coded_bits: usize, frames: Range<u64>, report: SharedReport) -> impl Stage<u8, Complex32> {
    let words = [sync_word(true), sync_word(false)];
    let mut next = 0;
    Blocks::one_to_one(coded_bits, SYNC_SYMBOLS + coded_bits / 2, move |x: &[u8], y: &mut [Complex32]| {
        let is_sent = frames.contains(&next);
        let (word, data) = y.split_at_mut(SYNC_SYMBOLS);
        word.copy_from_slice(&words[usize::from(is_sent)]);
        x.chunks_exact(2).zip(data).for_each(|(x, y)| *y = map_bits([x[0], x[1]]));
        report.borrow_mut().frames_sent += u64::from(is_sent);
        next += 1;
    })
}

/// Symbols from the first to the last tap of a pulse.
const SPAN: usize = 12;
/// No tap then hits a zero of the denominator.
const ROLL_OFF: f64 = 0.35;

/// Root-raised-cosine pulse of unit energy.
fn pulse() -> Vec<f32> {
    use std::f64::consts::{FRAC_PI_4, PI};
    let at = |t: f64| match (PI * t, 4.0 * ROLL_OFF * t) {
        (_, 0.0) => 1.0 - ROLL_OFF + ROLL_OFF / FRAC_PI_4,
        (a, b) => ((a * (1.0 - ROLL_OFF)).sin() + b * (a * (1.0 + ROLL_OFF)).cos()) / (a * (1.0 - b * b)),
    };
    let middle = SPAN as f64 / 2.0;
    let taps = (0..=SPAN * OVERSAMPLING).map(|i| at(i as f64 / OVERSAMPLING as f64 - middle));
    let scale = taps.clone().map(|h| h * h).sum::<f64>().sqrt();
    taps.map(|h| (h / scale) as f32).collect()
}

/// Root-raised-cosine filter, `UP` samples out for one in: the pulse shaper, or with 1 the filter matched to it.
pub fn filter_pulse<const UP: usize>() -> impl Stage<Complex32, Complex32> {
    let (mut history, pulse) = (History::new(SPAN * OVERSAMPLING / UP), pulse());
    let mut filter = move |x: &[Complex32], y: &mut [Complex32]| {
        let x = history.push(x);
        y.fill(Complex32::ZERO);
        // Tap by tap, since a sum sample by sample is not vectorized.
        for (k, h) in pulse.iter().enumerate() {
            let x = &x[SPAN * OVERSAMPLING / UP - k / UP..];
            y.as_chunks_mut::<UP>().0.iter_mut().zip(x).for_each(|(y, x)| y[k % UP] += x * h);
        }
    };
    Blocks::one_to_one(ALL, ALL, move |x: &[Complex32], y: &mut [Complex32]| {
        x.chunks(CHUNK).zip(y.chunks_mut(CHUNK * UP)).for_each(|(x, y)| filter(x, y));
    })
}

/// What a channel does to timing and carrier.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Offsets {
    /// Cycles a symbol; the matched filter does not mind 0.02.
    pub frequency: f32,
    /// Symbols.
    pub timing: f32,
    /// By how much the receiver's sampling period is longer.
    pub clock_ppm: f32,
}

/// Channel with offsets and white Gaussian noise of a power a sample.
/// Outputs are as many as inputs, since there is room for the samples by which clocks drift apart in a run.
pub fn disturb(offsets: Offsets, power: f32, seed: u64, room: usize) -> impl Stage<Complex32, Complex32> {
    let keep = room + OVERSAMPLING + 2 * TAPS;
    let (mut history, bank, mut noise) = (History::new(keep), Bank::design(), Gauss::new(seed));
    let mut carrier = Oscillator::new(offsets.frequency / OVERSAMPLING as f32);
    let amplitude = power.sqrt();
    let drift = f64::from(offsets.clock_ppm) * 1e-6;
    let timing = f64::from(offsets.timing).rem_euclid(1.0) * OVERSAMPLING as f64;
    let first_delay = timing + (TAPS + if drift > 0.0 { room } else { 0 }) as f64;
    let mut samples = 0_u64;
    let mut disturb = move |x: &[Complex32], y: &mut [Complex32]| {
        let x = history.push(x);
        for (i, y) in y.iter_mut().enumerate() {
            let delay = first_delay - drift * samples as f64;
            let clean = bank.interpolate(x, (keep + i) as f64 - delay);
            *y = clean * carrier.turn() + noise.complex() * amplitude;
            samples += 1;
        }
    };
    Blocks::one_to_one(ALL, ALL, move |x: &[Complex32], y: &mut [Complex32]| {
        x.chunks(CHUNK).zip(y.chunks_mut(CHUNK)).for_each(|(x, y)| disturb(x, y));
    })
}

/// In the place of a channel: these samples, and zeros behind them, whatever comes in.
pub fn replay(samples: Rc<[Complex32]>) -> impl Stage<Complex32, Complex32> {
    let mut next = 0;
    Blocks::one_to_one(ALL, ALL, move |_: &[Complex32], y: &mut [Complex32]| {
        let n = y.len().min(samples.len() - next);
        y[..n].copy_from_slice(&samples[next..next + n]);
        y[n..].fill(Complex32::ZERO);
        next += n;
    })
}

/// Samples that a box keeps for who built its graph.
pub type Kept = Rc<RefCell<Vec<Complex32>>>;

/// A channel whose output is kept, if at all.
pub fn overhear(
    mut channel: impl Stage<Complex32, Complex32>,
    kept: Option<Kept>,
) -> impl Stage<Complex32, Complex32> {
    function::<(In<Complex32>, Out<Complex32>), _>(move |(x, y): (&[Complex32], &mut [Complex32])| {
        let outcome = channel.apply((x, &mut *y));
        if let Some(kept) = &kept {
            kept.borrow_mut().extend_from_slice(y);
        }
        outcome
    })
}

/// Automatic gain control: divides by the root of a running mean of the power.
pub fn control_gain() -> impl Stage<Complex32, Complex32> {
    /// Share of a sample in the mean: the gain then varies by 2 %, less than the decoder notices.
    const SHARE: f32 = 1.0 / 1024.0;
    let mut power = 1.0_f32;
    Blocks::one_to_one(ALL, ALL, move |x: &[Complex32], y: &mut [Complex32]| {
        for (x, y) in x.iter().zip(y) {
            power += SHARE * (x.norm_sqr() - power);
            *y = x / power.max(1e-6).sqrt();
        }
    })
}

/// Points of a periodogram: half a bin is 6e-5 cycles a symbol.
const POINTS: usize = 8192;
/// Periodograms at least, and the line over the mean: at 2 dB it has 33 and more, and noise 13 at most.
const MIN_PERIODOGRAMS: usize = 4;
const MIN_LINE_RATIO: f32 = 20.0;
/// Samples that the search for the line takes at least.
pub const SEARCH_SAMPLES: usize = POINTS * MIN_PERIODOGRAMS;

/// Coarse frequency correction: the fourth power of QPSK has a line at four times the offset.
/// Periodograms are averaged until the line stands out. The correction is then held; the Costas loop tracks what is left.
pub fn correct_frequency(report: SharedReport) -> impl Stage<Complex32, Complex32> {
    let mut transform = Transform::new(POINTS, FftDirection::Forward);
    let (mut powers, mut spectrum) = (Vec::with_capacity(POINTS), vec![0.0; POINTS]);
    let mut periodograms = 0;
    // Takes a sample; cycles a sample once they are known.
    let mut search = move |x: Complex32| {
        powers.push(x.powu(4));
        if powers.len() < POINTS {
            return None;
        }
        periodograms += 1;
        transform.transform(&mut powers);
        for (mean, x) in spectrum.iter_mut().zip(&powers) {
            *mean += (x.norm_sqr() - *mean) / MIN_PERIODOGRAMS as f32;
        }
        powers.clear();
        // Up to an eighth of the sampling rate: at a quarter of it are lines of the symbol clock.
        let reach = POINTS as isize / 8;
        let at = |bin: isize| spectrum[bin.rem_euclid(POINTS as isize) as usize];
        let peak = (-reach..reach).max_by(|i, j| at(*i).total_cmp(&at(*j)))?;
        let mean = spectrum.iter().sum::<f32>() / POINTS as f32;
        let stands_out = periodograms >= MIN_PERIODOGRAMS && at(peak) > MIN_LINE_RATIO * mean;
        stands_out.then_some(peak as f32 / (4 * POINTS) as f32)
    };
    let (mut oscillator, mut is_held) = (Oscillator::new(0.0), false);
    Blocks::one_to_one(ALL, ALL, move |x: &[Complex32], y: &mut [Complex32]| {
        for (x, y) in x.iter().zip(y) {
            if !is_held && let Some(frequency) = search(*x) {
                (oscillator, is_held) = (Oscillator::new(-frequency), true);
                report.borrow_mut().coarse_frequency = frequency * OVERSAMPLING as f32;
            }
            *y = x * oscillator.turn();
        }
    })
}
