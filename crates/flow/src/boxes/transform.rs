//! Fourier transforms and windows.

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
