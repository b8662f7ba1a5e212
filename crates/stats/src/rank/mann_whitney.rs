//! Mann-Whitney U, exact for small samples without ties.

use super::{EXACT_PRODUCT, mid_ranks, two_sided, u_variance};
use crate::error::check;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// Number of pairs with `x > y`, ties counting one half.
    pub u: f64,
    /// Two-sided probability of a result at least this far from no difference.
    pub p: f64,
    /// `P(X > Y) + P(X = Y) / 2`: 0.5 is no effect, 1 means every `x` exceeds every `y`.
    pub effect: f64,
    /// Whether `p` comes from the exact law (small samples, no ties).
    pub exact: bool,
}

/// Tests whether values of `x` tend to be larger or smaller than values of `y`; `None` if either is empty or not
/// finite.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<MannWhitney> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    let (n, m) = (x.len() as f64, y.len() as f64);
    let pooled: Vec<f64> = x.iter().chain(y).map(|v| v + 0.0).collect();
    let (ranks, ties) = mid_ranks(&pooled);
    let u = ranks[..x.len()].iter().sum::<f64>() - n * (n + 1.0) / 2.0;
    let exact = ties == 0.0 && x.len() * y.len() <= EXACT_PRODUCT;
    let p = if exact {
        let cumulative = u_cumulative(x.len(), y.len());
        let lower = u.min(n * m - u).round() as usize;
        (2.0 * cumulative[lower]).min(1.0)
    } else {
        let variance = u_variance(n, m, ties);
        if variance > 0.0 { two_sided(u - n * m / 2.0, variance.sqrt()) } else { 1.0 }
    };
    Some(MannWhitney { u, p, effect: u / (n * m), exact })
}

/// `P(U <= u)` for `u` in `0..=n*m` under no difference.
pub(super) fn u_cumulative(n: usize, m: usize) -> Vec<f64> {
    // ways[k][u]: choices of k ranks among those seen so far whose rank sum exceeds its minimum by u.
    // The counts stay below C(100, 50), about 1e29, and are only ever added, so f64 loses nothing that matters.
    let width = n * m + 1;
    let mut ways = vec![vec![0.0_f64; width]; n + 1];
    ways[0][0] = 1.0;
    for rank in 1..=n + m {
        for k in (1..=n.min(rank)).rev() {
            let step = rank - k;
            if step > m {
                continue;
            }
            let (before, after) = ways.split_at_mut(k);
            for u in step..width {
                after[0][u] += before[k - 1][u - step];
            }
        }
    }
    let mut total = 0.0;
    for w in &mut ways[n] {
        total += *w;
        *w = total;
    }
    ways[n].iter().map(|w| w / total).collect()
}
