//! Fourier transforms and windows. Spectra of real frames have `n / 2 + 1` bins for `n` samples.

use std::sync::Arc;

use machmeter_stats::fourier::complex_plan;
use rustfft::num_complex::Complex32;
use rustfft::{Fft, FftDirection};

use crate::{In, Out, Outcome, Primitive};

/// Transforms of `n` points each; the inverse is divided by `n`.
pub struct Transform {
    fft: Arc<dyn Fft<f32>>,
    scratch: Vec<Complex32>,
    scale: f32,
}

impl Transform {
    pub fn new(points: usize, direction: FftDirection) -> Self {
        let fft = complex_plan(points, direction);
        let scratch = vec![Complex32::ZERO; fft.get_inplace_scratch_len()];
        let scale = if direction == FftDirection::Inverse { 1.0 / points as f32 } else { 1.0 };
        Self { fft, scratch, scale }
    }

    /// In place; the length is a multiple of the points.
    pub fn transform(&mut self, y: &mut [Complex32]) {
        self.fft.process_with_scratch(y, &mut self.scratch);
        if self.scale < 1.0 {
            for y in y {
                *y *= self.scale;
            }
        }
    }
}

impl Primitive for Transform {
    type Ports = (In<Complex32>, Out<Complex32>);
    fn apply(&mut self, (x, y): (&[Complex32], &mut [Complex32])) -> Outcome {
        y.copy_from_slice(x);
        self.transform(y);
        Outcome::Done
    }
}

/// Hann's window for blocks that overlap: the first weight is 0, the one after the last would be.
pub fn hann(points: usize) -> Vec<f32> {
    let at = |i: usize| std::f32::consts::TAU * i as f32 / points as f32;
    (0..points).map(|i| 0.5 - 0.5 * at(i).cos()).collect()
}

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
