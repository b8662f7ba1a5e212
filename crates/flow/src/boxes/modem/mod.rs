//! A QPSK modem with a convolutional code.

pub mod coding;
pub mod front;
pub mod recovery;

use std::cell::RefCell;
use std::rc::Rc;

use rustfft::num_complex::Complex32;

/// Samples a symbol before timing recovery.
pub const OVERSAMPLING: usize = 4;
pub const SYNC_SYMBOLS: usize = 64;

#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Report {
    /// Frames with a sync word.
    pub frames_sent: u64,
    /// Frames whose sync word was found.
    pub frames_received: u64,
    /// Frames that are not counted: the reference of the error counter was out of step.
    pub slips: u64,
    /// Bits that were compared.
    pub bits: u64,
    pub bit_errors: u64,
    /// Estimate of the coarse correction, cycles a symbol.
    pub coarse_frequency: f32,
    /// What the Costas loop corrects beyond that, cycles a symbol.
    pub residual_frequency: f32,
    /// Timing phase at the end, symbols.
    pub timing: f32,
    /// Estimate of the timing loop.
    pub clock_ppm: f32,
}

impl Report {
    /// Bit error rate.
    pub fn ber(&self) -> f64 {
        self.bit_errors as f64 / self.bits as f64
    }
}

pub type SharedReport = Rc<RefCell<Report>>;

/// Samples that filters work on at once: in and out fit the first-level cache.
const CHUNK: usize = 256;

/// The latest samples of a stream in a row.
struct History {
    samples: Vec<Complex32>,
    keep: usize,
}

impl History {
    fn new(keep: usize) -> Self {
        Self { samples: vec![Complex32::ZERO; keep + CHUNK], keep }
    }
    /// The `keep` samples before, then these, which are at most [`CHUNK`].
    fn push(&mut self, x: &[Complex32]) -> &[Complex32] {
        self.samples.drain(..self.samples.len() - self.keep);
        self.samples.extend_from_slice(x);
        &self.samples
    }
}

/// An oscillator of a fixed frequency.
struct Oscillator {
    phase: Complex32,
    step: Complex32,
}

impl Oscillator {
    /// Frequency in cycles a step.
    fn new(frequency: f32) -> Self {
        Self { phase: Complex32::ONE, step: Complex32::cis(std::f32::consts::TAU * frequency) }
    }
    /// The next value; a Newton step holds the magnitude at 1.
    #[inline]
    fn turn(&mut self) -> Complex32 {
        let next = self.phase * self.step;
        self.phase = next * (1.5 - 0.5 * next.norm_sqr());
        self.phase
    }
}

/// Proportional and integral gain of a second-order loop with damping 0.707 (Rice, "Digital Communications", appendix C).
/// The noise bandwidth is in cycles an update, the slope that of the detector at lock.
fn loop_gains(bandwidth: f32, slope: f32) -> [f32; 2] {
    let damping = std::f32::consts::FRAC_1_SQRT_2;
    let theta = bandwidth / (damping + 0.25 / damping);
    let scale = 4.0 / ((1.0 + 2.0 * damping * theta + theta * theta) * slope);
    [damping * theta * scale, theta * theta * scale]
}
