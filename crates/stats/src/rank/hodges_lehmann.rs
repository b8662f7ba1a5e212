//! Hodges-Lehmann shift between two samples, with Moses's interval.

use super::mann_whitney::u_cumulative;
use super::{EXACT_PRODUCT, mid_ranks, u_variance};
use crate::distribution::normal_quantile;
use crate::error::{check, finite};
use crate::interval::{Interval, valid_level};
use crate::quantile::sorted;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Median of all differences `y - x`, in the unit of the values.
    pub estimate: f64,
    /// Interval from the Mann-Whitney law; `None` if the samples are too small for the level.
    pub interval: Option<Interval>,
}

/// Shift of `y` against `x`: the median of all pairwise differences.
///
/// Exact for any sizes in time linear in `x.len() + y.len()`: the wanted difference is found by bisection over
/// the ordered bit patterns of `f64`, counting pairs at each step. `None` if either is empty or not finite.
pub fn hodges_lehmann(x: &[f64], y: &[f64], level: f64) -> Option<Shift> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    if !valid_level(level) {
        return None;
    }
    let (xs, ys) = (sorted(x).ok()?, sorted(y).ok()?);
    let pairs = xs.len().checked_mul(ys.len())?;
    let lower = kth_difference(&xs, &ys, pairs.div_ceil(2))?;
    let upper = kth_difference(&xs, &ys, pairs / 2 + 1)?;
    let interval = outer_rank(x, y, level).and_then(|rank| {
        Interval::new(level, kth_difference(&xs, &ys, rank)?, kth_difference(&xs, &ys, pairs + 1 - rank)?)
    });
    Some(Shift { estimate: finite(lower * 0.5 + upper * 0.5)?, interval })
}

/// Rank (from 1) of the difference that bounds the shift from below.
fn outer_rank(x: &[f64], y: &[f64], level: f64) -> Option<usize> {
    let tail = (1.0 - level) / 2.0;
    let (n, m) = (x.len() as f64, y.len() as f64);
    let pooled: Vec<f64> = x.iter().chain(y).map(|v| v + 0.0).collect();
    let (_, ties) = mid_ranks(&pooled);
    let rank = if ties == 0.0 && x.len() * y.len() <= EXACT_PRODUCT {
        u_cumulative(x.len(), y.len()).partition_point(|c| *c < tail)
    } else {
        (n * m / 2.0 - normal_quantile(1.0 - tail)? * u_variance(n, m, ties).max(0.0).sqrt()).floor().max(0.0)
            as usize
    };
    (rank >= 1).then_some(rank)
}

/// The `k`-th smallest (from 1) of all `y - x`; both samples ascending.
fn kth_difference(xs: &[f64], ys: &[f64], k: usize) -> Option<f64> {
    let smallest = finite(ys.first()? - xs.last()?)?;
    let largest = finite(ys.last()? - xs.first()?)?;
    let (mut low, mut high) = (ordered_bits(smallest), ordered_bits(largest));
    while low < high {
        let middle = low + (high - low) / 2;
        if pairs_at_most(xs, ys, from_ordered_bits(middle)) >= k { high = middle } else { low = middle + 1 }
    }
    finite(from_ordered_bits(low))
}

fn pairs_at_most(xs: &[f64], ys: &[f64], limit: f64) -> usize {
    let mut through = 0;
    let mut count = 0;
    for x in xs {
        while through < ys.len() && ys[through] - x <= limit {
            through += 1;
        }
        count += through;
    }
    count
}

/// Maps `f64` to `u64` so that the order is kept.
fn ordered_bits(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 { !bits } else { bits | (1 << 63) }
}

fn from_ordered_bits(bits: u64) -> f64 {
    f64::from_bits(if bits >> 63 == 1 { bits & !(1 << 63) } else { !bits })
}
