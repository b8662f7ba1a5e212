//! Where a line bends: piecewise linear regression with the breaks found exactly.
//!
//! Dynamic programming after Bai & Perron, "Computation and Analysis of Multiple Structural Change Models" (2003).

use crate::error::{StatsError, check, check_pair, out_of_range};
use crate::regression::Moments;

/// Largest number of points: the search is quadratic.
const MAX_POINTS: usize = 4096;

/// One curve over the common `x`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Curve<'a> {
    /// Value at each `x`.
    pub y: &'a [f64],
    /// Inverse variance at each `x`; 0 where the curve has no value.
    pub weights: &'a [f64],
}

/// Indices at which new lines begin when consecutive stretches of `x` (ascending, repeats allowed) have lines of their own,
/// one a curve, of at least `min_points` values of `x` each. All curves break together.
///
/// Neighboring lines need not meet. The number of breaks, `max_breaks` at most, minimizes
/// `error + ((2 curves + 1) breaks + 2 curves) ln n`, where n counts all values.
/// Errors: no curve, fewer points than a segment needs, more than 4096, unequal lengths, non-finite input, `x` not ascending,
/// weights below 0, `min_points` below 2.
pub fn breaks(
    x: &[f64],
    curves: &[Curve<'_>],
    max_breaks: usize,
    min_points: usize,
) -> Result<Vec<usize>, StatsError> {
    let n = x.len();
    if min_points < 2 {
        return Err(out_of_range("min_points", min_points as f64, "at least 2"));
    }
    check("x", x, min_points)?;
    if curves.is_empty() {
        return Err(StatsError::TooFew { what: "segmented regression", needed: 1, got: 0 });
    }
    if n > MAX_POINTS {
        return Err(StatsError::TooMany("segmented regression", MAX_POINTS, n));
    }
    if let Some(w) = x.windows(2).find(|w| w[0] > w[1]) {
        return Err(out_of_range("x", w[1], "ascending order"));
    }
    for curve in curves {
        check_pair("x and y", n, curve.y.len())?;
        check_pair("weights and points", n, curve.weights.len())?;
        check("y", curve.y, 0)?;
        if let Some(&w) = curve.weights.iter().find(|w| !(**w >= 0.0 && w.is_finite())) {
            return Err(out_of_range("weight", w, "finite and not negative"));
        }
    }
    let tables = search(x, curves, max_breaks.min(n / min_points - 1), min_points);
    let values = curves.iter().flat_map(|c| c.weights).filter(|w| **w > 0.0).count().max(1) as f64;
    let lines = 2.0 * curves.len() as f64;
    let score =
        |breaks: usize| tables[breaks].error[n] + ((lines + 1.0) * breaks as f64 + lines) * values.ln();
    let chosen = (0..tables.len()).min_by(|a, b| score(*a).total_cmp(&score(*b))).unwrap_or(0);
    if !tables[chosen].error[n].is_finite() {
        return Err(StatsError::Overflow("segmented fit"));
    }
    let mut starts = Vec::new();
    let mut end = n;
    for level in (1..=chosen).rev() {
        end = tables[level].previous[end];
        starts.push(end);
    }
    starts.reverse();
    Ok(starts)
}

/// Best error of each prefix for one number of breaks, and where its last segment starts.
struct Level {
    error: Vec<f64>,
    previous: Vec<usize>,
}

fn search(x: &[f64], curves: &[Curve<'_>], breaks: usize, min_points: usize) -> Vec<Level> {
    let n = x.len();
    let empty = || Level { error: vec![f64::INFINITY; n + 1], previous: vec![0; n + 1] };
    let mut tables: Vec<Level> = (0..=breaks).map(|_| empty()).collect();
    let mut errors = vec![0.0; n];
    for end in min_points..=n {
        // Prefix sums would lose the small sizes of a sweep over many octaves.
        errors.fill(0.0);
        for curve in curves {
            let mut moments = Moments::default();
            for start in (0..end).rev() {
                if curve.weights[start] > 0.0 {
                    moments.add([x[start], curve.y[start], curve.weights[start]]);
                }
                errors[start] += moments.squared_error();
            }
        }
        tables[0].error[end] = errors[0];
        for level in 1..=breaks {
            let (lower, upper) = tables.split_at_mut(level);
            let below = &lower[level - 1].error;
            let first = level * min_points;
            let Some(last) = end.checked_sub(min_points).filter(|last| *last >= first) else { break };
            let totals = below[first..=last].iter().zip(&errors[first..=last]).map(|(a, b)| a + b);
            let best = totals.enumerate().min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((offset, total)) = best {
                upper[0].error[end] = total;
                upper[0].previous[end] = first + offset;
            }
        }
    }
    tables
}
