//! Real Fourier transforms behind spectra, autocovariance and event scans.
//!
//! Algorithms are taken one by one: rustfft's planner links all it has, a quarter of a megabyte, for lengths that nobody needs.

use std::cell::RefCell;
use std::f64::consts::TAU;
use std::sync::Arc;

use rustfft::algorithm::butterflies::{Butterfly3, Butterfly6, Butterfly12};
use rustfft::algorithm::{Dft, Radix4};
use rustfft::num_complex::Complex;
use rustfft::{Fft, FftDirection, FftNum};

/// Smallest length of the form `2^a` or `3 * 2^a` that is at least `n` and even.
pub(crate) fn fast_len(n: usize) -> usize {
    let power = n.max(2).next_power_of_two();
    if power >= 8 && power / 4 * 3 >= n { power / 4 * 3 } else { power }
}

/// Complex transform of any length; its time grows with the square of other lengths than `2^a` and `3 * 2^a`.
pub fn complex_plan<T: FftNum>(len: usize, direction: FftDirection) -> Arc<dyn Fft<T>> {
    let twos = len.trailing_zeros();
    if len == 1 << twos {
        Arc::new(Radix4::new(len, direction))
    } else if len == 3 << twos {
        // Four to some power times a base of 3, 6 or 12.
        let base: Arc<dyn Fft<T>> = match twos {
            0 => Arc::new(Butterfly3::new(direction)),
            _ if twos % 2 == 1 => Arc::new(Butterfly6::new(direction)),
            _ => Arc::new(Butterfly12::new(direction)),
        };
        let fours = (len / base.len()).trailing_zeros() / 2;
        Arc::new(Radix4::new_with_base(fours, base))
    } else {
        Arc::new(Dft::new(len, direction))
    }
}

thread_local! {
    /// The last plan made: searches transform the same length again and again, and making a plan costs as much as using it.
    static LAST: RefCell<Option<Arc<dyn Fft<f64>>>> = const { RefCell::new(None) };
}

fn transform(values: &mut [Complex<f64>]) {
    let plan = LAST.with_borrow_mut(|last| match last {
        Some(plan) if plan.len() == values.len() => Arc::clone(plan),
        _ => Arc::clone(last.insert(complex_plan(values.len(), FftDirection::Forward))),
    });
    plan.process(values);
}

/// Forward transform of `input`: `len / 2 + 1` bins, none for an empty input.
pub(crate) fn forward(input: &[f64]) -> Vec<Complex<f64>> {
    let (n, half) = (input.len(), input.len() / 2);
    if n == 0 {
        return Vec::new();
    }
    if !n.is_multiple_of(2) {
        let mut all: Vec<Complex<f64>> = input.iter().map(|x| Complex::new(*x, 0.0)).collect();
        transform(&mut all);
        all.truncate(half + 1);
        return all;
    }
    // Even and odd values as one complex series of half the length, told apart by their symmetry.
    let mut both: Vec<Complex<f64>> = input.chunks_exact(2).map(|p| Complex::new(p[0], p[1])).collect();
    transform(&mut both);
    let bin = |k: usize| {
        let (z, mirrored) = (both[k % half], both[(half - k) % half].conj());
        let turn = Complex::from_polar(0.5, -TAU * k as f64 / n as f64);
        let odd = (z - mirrored) * turn;
        (z + mirrored) * 0.5 + Complex::new(odd.im, -odd.re)
    };
    (0..=half).map(bin).collect()
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
    let power: Vec<f64> = forward(&padded).iter().map(Complex::norm_sqr).collect();
    // Powers are real and even, so that the way back is the way there.
    let mirrored: Vec<f64> = (0..len).map(|k| power[k.min(len - k)]).collect();
    forward(&mirrored).iter().take(max_lag + 1).map(|p| p.re / len as f64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_are_the_sums_that_define_them() {
        for n in [1, 2, 3, 4, 6, 7, 8, 10, 12, 16, 24, 48, 64, 96, 130, 192, 256, 384] {
            let xs: Vec<f64> = (0..n).map(|i| ((i * i + 3) % 17) as f64 - 5.0).collect();
            let bins = forward(&xs);
            assert_eq!(bins.len(), n / 2 + 1);
            for (k, bin) in bins.iter().enumerate() {
                let term = |(i, x): (usize, &f64)| Complex::from_polar(*x, -TAU * (i * k) as f64 / n as f64);
                let sum: Complex<f64> = xs.iter().enumerate().map(term).sum();
                assert!((bin - sum).norm() < 1e-9 * n as f64, "{n} {k}: {bin} {sum}");
            }
        }
        assert!(forward(&[]).is_empty());
    }

    #[test]
    fn lengths_are_even_and_at_most_half_as_long_again() {
        assert_eq!([1, 3, 5, 6, 7, 9, 100].map(fast_len), [2, 4, 6, 6, 8, 12, 128]);
        assert!((1..5_000).all(|n| (n..=n / 2 * 3 + 3).contains(&fast_len(n))));
    }
}
