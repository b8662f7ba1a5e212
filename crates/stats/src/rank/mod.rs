//! Tests that two samples differ, and by how much, without assuming a distribution.
//!
//! All of them assume independent draws; for series correlated in time compare per-block summaries.
//! Sources: Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed.
//! (2014); Hodges & Lehmann (1963); Holm (1979).

mod hodges_lehmann;
mod mann_whitney;

pub use hodges_lehmann::{Shift, hodges_lehmann};
pub use mann_whitney::{MannWhitney, mann_whitney};

use crate::distribution::normal_sf;

/// Holm's step-down adjustment: rejecting where the result is below `alpha` keeps the chance of any false
/// rejection below `alpha`. Output in input order; a value that is no probability counts as 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let valid = |p: f64| if (0.0..=1.0).contains(&p) { p } else { 1.0 };
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| valid(p[*a]).total_cmp(&valid(p[*b])));
    let mut adjusted = vec![1.0; p.len()];
    let mut reached = 0.0_f64;
    for (rank, index) in order.into_iter().enumerate() {
        reached = reached.max((valid(p[index]) * (p.len() - rank) as f64).min(1.0));
        adjusted[index] = reached;
    }
    adjusted
}

/// Mid-ranks (from 1) of the values, and the tie term `sum(t^3 - t)`.
fn mid_ranks(xs: &[f64]) -> (Vec<f64>, f64) {
    let mut order: Vec<usize> = (0..xs.len()).collect();
    order.sort_unstable_by(|a, b| xs[*a].total_cmp(&xs[*b]));
    let mut ranks = vec![0.0; xs.len()];
    let (mut ties, mut before) = (0.0, 0);
    for run in order.chunk_by(|a, b| xs[*a] == xs[*b]) {
        let t = run.len() as f64;
        for index in run {
            ranks[*index] = before as f64 + f64::midpoint(t, 1.0);
        }
        ties += t * t * t - t;
        before += run.len();
    }
    (ranks, ties)
}

/// Products of the sizes of two samples up to which, without ties, the exact law of U is used.
const EXACT_PRODUCT: usize = 2500;

/// Variance of Mann and Whitney's U under no difference.
fn u_variance(n: f64, m: f64, ties: f64) -> f64 {
    let total = n + m;
    n * m / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)))
}

/// Two-sided normal probability of a statistic that lies `distance` from its center, with continuity correction.
fn two_sided(distance: f64, deviation: f64) -> f64 {
    let z = (distance.abs() - 0.5).max(0.0) / deviation;
    normal_sf(z).map_or(1.0, |p| (2.0 * p).min(1.0))
}
