//! Where a line bends: piecewise linear regression with the breaks found exactly.
//!
//! Dynamic programming after Bai & Perron, "Computation and Analysis of Multiple Structural Change Models" (2003).

use crate::error::{StatsError, check, check_pair, out_of_range};

/// Largest number of points: the search is quadratic.
pub const MAX_SEGMENTED: usize = 4096;

/// Options of [`segmented_regression`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentedOptions {
    /// Largest number of breaks.
    pub max_breaks: usize,
    /// Whether exactly `max_breaks` are wanted; otherwise BIC chooses up to that number.
    pub exact: bool,
    /// Fewest points of a segment, at least 2 (2 fit perfectly, so 3 is a sensible least).
    pub min_points: usize,
    /// Whether the weights are inverse variances as they are and not only up to a factor: a break must then gain more than errors of
    /// that size can.
    pub known_errors: bool,
}

impl Default for SegmentedOptions {
    fn default() -> Self {
        Self { max_breaks: 3, exact: false, min_points: 3, known_errors: false }
    }
}

/// One piece of a piecewise line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LinearSegment {
    /// Index of the first point.
    pub start: usize,
    /// Index after the last point.
    pub end: usize,
    /// Slope, unit of `y` per unit of `x`.
    pub slope: f64,
    /// Value of the line at `x = 0`.
    pub intercept: f64,
    /// Weighted sum of squared residuals.
    pub squared_error: f64,
}

/// Fits independent lines to consecutive stretches of points ordered by `x` (ascending, repeats allowed).
///
/// Neighboring lines need not meet: protocol switches and cache edges jump. `weights` are inverse variances up
/// to a factor. The number of breaks minimizes `n ln(error / n) + (3 breaks + 2) ln n`, with known errors
/// `error + (3 breaks + 2) ln n`.
///
/// # Errors
/// Fewer points than the segments need, more than 4096, unequal lengths, non-finite input, `x` not ascending,
/// weights not positive, `min_points` below 2.
pub fn segmented_regression(
    x: &[f64],
    y: &[f64],
    weights: Option<&[f64]>,
    opts: &SegmentedOptions,
) -> Result<Vec<LinearSegment>, StatsError> {
    let n = x.len();
    let min_points = opts.min_points;
    if min_points < 2 {
        return Err(out_of_range("min_points", min_points as f64, "at least 2"));
    }
    let needed =
        if opts.exact { min_points.saturating_mul(opts.max_breaks.saturating_add(1)) } else { min_points };
    check_pair("x and y", n, y.len())?;
    check("x", x, needed)?;
    check("y", y, needed)?;
    if n > MAX_SEGMENTED {
        return Err(StatsError::TooMany { what: "segmented regression", limit: MAX_SEGMENTED, got: n });
    }
    if let Some(w) = x.windows(2).find(|w| w[0] > w[1]) {
        return Err(out_of_range("x", w[1], "ascending order"));
    }
    let weights = checked_weights(weights, n)?;
    let points: Vec<[f64; 3]> = (0..n).map(|i| [x[i], y[i], weights[i]]).collect();
    let breaks = opts.max_breaks.min(n / min_points - 1);
    let tables = search(&points, breaks, min_points);
    let chosen =
        if opts.exact { breaks } else { by_bic(&tables, n, Moments::of(&points).yy, opts.known_errors) };
    let mut segments = Vec::new();
    let mut end = n;
    for level in (0..=chosen).rev() {
        let start = tables[level].previous[end];
        segments.push(segment(&points, start, end));
        end = start;
    }
    segments.reverse();
    if segments.iter().all(|s| s.slope.is_finite() && s.intercept.is_finite() && s.squared_error.is_finite())
    {
        Ok(segments)
    } else {
        Err(StatsError::Overflow { what: "segmented fit" })
    }
}

fn checked_weights(weights: Option<&[f64]>, n: usize) -> Result<Vec<f64>, StatsError> {
    let Some(weights) = weights else { return Ok(vec![1.0; n]) };
    check_pair("weights and points", weights.len(), n)?;
    match weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
        Some(&value) => Err(out_of_range("weight", value, "positive and finite")),
        None => Ok(weights.to_vec()),
    }
}

/// Best error of each prefix for one number of breaks, and where its last segment starts.
struct Level {
    error: Vec<f64>,
    previous: Vec<usize>,
}

fn search(points: &[[f64; 3]], breaks: usize, min_points: usize) -> Vec<Level> {
    let n = points.len();
    let empty = || Level { error: vec![f64::INFINITY; n + 1], previous: vec![0; n + 1] };
    let mut tables: Vec<Level> = (0..=breaks).map(|_| empty()).collect();
    let mut errors = vec![0.0; n];
    for end in min_points..=n {
        // Growing the segment backward one point at a time keeps full precision where prefix sums would lose the
        // small sizes of a sweep over many octaves.
        let mut moments = Moments::default();
        for start in (0..end).rev() {
            moments.add(points[start]);
            errors[start] = moments.squared_error();
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

fn by_bic(tables: &[Level], n: usize, total_squares: f64, known_errors: bool) -> usize {
    let count = n as f64;
    // Below this the error is rounding, and a smaller one means nothing.
    let smallest = total_squares * 1e-24 + f64::MIN_POSITIVE;
    let score = |(breaks, level): (usize, &Level)| {
        let misfit =
            if known_errors { level.error[n] } else { count * (level.error[n].max(smallest) / count).ln() };
        misfit + (3.0 * breaks as f64 + 2.0) * count.ln()
    };
    let scores: Vec<f64> = tables.iter().enumerate().map(score).collect();
    (0..scores.len()).min_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0)
}

/// Weighted means and central moments of a growing set of points (West 1979).
#[derive(Default)]
struct Moments {
    weight: f64,
    mean_x: f64,
    mean_y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Moments {
    fn of(points: &[[f64; 3]]) -> Self {
        let mut moments = Self::default();
        for p in points {
            moments.add(*p);
        }
        moments
    }

    fn add(&mut self, [x, y, w]: [f64; 3]) {
        self.weight += w;
        let share = w / self.weight;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += share * dx;
        self.mean_y += share * dy;
        self.xx += w * dx * (x - self.mean_x);
        self.xy += w * dx * (y - self.mean_y);
        self.yy += w * dy * (y - self.mean_y);
    }

    /// Zero if all points share one `x`, where no slope can be told.
    fn slope(&self) -> f64 {
        if self.xx > 0.0 { self.xy / self.xx } else { 0.0 }
    }

    fn squared_error(&self) -> f64 {
        (self.yy - self.slope() * self.xy).max(0.0)
    }
}

fn segment(points: &[[f64; 3]], start: usize, end: usize) -> LinearSegment {
    let moments = Moments::of(&points[start..end]);
    let slope = moments.slope();
    let intercept = moments.mean_y - slope * moments.mean_x;
    LinearSegment { start, end, slope, intercept, squared_error: moments.squared_error() }
}
