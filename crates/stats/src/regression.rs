//! Straight lines by weighted least squares.

use crate::error::{StatsError, check, check_pair, out_of_range};
use crate::spread::sum;

/// What is known about the errors of the observations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weighting<'a> {
    /// Relative weights (inverse variances up to a factor); standard errors are scaled by the residuals.
    Relative(&'a [f64]),
    /// Known standard deviations; standard errors are absolute.
    Sigma(&'a [f64]),
}

/// A fitted line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Intercept and slope.
    pub coefficients: [f64; 2],
    /// Standard error of each.
    pub standard_errors: [f64; 2],
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Points minus 2.
    pub dof: usize,
}

/// Fits `y = intercept + slope * x`. Needs three points.
///
/// # Errors
/// Too few points, unequal lengths, non-finite input, weights that are not positive, the same `x` everywhere.
pub fn line(x: &[f64], y: &[f64], weighting: Weighting<'_>) -> Result<Line, StatsError> {
    check("observations", y, 3)?;
    check_pair("x and observations", x.len(), y.len())?;
    check("x", x, 0)?;
    let weights = match weighting {
        Weighting::Relative(weights) => weights.to_vec(),
        // The sign is kept for the check.
        Weighting::Sigma(sigma) => sigma.iter().map(|s| 1.0 / (s * s.abs())).collect(),
    };
    let moments = Moments::of(&points(x, y, &weights)?);
    let (center, scatter) = (moments.mean_x, moments.xx / moments.weight);
    // What is left of `x` without its mean is rounding.
    if scatter.sqrt() <= 1e-13 * (y.len() as f64 * (scatter + center * center)).sqrt() {
        return Err(out_of_range("x", center, "at least two different values"));
    }
    let coefficients @ [intercept, slope] = moments.line();
    let squares: Vec<f64> =
        (0..y.len()).map(|i| weights[i] * (y[i] - intercept - slope * x[i]).powi(2)).collect();
    let (chi2, dof) = (sum(&squares), y.len() - 2);
    let scale = if matches!(weighting, Weighting::Sigma(_)) { 1.0 } else { chi2 / dof as f64 };
    let variances = [1.0 / moments.weight + center * center / moments.xx, 1.0 / moments.xx];
    let standard_errors = variances.map(|v| (v * scale).sqrt());
    if !coefficients.iter().chain(&standard_errors).chain([&chi2]).all(|v| v.is_finite()) {
        return Err(StatsError::Overflow("least squares fit"));
    }
    Ok(Line { coefficients, standard_errors, chi2, dof })
}

/// Points with their weights, which must be positive.
pub(crate) fn points(x: &[f64], y: &[f64], weights: &[f64]) -> Result<Vec<[f64; 3]>, StatsError> {
    check_pair("weights and points", weights.len(), x.len())?;
    match weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
        Some(&value) => Err(out_of_range("weight", value, "positive and finite")),
        None => Ok((0..x.len()).map(|i| [x[i], y[i], weights[i]]).collect()),
    }
}

/// Weighted means and central moments of a growing set of points (West 1979).
#[derive(Default)]
pub(crate) struct Moments {
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

    pub(crate) fn add(&mut self, [x, y, w]: [f64; 3]) {
        self.weight += w;
        let share = w / self.weight;
        let (dx, dy) = (x - self.mean_x, y - self.mean_y);
        self.mean_x += share * dx;
        self.mean_y += share * dy;
        self.xx += w * dx * (x - self.mean_x);
        self.xy += w * dx * (y - self.mean_y);
        self.yy += w * dy * (y - self.mean_y);
    }

    /// Intercept and slope; level if all points share one `x`, where no slope can be told.
    fn line(&self) -> [f64; 2] {
        let slope = if self.xx > 0.0 { self.xy / self.xx } else { 0.0 };
        [self.mean_y - slope * self.mean_x, slope]
    }

    pub(crate) fn squared_error(&self) -> f64 {
        let [_, slope] = self.line();
        (self.yy - slope * self.xy).max(0.0)
    }
}
