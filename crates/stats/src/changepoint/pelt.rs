//! Changes of the mean by penalized least squares.

use crate::error::{StatsError, check};
use crate::quantile::select_median;
use crate::spread::{MAD_SCALE, stddev};

/// Longer series are averaged into at most this many cells before the search, then refined sample by sample:
/// without changes the search is quadratic.
const MAX_CELLS: usize = 4096;

/// Options of [`pelt_mean`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PeltOptions {
    /// Cost of one more segment in units of the variance; `None` for `3 ln n`, the modified BIC of Zhang &
    /// Siegmund (2007).
    pub penalty: Option<f64>,
    /// Shortest segment in samples, at least 1.
    pub min_len: usize,
    /// Standard deviation within segments; `None` estimates it by [`robust_sigma`].
    pub sigma: Option<f64>,
}

impl Default for PeltOptions {
    fn default() -> Self {
        Self { penalty: None, min_len: 5, sigma: None }
    }
}

/// Starts of the segments of constant mean; the first is 0.
///
/// Assumes independent errors within segments: correlation in time makes it find too many. Series of more than
/// 4096 samples are searched on averages, so segments shorter than `n / 2048` samples can be missed there.
///
/// # Errors
/// Fewer than 2 samples, non-finite samples, a penalty or sigma that is not positive, `min_len` of 0.
pub fn pelt_mean(xs: &[f64], opts: &PeltOptions) -> Result<Vec<usize>, StatsError> {
    check("series", xs, 2)?;
    for (name, value) in [("penalty", opts.penalty), ("sigma", opts.sigma)] {
        if let Some(value) = value.filter(|v| !(*v > 0.0 && v.is_finite())) {
            return Err(StatsError::Parameter { name, value, allowed: "positive and finite" });
        }
    }
    if opts.min_len == 0 {
        return Err(StatsError::Parameter { name: "min_len", value: 0.0, allowed: "at least 1 sample" });
    }
    let cell = xs.len().div_ceil(MAX_CELLS);
    let means: Vec<f64> = xs.chunks(cell).map(|c| c.iter().sum::<f64>() / c.len() as f64).collect();
    let sigma = match opts.sigma {
        Some(sigma) => sigma / (cell as f64).sqrt(),
        None => match robust_sigma(&means) {
            // Below the rounding of the largest value nothing is noise.
            Some(sigma) if sigma > 0.0 => {
                sigma.max(means.iter().fold(0.0, |a: f64, m| a.max(m.abs())) * f64::EPSILON)
            }
            _ => return Ok(vec![0]),
        },
    };
    let penalty = opts.penalty.unwrap_or(3.0 * (means.len() as f64).ln()).max(f64::MIN_POSITIVE);
    let scaled: Vec<f64> = means.iter().map(|m| m / sigma).collect();
    if !scaled.iter().all(|v| v.is_finite()) {
        return Err(StatsError::Overflow { what: "series in units of sigma" });
    }
    let coarse = search(&scaled, penalty, opts.min_len.div_ceil(cell));
    let mut starts: Vec<usize> = coarse.iter().map(|s| s * cell).collect();
    if cell > 1 {
        refine(xs, &mut starts, cell, opts.min_len, penalty * sigma * sigma * cell as f64);
    }
    Ok(starts)
}

/// Standard deviation of the noise from first differences, which steps hardly touch: MAD of the differences over
/// `sqrt 2`, or their standard deviation if more than half of them are equal. `None` for fewer than 2 values.
pub fn robust_sigma(xs: &[f64]) -> Option<f64> {
    check("series", xs, 2).ok()?;
    let differences: Vec<f64> = xs.windows(2).map(|w| w[1] - w[0]).collect();
    let mut magnitudes: Vec<f64> = differences.iter().map(|d| d.abs()).collect();
    let by_median = select_median(&mut magnitudes) * MAD_SCALE / std::f64::consts::SQRT_2;
    let sigma = if by_median > 0.0 {
        by_median
    } else {
        stddev(&differences).unwrap_or(0.0) / std::f64::consts::SQRT_2
    };
    sigma.is_finite().then_some(sigma)
}

/// Sums that answer the squared error of any stretch around its mean.
struct Sums {
    first: Vec<f64>,
    second: Vec<f64>,
}

impl Sums {
    fn new(xs: &[f64]) -> Self {
        let center = xs.iter().sum::<f64>() / xs.len().max(1) as f64;
        let (mut a, mut b) = (0.0, 0.0);
        let (mut first, mut second) = (vec![0.0], vec![0.0]);
        for x in xs {
            a += x - center;
            b += (x - center) * (x - center);
            first.push(a);
            second.push(b);
        }
        Self { first, second }
    }

    fn cost(&self, from: usize, to: usize) -> f64 {
        let sum = self.first[to] - self.first[from];
        (self.second[to] - self.second[from] - sum * sum / (to - from) as f64).max(0.0)
    }
}

/// A possible last change, with the time at which it may be forgotten.
struct Candidate {
    start: usize,
    beaten_at: Option<usize>,
}

fn search(xs: &[f64], penalty: f64, min_len: usize) -> Vec<usize> {
    let n = xs.len();
    let sums = Sums::new(xs);
    let mut best = vec![f64::INFINITY; n + 1];
    let mut previous = vec![0_usize; n + 1];
    best[0] = -penalty;
    let mut candidates: Vec<Candidate> = Vec::new();
    for end in min_len..=n {
        candidates.push(Candidate { start: end - min_len, beaten_at: None });
        for candidate in &candidates {
            let total = best[candidate.start] + sums.cost(candidate.start, end) + penalty;
            if total < best[end] {
                best[end] = total;
                previous[end] = candidate.start;
            }
        }
        // A start that already costs more than a change right here can win only until a segment from here is
        // long enough, so it is dropped min_len samples later.
        for candidate in &mut candidates {
            let without = best[candidate.start] + sums.cost(candidate.start, end);
            if candidate.beaten_at.is_none() && without > best[end] {
                candidate.beaten_at = Some(end);
            }
        }
        candidates.retain(|c| c.beaten_at.is_none_or(|at| end < at + min_len) && best[c.start].is_finite());
    }
    let mut starts = Vec::new();
    let mut end = n;
    while end > 0 {
        end = previous[end];
        starts.push(end);
    }
    starts.reverse();
    if starts.is_empty() { vec![0] } else { starts }
}

/// Moves each boundary to the best sample within one cell of it, and drops those that do not pay: a cell that
/// straddles a step looks like a short segment of its own.
fn refine(xs: &[f64], starts: &mut Vec<usize>, cell: usize, min_len: usize, penalty: f64) {
    let sums = Sums::new(xs);
    let neighbors =
        |starts: &[usize], i: usize| (starts[i - 1], starts.get(i + 1).copied().unwrap_or(xs.len()));
    let split = |left: usize, at: usize, right: usize| sums.cost(left, at) + sums.cost(at, right);
    loop {
        for i in 1..starts.len() {
            let (left, right) = neighbors(starts, i);
            let from = starts[i].saturating_sub(cell).max(left + min_len);
            let to = (starts[i] + cell).min(right.saturating_sub(min_len));
            let best = (from..=to).min_by(|a, b| split(left, *a, right).total_cmp(&split(left, *b, right)));
            starts[i] = best.unwrap_or(starts[i]);
        }
        let gain = |i: usize| {
            let (left, right) = neighbors(starts, i);
            sums.cost(left, right) - split(left, starts[i], right)
        };
        let weakest = (1..starts.len()).map(|i| (gain(i), i)).min_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((gain, i)) if gain < penalty => starts.remove(i),
            _ => break,
        };
    }
}
