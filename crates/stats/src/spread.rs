//! Location and spread: moments, and the robust measures that survive heavy tails.
//!
//! Sources: Chan, Golub & `LeVeque`, "Algorithms for Computing the Sample Variance" (1983); Neumaier (1974) for the compensated
//! sum; Huber & Ronchetti, *Robust Statistics* (2009) for the MAD.

use crate::error::{check, finite};
use crate::quantile::select_median;

/// `1 / Phi^-1(3/4)`: makes the MAD of normal data estimate its standard deviation.
const MAD_SCALE: f64 = 1.482_602_218_505_602;

/// Compensated sum; the caller guarantees finite values.
pub(crate) fn sum(xs: &[f64]) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0_f64);
    for &x in xs {
        let next = total + x;
        lost += if total.abs() >= x.abs() { (total - next) + x } else { (x - next) + total };
        total = next;
    }
    total + lost
}

/// Arithmetic mean; `None` if empty or not finite.
pub fn mean(xs: &[f64]) -> Option<f64> {
    check("sample", xs, 1).ok()?;
    finite(sum(xs) / xs.len() as f64)
}

/// Unbiased variance (divisor `n - 1`) by the corrected two-pass algorithm; `None` for fewer than 2 values.
pub fn variance(xs: &[f64]) -> Option<f64> {
    check("sample", xs, 2).ok()?;
    let n = xs.len() as f64;
    let center = mean(xs)?;
    let (mut squares, mut drift) = (0.0_f64, 0.0_f64);
    for x in xs {
        let d = x - center;
        squares += d * d;
        // Would be zero if the mean were exact.
        drift += d;
    }
    finite(((squares - drift * drift / n) / (n - 1.0)).max(0.0))
}

/// Standard deviation (divisor `n - 1`), in the unit of the values.
pub fn stddev(xs: &[f64]) -> Option<f64> {
    variance(xs).map(f64::sqrt)
}

/// Median absolute deviation from the median, scaled so that it estimates the standard deviation of normal data.
pub fn mad(xs: &[f64]) -> Option<f64> {
    check("sample", xs, 1).ok()?;
    let mut scratch = xs.to_vec();
    let center = select_median(&mut scratch);
    for x in &mut scratch {
        *x = (*x - center).abs();
    }
    finite(select_median(&mut scratch) * MAD_SCALE)
}

/// Asymptotic efficiency of the MAD of normal data (Huber & Ronchetti 2009, section 5.1).
const MAD_EFFICIENCY: f64 = 0.3674;
/// Makes the mean MAD of few normal values that of many, from 2 on (Croux & Rousseeuw 1992); of n > 9 it is n / (n - 0.8).
const MAD_OF_FEW: [f64; 8] = [1.196, 1.495, 1.363, 1.206, 1.200, 1.140, 1.129, 1.107];

/// Standard deviation by the [`mad`], whatever fewer than half of the values are, and the degrees of freedom of as uncertain a plain one.
/// `None` for fewer than 2 values.
pub fn robust_deviation(xs: &[f64]) -> Option<(f64, f64)> {
    let n = xs.len();
    let few = MAD_OF_FEW.get(n.checked_sub(2)?).copied();
    let correction = few.unwrap_or_else(|| n as f64 / (n as f64 - 0.8));
    Some((mad(xs)? * correction, MAD_EFFICIENCY * (n - 1) as f64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// Of normal data it is right on average, also of few values, and as uncertain as it says where there are many.
    #[test]
    fn the_robust_deviation_is_that_of_normal_data() {
        const RUNS: usize = 20_000;
        let mut random = Random::new(8);
        for n in [2, 3, 5, 6, 9, 10, 15, 28, 120] {
            let mut of = |_| {
                let xs: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                robust_deviation(&xs).unwrap()
            };
            let all: Vec<(f64, f64)> = (0..RUNS).map(&mut of).collect();
            let mean = all.iter().map(|a| a.0).sum::<f64>() / RUNS as f64;
            assert!((mean - 1.0).abs() < 0.03, "{n} values: {mean}");
            let variance = all.iter().map(|a| (a.0 - mean).powi(2)).sum::<f64>() / RUNS as f64;
            let ratio = variance * 2.0 * all[0].1;
            assert!(n < 15 || (0.75..1.3).contains(&ratio), "{n} values: variance {ratio} times the said");
        }
        assert_eq!(robust_deviation(&[1.0]), None);
    }

    #[test]
    fn fewer_than_half_of_the_values_move_it_little() {
        let mut xs: Vec<f64> = (0..21).map(f64::from).collect();
        let (before, _) = robust_deviation(&xs).unwrap();
        xs[12..].fill(1e9);
        assert!(robust_deviation(&xs).unwrap().0 < 2.5 * before);
    }
}
