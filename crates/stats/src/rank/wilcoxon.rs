//! Wilcoxon signed-rank test of paired differences.

use super::{mid_ranks, two_sided};
use crate::error::check;

/// Up to this many non-zero differences without ties use the exact law.
const EXACT_COUNT: usize = 50;

/// Result of the signed-rank test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Wilcoxon {
    /// Sum of the ranks of the positive differences.
    pub w_plus: f64,
    /// Sum of the ranks of the negative differences.
    pub w_minus: f64,
    /// Number of non-zero differences; zeros are dropped.
    pub n: usize,
    /// Two-sided probability under symmetry about zero.
    pub p: f64,
    /// Whether `p` comes from the exact law.
    pub exact: bool,
}

/// Tests whether paired differences are symmetric about zero; `None` if empty, not finite, or all zero.
pub fn wilcoxon_signed_rank(differences: &[f64]) -> Option<Wilcoxon> {
    check("differences", differences, 1).ok()?;
    let nonzero: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    let n = nonzero.len();
    if n == 0 {
        return None;
    }
    let magnitudes: Vec<f64> = nonzero.iter().map(|d| d.abs()).collect();
    let (ranks, ties) = mid_ranks(&magnitudes);
    let w_plus: f64 = ranks.iter().zip(&nonzero).filter(|(_, d)| **d > 0.0).map(|(r, _)| r).sum();
    let count = n as f64;
    let total = count * (count + 1.0) / 2.0;
    let w_minus = total - w_plus;
    let exact = ties == 0.0 && n <= EXACT_COUNT;
    let p = if exact {
        (2.0 * probability_at_most(w_plus.min(w_minus).round() as usize, n)).min(1.0)
    } else {
        let variance = count * (count + 1.0) * (2.0 * count + 1.0) / 24.0 - ties / 48.0;
        if variance > 0.0 { two_sided(w_plus - total / 2.0, variance.sqrt()) } else { 1.0 }
    };
    Some(Wilcoxon { w_plus, w_minus, n, p, exact })
}

/// `P(W <= w)`: each rank is in the sum with probability one half.
fn probability_at_most(w: usize, n: usize) -> f64 {
    let mut law = vec![0.0_f64; n * (n + 1) / 2 + 1];
    law[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..law.len()).rev() {
            let with = if sum >= rank { law[sum - rank] } else { 0.0 };
            law[sum] = 0.5 * (law[sum] + with);
        }
    }
    law.iter().take(w + 1).sum()
}
