//! Normal deviates.

use machmeter_stats::random::Random;
use rustfft::num_complex::Complex32;

/// A stream of normal deviates, determined by its seed alone.
pub struct Gauss(Random);

impl Gauss {
    pub fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    /// Standard normal.
    #[allow(clippy::should_implement_trait, reason = "the stream has no end, so that no Option is due")]
    pub fn next(&mut self) -> f32 {
        self.0.normal() as f32
    }

    /// Circular, of power 1: an exponential power and any angle.
    pub fn complex(&mut self) -> Complex32 {
        let radius = self.0.exponential().sqrt() as f32;
        Complex32::from_polar(radius, std::f32::consts::TAU * self.0.unit() as f32)
    }
}
