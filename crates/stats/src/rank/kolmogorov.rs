//! Two-sample Kolmogorov-Smirnov test.

use crate::error::check;
use crate::quantile::sorted;

/// Samples with a product of sizes up to this use the exact law.
const EXACT_PRODUCT: usize = 1_000_000;

/// Result of the two-sample Kolmogorov-Smirnov test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KolmogorovSmirnov {
    /// Largest distance between the two empirical distribution functions, in `[0, 1]`.
    pub d: f64,
    /// Two-sided probability of a distance at least this large; conservative with ties.
    pub p: f64,
    /// Whether `p` is exact (product of the sizes up to a million) or from the limiting law.
    pub exact: bool,
}

/// Tests whether two samples come from one distribution; `None` if either is empty or not finite.
pub fn kolmogorov_smirnov(x: &[f64], y: &[f64]) -> Option<KolmogorovSmirnov> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    let (xs, ys) = (sorted(x).ok()?, sorted(y).ok()?);
    let (n, m) = (xs.len(), ys.len());
    // The distance is a multiple of 1 / (n m): kept as an integer so that comparisons are exact.
    let (mut i, mut j, mut widest) = (0_usize, 0_usize, 0_u128);
    while i < n && j < m {
        let here = xs[i].min(ys[j]);
        i += xs[i..].iter().take_while(|v| **v <= here).count();
        j += ys[j..].iter().take_while(|v| **v <= here).count();
        widest = widest.max((i as u128 * m as u128).abs_diff(j as u128 * n as u128));
    }
    let d = widest as f64 / (n as f64 * m as f64);
    let exact = n.checked_mul(m).is_some_and(|product| product <= EXACT_PRODUCT);
    let p = if exact {
        path_probability(n, m, widest as u64)
    } else {
        let (n, m) = (n as f64, m as f64);
        kolmogorov_sf(d * (n * m / (n + m)).sqrt())?
    };
    Some(KolmogorovSmirnov { d, p, exact })
}

/// Probability that a random lattice path from (0, 0) to (n, m) strays at least `widest` from the diagonal.
fn path_probability(n: usize, m: usize, widest: u64) -> f64 {
    if widest == 0 {
        return 1.0;
    }
    let outside = |i: usize, j: usize| (i as u64 * m as u64).abs_diff(j as u64 * n as u64) >= widest;
    let mut row = vec![0.0_f64; m + 1];
    for i in 0..=n {
        for j in 0..=m {
            row[j] = if outside(i, j) {
                1.0
            } else if i + j == 0 {
                0.0
            } else {
                let steps = (i + j) as f64;
                let from_left = if j > 0 { row[j - 1] * j as f64 } else { 0.0 };
                (row[j] * i as f64 + from_left) / steps
            };
        }
    }
    row[m].clamp(0.0, 1.0)
}

/// Kolmogorov's limiting law `P(K >= t)` of the scaled distance; `None` for a negative or non-finite `t`.
pub fn kolmogorov_sf(t: f64) -> Option<f64> {
    if !(t >= 0.0 && t.is_finite()) {
        return None;
    }
    if t < 0.1 {
        return Some(1.0);
    }
    if t < 1.18 {
        // The theta-function form converges fast where the alternating series does not.
        let q = (-(std::f64::consts::PI / t).powi(2) / 8.0).exp();
        let sum = q + q.powi(9) + q.powi(25) + q.powi(49);
        return Some((1.0 - (2.0 * std::f64::consts::PI).sqrt() / t * sum).clamp(0.0, 1.0));
    }
    let term = |k: f64| (-2.0 * k * k * t * t).exp();
    Some((2.0 * (term(1.0) - term(2.0) + term(3.0) - term(4.0))).clamp(0.0, 1.0))
}
