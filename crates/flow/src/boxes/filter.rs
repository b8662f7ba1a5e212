//! Receive filters of channels that are sampled at an intermediate frequency. Blocks are pulses: no state is kept between them.

use std::f32::consts::PI;
use std::ops::Mul;

use rustfft::num_complex::Complex32;

use super::{Blocks, Stage, function};
use crate::{In, Many, Out, Outcome, Primitive};

/// Separates samples of `N` channels.
pub fn demultiplex<const N: usize>() -> impl Primitive<Ports = (In<[f32; N]>, Vec<Out<f32>>)> {
    function::<(In<[f32; N]>, Vec<Out<f32>>), _>(|(x, mut channels): (&[[f32; N]], Many<'_, Out<f32>>)| {
        for c in 0..N {
            x.iter().zip(channels.at(c)).for_each(|(x, y)| *y = x[c]);
        }
        Outcome::Done
    })
}

/// Moves a carrier at a quarter of the sampling rate to 0: factors 1, -i, -1, i. A pulse has a multiple of 4 samples.
pub fn demodulate() -> impl Stage<f32, Complex32> {
    Blocks::one_to_one(4, 4, |x: &[f32], y: &mut [Complex32]| {
        let parts = [[x[0], 0.0], [0.0, -x[1]], [-x[2], 0.0], [0.0, x[3]]];
        y.iter_mut().zip(parts).for_each(|(y, [re, im])| *y = Complex32::new(re, im));
    })
}

/// An odd number of taps: Hamming's window on a sinc. `cutoff` is in cycles a sample, `gain` that at frequency 0.
pub fn low_pass(taps: usize, cutoff: f32, gain: f32) -> Vec<f32> {
    let middle = (taps / 2) as f32;
    let tap = |i: usize| {
        let t = PI * (i as f32 - middle);
        let sinc = if t == 0.0 { 2.0 * cutoff } else { (2.0 * cutoff * t).sin() / t };
        sinc * (0.54 + 0.46 * (t / (middle + 1.0)).cos())
    };
    let taps: Vec<f32> = (0..taps).map(tap).collect();
    let sum: f32 = taps.iter().sum();
    taps.into_iter().map(|h| h * gain / sum).collect()
}

/// Sums that a filter keeps apart: a single one would wait for each addition.
const LANES: usize = 4;

/// Filters with an odd number of symmetric taps, without delay, and keeps one sample of `by`. Around a pulse are zeros.
pub fn decimate(taps: &[f32], by: usize, pulse: usize) -> impl Stage<Complex32, Complex32> + use<> {
    let margin = taps.len() / 2;
    let mut taps = taps.to_vec();
    taps.resize(taps.len().next_multiple_of(LANES), 0.0);
    let mut padded = vec![Complex32::ZERO; pulse + taps.len()];
    Blocks::one_to_one(pulse, pulse / by, move |x: &[Complex32], y: &mut [Complex32]| {
        padded[margin..][..pulse].copy_from_slice(x);
        for (y, x) in y.iter_mut().zip(padded.windows(taps.len()).step_by(by)) {
            let mut sums = [Complex32::ZERO; LANES];
            for (x, h) in x.chunks_exact(LANES).zip(taps.chunks_exact(LANES)) {
                (0..LANES).for_each(|i| sums[i] += x[i] * h[i]);
            }
            *y = sums.iter().sum();
        }
    })
}

/// Removes a channel's gain, phase and ripple.
pub fn equalize(taps: [Complex32; 3], pulse: usize) -> impl Stage<Complex32, Complex32> {
    Blocks::one_to_one(pulse, pulse, move |x: &[Complex32], y: &mut [Complex32]| {
        let mut last = [Complex32::ZERO; 2];
        for (x, y) in x.iter().zip(y) {
            *y = taps[0] * x + taps[1] * last[0] + taps[2] * last[1];
            last = [*x, last[0]];
        }
    })
}

/// Multiplies every block by weights: a spectrum or a window.
pub fn multiply<W>(weights: Vec<W>) -> impl Stage<Complex32, Complex32>
where
    W: Copy + 'static,
    Complex32: Mul<W, Output = Complex32>,
{
    Blocks::one_to_one(weights.len(), weights.len(), move |x: &[Complex32], y: &mut [Complex32]| {
        x.iter().zip(y).zip(&weights).for_each(|((x, y), w)| *y = *x * *w);
    })
}
