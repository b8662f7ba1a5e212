//! Straight lines and sums of given columns by weighted least squares.

use crate::distribution::gamma_q;
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

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Line {
    /// Intercept and slope.
    pub coefficients: [f64; 2],
    pub standard_errors: [f64; 2],
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Points minus 2.
    pub dof: usize,
}

/// Fits `y = intercept + slope * x`. Needs three points.
/// Errors: too few points, unequal lengths, non-finite input, weights that are not positive, the same `x` everywhere.
pub fn line(x: &[f64], y: &[f64], weighting: Weighting<'_>) -> Result<Line, StatsError> {
    check("observations", y, 3)?;
    check_pair("x and observations", x.len(), y.len())?;
    check("x", x, 0)?;
    let weights = match weighting {
        Weighting::Relative(weights) => weights.to_vec(),
        // The sign is kept for the check.
        Weighting::Sigma(sigma) => sigma.iter().map(|s| 1.0 / (s * s.abs())).collect(),
    };
    check_pair("weights and points", weights.len(), x.len())?;
    if let Some(&w) = weights.iter().find(|w| !(**w > 0.0 && w.is_finite())) {
        return Err(out_of_range("weight", w, "positive and finite"));
    }
    let mut moments = Moments::default();
    (0..x.len()).for_each(|i| moments.add([x[i], y[i], weights[i]]));
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

#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// One coefficient a column.
    pub coefficients: Vec<f64>,
    /// Covariance of the coefficients, absolute, row by row.
    pub covariance: Vec<Vec<f64>>,
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Points minus columns.
    pub dof: usize,
}

/// Fits `y = sum of coefficient * column` to observations of known standard deviations `sigma`.
///
/// Columns of unit length by modified Gram-Schmidt, `y` with them as the last: as stable as reflections (Björck, BIT 7, 1967).
/// Errors: no column, more columns than points, unequal lengths, non-finite input, `sigma` not positive, dependent columns.
pub fn weighted_least_squares(columns: &[&[f64]], y: &[f64], sigma: &[f64]) -> Result<Fit, StatsError> {
    let k = columns.len();
    check("observations", y, k.max(1))?;
    if k == 0 {
        return Err(StatsError::TooFew { what: "least squares fit", needed: 1, got: 0 });
    }
    check_pair("sigma and observations", sigma.len(), y.len())?;
    if let Some(&s) = sigma.iter().find(|s| !(**s > 0.0 && s.is_finite())) {
        return Err(out_of_range("sigma", s, "positive and finite"));
    }
    let weigh = |v: &[f64]| -> Vec<f64> { v.iter().zip(sigma).map(|(v, s)| v / s).collect() };
    let dot = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let mut rest: Vec<Vec<f64>> = Vec::with_capacity(k);
    let mut lengths = Vec::with_capacity(k);
    for column in columns {
        check_pair("column and observations", column.len(), y.len())?;
        check("column", column, 0)?;
        let column = weigh(column);
        let length = dot(&column, &column).sqrt();
        lengths.push(length);
        rest.push(column.iter().map(|v| v / length).collect());
    }
    let mut left = weigh(y);
    // Upper triangle, and the components of `y` along the columns.
    let (mut upper, mut along) = (vec![vec![0.0; k]; k], vec![0.0; k]);
    for j in 0..k {
        let (done, open) = rest.split_at_mut(j + 1);
        let column = &mut done[j];
        let norm = dot(column, column).sqrt();
        // Columns had unit length: what the others leave of one measures its dependence. NaN stands for a column of zeros.
        if norm.is_nan() || norm <= 1e-13 * (y.len() as f64).sqrt() {
            return Err(out_of_range("column", j as f64, "columns that do not depend on those before"));
        }
        for v in column.iter_mut() {
            *v /= norm;
        }
        upper[j][j] = norm;
        let remove = |from: &mut [f64]| {
            let part = dot(column, from);
            from.iter_mut().zip(&*column).for_each(|(f, c)| *f -= part * c);
            part
        };
        for (i, other) in open.iter_mut().enumerate() {
            upper[j][j + 1 + i] = remove(other);
        }
        along[j] = remove(&mut left);
    }
    let solve = |target: &[f64]| -> Vec<f64> {
        let mut out = vec![0.0; k];
        for i in (0..k).rev() {
            let known: f64 = (i + 1..k).map(|j| upper[i][j] * out[j]).sum();
            out[i] = (target[i] - known) / upper[i][i];
        }
        out.iter().zip(&lengths).map(|(b, l)| b / l).collect()
    };
    let coefficients = solve(&along);
    let unit = |j: usize| (0..k).map(|i| f64::from(u8::from(i == j))).collect::<Vec<f64>>();
    let inverse: Vec<Vec<f64>> = (0..k).map(|j| solve(&unit(j))).collect();
    let entry = |a: usize, b: usize| inverse.iter().map(|column| column[a] * column[b]).sum();
    let covariance: Vec<Vec<f64>> = (0..k).map(|a| (0..k).map(|b| entry(a, b)).collect()).collect();
    let chi2 = dot(&left, &left);
    if !coefficients.iter().chain(covariance.iter().flatten()).chain([&chi2]).all(|v| v.is_finite()) {
        return Err(StatsError::Overflow("least squares fit"));
    }
    Ok(Fit { coefficients, covariance, chi2, dof: y.len() - k })
}

/// Goodness of fit Q: probability of a chi-square of at least `chi2` with `dof` degrees of freedom. `None` without any.
pub fn chi_square_q(chi2: f64, dof: usize) -> Option<f64> {
    gamma_q(dof as f64 / 2.0, chi2 / 2.0)
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
