//! Tests that two samples differ, and by how much, without assuming a distribution.
//!
//! All of them assume independent draws; for series correlated in time compare per-block summaries.
//! Sources: Hollander, Wolfe & Chicken, *Nonparametric Statistical Methods*, 3rd ed.
//! (2014); Hodges & Lehmann (1963); Holm (1979).

use crate::bisection::first;
use crate::distribution::{normal_quantile, normal_sf};
use crate::error::{check, finite};
use crate::interval::{Interval, valid_level};
use crate::quantile::sorted;

/// Probabilities in ascending order, each with its place in the input; a value that is no probability counts as 1.
fn ordered(p: &[f64]) -> Vec<(f64, usize)> {
    let valid = |p: &f64| if (0.0..=1.0).contains(p) { *p } else { 1.0 };
    let mut order: Vec<(f64, usize)> = p.iter().map(valid).zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    order
}

/// Holm's step-down adjustment: rejecting where the result is below `alpha` keeps the chance of any false
/// rejection below `alpha`. Output in input order; a value that is no probability counts as 1.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let (mut adjusted, mut reached) = (vec![1.0; p.len()], 0.0_f64);
    for (rank, (p, index)) in ordered(p).into_iter().enumerate() {
        reached = reached.max((p * (adjusted.len() - rank) as f64).min(1.0));
        adjusted[index] = reached;
    }
    adjusted
}

/// Benjamini and Hochberg's step-up adjustment (J. R. Stat. Soc. B 57, 1995): rejecting where the result is at most `q` keeps the
/// expected share of false rejections at `q`. Output in input order; a value that is no probability counts as 1.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let (mut adjusted, mut reached) = (vec![1.0; p.len()], 1.0_f64);
    for (before, (p, index)) in ordered(p).into_iter().enumerate().rev() {
        reached = reached.min(p * adjusted.len() as f64 / (before + 1) as f64);
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

/// Mid-ranks of both samples together, and the deviation of U under no difference where its law is taken as normal.
fn pooled(x: &[f64], y: &[f64]) -> (Vec<f64>, Option<f64>) {
    let all: Vec<f64> = x.iter().chain(y).map(|v| v + 0.0).collect();
    let (ranks, ties) = mid_ranks(&all);
    let (n, m, total) = (x.len() as f64, y.len() as f64, all.len() as f64);
    let variance = n * m / 12.0 * ((total + 1.0) - ties / (total * (total - 1.0)));
    let exact = ties == 0.0 && x.len() * y.len() <= EXACT_PRODUCT;
    (ranks, (!exact).then(|| variance.max(0.0).sqrt()))
}

/// Mann and Whitney's test whether values of `x` tend to be larger or smaller than those of `y`: its two-sided probability.
/// `None` if either is empty or not finite.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<f64> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    let (n, m) = (x.len() as f64, y.len() as f64);
    let (ranks, deviation) = pooled(x, y);
    // Number of pairs with `x > y`, ties counting one half.
    let u = ranks[..x.len()].iter().sum::<f64>() - n * (n + 1.0) / 2.0;
    let tail = match deviation {
        None => u_cumulative(x.len(), y.len())[u.min(n * m - u).round() as usize],
        // With continuity correction.
        Some(d) if d > 0.0 => normal_sf(((u - n * m / 2.0).abs() - 0.5).max(0.0) / d).unwrap_or(1.0),
        Some(_) => 1.0,
    };
    Some((2.0 * tail).min(1.0))
}

/// `P(U <= u)` for `u` in `0..=n*m` under no difference.
fn u_cumulative(n: usize, m: usize) -> Vec<f64> {
    // ways[k][u]: choices of k ranks among those seen so far whose sum exceeds its minimum by u; below C(100, 50).
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// Median of all differences `y - x`, in the unit of the values.
    pub estimate: f64,
    /// Interval from the Mann-Whitney law; `None` if the samples are too small for the level.
    pub interval: Option<Interval>,
}

/// Shift of `y` against `x`: the median of all pairwise differences.
///
/// Exact in time linear in both lengths, by bisection over bit patterns. `None` if either is empty or not finite.
pub fn hodges_lehmann(x: &[f64], y: &[f64], level: f64) -> Option<Shift> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    if !valid_level(level) {
        return None;
    }
    let (xs, ys) = (sorted(x).ok()?, sorted(y).ok()?);
    let pairs = xs.len().checked_mul(ys.len())?;
    let interval = outer_rank(x, y, level).and_then(|rank| {
        Interval::new(level, kth_difference(&xs, &ys, rank)?, kth_difference(&xs, &ys, pairs + 1 - rank)?)
    });
    Some(Shift { estimate: median_difference(&xs, &ys)?, interval })
}

/// The estimate of [`hodges_lehmann`] without its interval.
pub fn shift(x: &[f64], y: &[f64]) -> Option<f64> {
    check("x", x, 1).ok()?;
    check("y", y, 1).ok()?;
    median_difference(&sorted(x).ok()?, &sorted(y).ok()?)
}

/// Median of all `y - x`; both samples ascending.
fn median_difference(xs: &[f64], ys: &[f64]) -> Option<f64> {
    let pairs = xs.len().checked_mul(ys.len())?;
    let lower = kth_difference(xs, ys, pairs.div_ceil(2))?;
    let upper = if pairs % 2 == 1 { lower } else { kth_difference(xs, ys, pairs / 2 + 1)? };
    finite(lower * 0.5 + upper * 0.5)
}

/// Rank (from 1) of the difference that bounds the shift from below.
fn outer_rank(x: &[f64], y: &[f64], level: f64) -> Option<usize> {
    let tail = (1.0 - level) / 2.0;
    let center = x.len() as f64 * y.len() as f64 / 2.0;
    let rank = match pooled(x, y).1 {
        None => u_cumulative(x.len(), y.len()).partition_point(|c| *c < tail),
        Some(d) => (center - normal_quantile(1.0 - tail)? * d).floor().max(0.0) as usize,
    };
    (rank >= 1).then_some(rank)
}

/// The `k`-th smallest (from 1) of all `y - x`; both samples ascending.
fn kth_difference(xs: &[f64], ys: &[f64], k: usize) -> Option<f64> {
    let smallest = finite(ys.first()? - xs.last()?)?;
    let largest = finite(ys.last()? - xs.first()?)?;
    let enough = |bits: u64| pairs_at_most(xs, ys, from_ordered_bits(bits)) >= k;
    finite(from_ordered_bits(first(ordered_bits(smallest)..ordered_bits(largest), enough)))
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
