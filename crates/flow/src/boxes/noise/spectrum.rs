//! Spectra of real frames: `n` samples, `n / 2 + 1` bins.

use rustfft::FftDirection;
use rustfft::num_complex::Complex32;

use crate::boxes::transform::Transform;

/// Transforms of real frames, by way of complex ones.
pub struct RealFft {
    transform: Transform,
    points: Vec<Complex32>,
}

impl RealFft {
    pub fn new(samples: usize, direction: FftDirection) -> Self {
        Self { transform: Transform::new(samples, direction), points: vec![Complex32::ZERO; samples] }
    }

    pub fn forward(&mut self, x: &[f32], y: &mut [Complex32]) {
        self.points.iter_mut().zip(x).for_each(|(z, x)| *z = Complex32::new(*x, 0.0));
        self.transform.transform(&mut self.points);
        y.copy_from_slice(&self.points[..y.len()]);
    }

    pub fn inverse(&mut self, x: &[Complex32], y: &mut [f32]) {
        self.points[..x.len()].copy_from_slice(x);
        // Bins above half of the rate are the conjugates of those below.
        for (z, x) in self.points[x.len()..].iter_mut().rev().zip(&x[1..]) {
            *z = x.conj();
        }
        self.transform.transform(&mut self.points);
        self.points.iter().zip(y).for_each(|(z, y)| *y = z.re);
    }
}

/// Magnitudes and phases. Samples are at most 1, so that squares do not overflow.
pub fn to_polar(x: &[Complex32], magnitude: &mut [f32], phase: &mut [f32]) {
    for ((x, magnitude), phase) in x.iter().zip(magnitude).zip(phase) {
        (*magnitude, *phase) = (x.norm_sqr().sqrt(), x.arg());
    }
}

pub fn to_rectangular(magnitude: &[f32], phase: &[f32], y: &mut [Complex32]) {
    for ((magnitude, phase), y) in magnitude.iter().zip(phase).zip(y) {
        *y = Complex32::from_polar(*magnitude, *phase);
    }
}
