//! Timing recovery, a loop over blocks of samples by Gardner's detector (IEEE Trans. Comm. 34, 1986); carrier recovery; frames.

use rustfft::num_complex::Complex32;

use super::{History, OVERSAMPLING, SYNC_SYMBOLS, SharedReport, loop_gains};
use crate::boxes::{ALL, Blocks, Stage, function};
use crate::{In, Out, Outcome, Primitive, WritePort, Writer};

/// Samples that a value of [`Bank`] is made of.
pub const TAPS: usize = 8;
/// Samples of a block: the loop is corrected every 16 symbols, a small part of its time constant.
pub const BLOCK: usize = 64;
/// Symbol instants of a block: one more than symbols, so that a block that begins earlier than expected misses none.
pub const STROBES: usize = BLOCK / OVERSAMPLING + 1;
/// Values of a block: instants, and between them the middle of the transition.
pub const HALVES: usize = 2 * STROBES - 1;

/// Polyphase filters for fractions of a sample.
pub struct Bank(Vec<[f32; TAPS]>);

impl Bank {
    /// Filters a sample: the error of the instant is at most 1/256 sample.
    const PHASES: usize = 128;

    /// Sines over the argument under Hann's window, with unit gain at zero frequency.
    pub fn design() -> Self {
        let filter = |phase: usize| {
            let middle = (TAPS / 2 - 1) as f64 + phase as f64 / Self::PHASES as f64;
            let taps: [f64; TAPS] = std::array::from_fn(|k| {
                let t = std::f64::consts::PI * (k as f64 - middle);
                let sinc = if t.abs() < 1e-9 { 1.0 } else { t.sin() / t };
                sinc * (t / TAPS as f64).cos().powi(2)
            });
            let gain: f64 = taps.iter().sum();
            taps.map(|h| (h / gain) as f32)
        };
        Self((0..=Self::PHASES).map(filter).collect())
    }

    /// The value at a position between samples; three before and four behind are used.
    #[inline]
    pub fn interpolate(&self, x: &[Complex32], position: f64) -> Complex32 {
        let whole = position as usize;
        let filter = &self.0[((position - whole as f64) * Self::PHASES as f64 + 0.5) as usize];
        let x = &x[whole + 1 - TAPS / 2..][..TAPS];
        x.iter().zip(filter).map(|(x, h)| x * h).sum()
    }
}

/// A block of samples and a timing phase to [`HALVES`] values, half a symbol apart.
pub fn interpolate() -> impl Primitive<Ports = (In<Complex32>, In<f32>, Out<Complex32>)> {
    type Ports = (In<Complex32>, In<f32>, Out<Complex32>);
    let (bank, mut history) = (Bank::design(), History::new(TAPS + 2 * OVERSAMPLING));
    function::<Ports, _>(move |(x, phase, y): (&[Complex32], &[f32], &mut [Complex32])| {
        for ((x, phase), y) in x.chunks_exact(BLOCK).zip(phase).zip(y.chunks_exact_mut(HALVES)) {
            let x = history.push(x);
            let first = f64::from(*phase) + (TAPS / 2) as f64;
            for (i, y) in y.iter_mut().enumerate() {
                *y = bank.interpolate(x, first + (i * OVERSAMPLING / 2) as f64);
            }
        }
        Outcome::Done
    })
}

/// Gardner's detector: a block of values to its mean error, positive where instants are early.
pub fn detect_error() -> impl Stage<Complex32, f32> {
    Blocks::one_to_one(HALVES, 1, |x: &[Complex32], y: &mut [f32]| {
        let (mut error, mut power) = (0.0, f32::MIN_POSITIVE);
        for w in x.windows(3).step_by(2) {
            error += ((w[0] - w[2]) * w[1].conj()).re;
            power += w[2].norm_sqr();
        }
        y[0] = error / power;
    })
}

/// Loop filter and oscillator: errors to timing phases, in samples from 0 to [`OVERSAMPLING`].
pub fn filter_error(report: SharedReport) -> impl Stage<f32, f32> {
    /// Noise bandwidth in cycles a symbol: jitter costs less than 0.1 dB, and locking takes about 1000 symbols.
    const BANDWIDTH: f32 = 0.0015;
    /// Error a sample at lock without noise: (2 pi / 4) sin(pi a / 2) / (pi (1 - a^2 / 4)) for roll-off a of 0.35.
    const SLOPE: f32 = 0.27;
    let [proportional, integral] = loop_gains(BANDWIDTH * (STROBES - 1) as f32, SLOPE);
    let period = OVERSAMPLING as f32;
    // Samples, and samples a block.
    let (mut phase, mut rate) = (0.0_f32, 0.0_f32);
    Blocks::one_to_one(1, 1, move |x: &[f32], y: &mut [f32]| {
        rate += integral * x[0];
        phase = (phase + rate + proportional * x[0]).rem_euclid(period);
        y[0] = phase;
        let mut report = report.borrow_mut();
        // With a longer sampling period instants come forward.
        (report.timing, report.clock_ppm) = (phase / period, -1e6 * rate / BLOCK as f32);
    })
}

/// Picks the 16 symbols of a block, one less or more where the phase went past the end of a symbol; block by block in a loop.
pub fn pick() -> impl Primitive<Ports = (In<Complex32>, In<f32>, WritePort<Complex32>)> {
    type Ports = (In<Complex32>, In<f32>, WritePort<Complex32>);
    let (half, mut last_phase) = (OVERSAMPLING as f32 / 2.0, 0.0);
    function::<Ports, _>(move |(x, phase, mut y): (&[Complex32], &[f32], Writer<'_, Complex32>)| {
        let first = match phase[0] - last_phase {
            // From the end of a symbol to its start: the block before has picked the first symbol.
            step if step < -half => 2,
            step if step > half => 0,
            _ => 1,
        };
        let Some(room) = y.write(STROBES - first) else { return Outcome::Wait };
        room.iter_mut().zip(x.iter().step_by(2).skip(first)).for_each(|(y, x)| *y = *x);
        y.produce(STROBES - first);
        last_phase = phase[0];
        Outcome::Done
    })
}

/// Costas loop for QPSK: the phase is right up to quarter turns.
pub fn recover_carrier(report: SharedReport) -> impl Stage<Complex32, Complex32> {
    /// Noise bandwidth in cycles a symbol: at 2.5 dB the phase varies by about 0.1 rad, and a cycle slips at 0.8.
    const BANDWIDTH: f32 = 0.003;
    /// Of a point on the unit circle the error is sqrt(2) sin(phase).
    const SLOPE: f32 = std::f32::consts::SQRT_2;
    /// Radians a symbol. The coarse correction leaves 6e-5 cycles; at 2.5 dB the loop locks to 1e-4 at once, to more only slowly.
    const MAX_FREQUENCY: f32 = std::f32::consts::TAU * 1e-4;
    let [proportional, integral] = loop_gains(BANDWIDTH, SLOPE);
    // Radians, and radians a symbol.
    let (mut phase, mut frequency) = (0.0_f32, 0.0_f32);
    Blocks::one_to_one(ALL, ALL, move |x: &[Complex32], y: &mut [Complex32]| {
        for (x, y) in x.iter().zip(y) {
            let z = x * Complex32::cis(-phase);
            let error = (z.im * z.re.signum() - z.re * z.im.signum()) / z.norm().max(1e-6);
            frequency = (frequency + integral * error).clamp(-MAX_FREQUENCY, MAX_FREQUENCY);
            phase = (phase + frequency + proportional * error).rem_euclid(std::f32::consts::TAU);
            *y = z;
        }
        report.borrow_mut().residual_frequency = frequency / std::f32::consts::TAU;
    })
}

/// Finds frames by their sync word, and the quarter turn that the Costas loop left.
/// As many symbols as a frame has come in, and at most one frame goes out: its data, and 1; or 0, and the data are no frame.
pub struct FrameSync {
    word: Vec<Complex32>,
    data_symbols: usize,
    buffer: Vec<Complex32>,
    /// Where the search goes on.
    at: usize,
    report: SharedReport,
}

impl FrameSync {
    /// A sync word has 0.8 at 2.5 dB; data exceed the bound with probability (1 - 0.6^2)^63, 1e-12 a symbol.
    const MIN_CORRELATION: f32 = 0.6;

    pub fn new(word: Vec<Complex32>, data_symbols: usize, report: SharedReport) -> Self {
        let buffer = Vec::with_capacity(4 * (SYNC_SYMBOLS + data_symbols));
        Self { word, data_symbols, buffer, at: 0, report }
    }

    /// Goes to the next frame that is there as a whole; its correlation with the sync word, of magnitude 1 at most.
    fn find(&mut self) -> Option<Complex32> {
        while self.at + SYNC_SYMBOLS + self.data_symbols <= self.buffer.len() {
            let x = &self.buffer[self.at..self.at + SYNC_SYMBOLS];
            let power: f32 = x.iter().map(Complex32::norm_sqr).sum();
            let sum: Complex32 = x.iter().zip(&self.word).map(|(x, w)| x * w.conj()).sum();
            let correlation = sum / (power * SYNC_SYMBOLS as f32).max(f32::MIN_POSITIVE).sqrt();
            if correlation.norm() >= Self::MIN_CORRELATION {
                return Some(correlation);
            }
            self.at += 1;
        }
        None
    }
}

impl Primitive for FrameSync {
    type Ports = (In<Complex32>, Out<Complex32>, Out<u8>);
    fn apply(&mut self, (x, y, valid): (&[Complex32], &mut [Complex32], &mut [u8])) -> Outcome {
        let frame = SYNC_SYMBOLS + self.data_symbols;
        let frames = x.chunks_exact(frame).zip(y.chunks_exact_mut(self.data_symbols));
        for ((x, y), valid) in frames.zip(valid) {
            self.buffer.drain(..self.at);
            self.at = 0;
            if self.buffer.len() + frame > self.buffer.capacity() {
                self.buffer.clear();
            }
            self.buffer.extend_from_slice(x);
            *valid = 0;
            let Some(c) = self.find() else { continue };
            let is_real = c.re.abs() > c.im.abs();
            let turn = if is_real { c.re.signum().into() } else { Complex32::I * c.im.signum() };
            let data = &self.buffer[self.at + SYNC_SYMBOLS..];
            y.iter_mut().zip(data).for_each(|(y, x)| *y = x * turn.conj());
            *valid = 1;
            // The next frame comes a symbol earlier if the timing loop slips.
            self.at += frame - 1;
            self.report.borrow_mut().frames_received += 1;
        }
        Outcome::Done
    }
}

/// Soft demapper: a symbol to two values that are proportional to the logarithms of the bits' likelihood ratios.
pub fn demap() -> impl Stage<Complex32, f32> {
    Blocks::one_to_one(1, 2, |x: &[Complex32], y: &mut [f32]| y.copy_from_slice(&[x[0].re, x[0].im]))
}
