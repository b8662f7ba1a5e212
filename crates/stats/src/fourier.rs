//! Real Fourier transforms behind spectra, autocovariance and event scans.

use std::cell::RefCell;
use std::sync::Arc;

use realfft::num_complex::Complex;
use realfft::{RealFftPlanner, RealToComplex};

/// Smallest length of the form `2^a 3^b 5^c` that is at least `n` and even.
pub(crate) fn fast_len(n: usize) -> usize {
    let mut best = n.max(2).next_power_of_two();
    let mut fives = 1;
    while fives < best {
        let mut threes = fives;
        while threes < best {
            let mut candidate = threes * 2;
            while candidate < n {
                candidate *= 2;
            }
            best = best.min(candidate);
            threes *= 3;
        }
        fives *= 5;
    }
    best
}

thread_local! {
    /// The last plan made: searches transform the same length again and again, and making a plan costs as much as using it.
    static LAST: RefCell<Option<Arc<dyn RealToComplex<f64>>>> = const { RefCell::new(None) };
}

fn forward_plan(len: usize) -> Arc<dyn RealToComplex<f64>> {
    LAST.with_borrow_mut(|last| match last {
        Some(plan) if plan.len() == len => Arc::clone(plan),
        _ => Arc::clone(last.insert(RealFftPlanner::new().plan_fft_forward(len))),
    })
}

/// Forward transform of `input`, which is overwritten; `len / 2 + 1` bins, none for an empty input.
pub(crate) fn forward(input: &mut [f64]) -> Vec<Complex<f64>> {
    if input.is_empty() {
        return Vec::new();
    }
    let plan = forward_plan(input.len());
    let mut output = plan.make_output_vec();
    // The lengths come from the plan itself, which is the only way `process` can fail.
    if plan.process(input, &mut output).is_err() {
        output.fill(Complex::new(0.0, 0.0));
    }
    output
}

/// Sums `sum_i (x_i - mean)(x_{i+k} - mean)` for lags `k` in `0..=max_lag`; the caller guarantees finite values.
pub(crate) fn lagged_products(xs: &[f64], max_lag: usize) -> Vec<f64> {
    let n = xs.len();
    if n == 0 {
        return Vec::new();
    }
    let max_lag = max_lag.min(n - 1);
    let center = crate::spread::sum(xs) / n as f64;
    let len = fast_len(n + max_lag);
    let mut padded: Vec<f64> = xs.iter().map(|x| x - center).collect();
    padded.resize(len, 0.0);
    let mut bins = forward(&mut padded);
    for bin in &mut bins {
        *bin = Complex::new(bin.norm_sqr(), 0.0);
    }
    let plan = RealFftPlanner::new().plan_fft_inverse(len);
    if plan.process(&mut bins, &mut padded).is_err() {
        padded.fill(0.0);
    }
    padded.truncate(max_lag + 1);
    for value in &mut padded {
        *value /= len as f64;
    }
    padded
}
