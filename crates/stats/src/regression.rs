//! Linear models: weighted least squares with goodness of fit.
//!
//! Least squares by Householder QR with column scaling (Golub & Van Loan, *Matrix Computations*, 4th ed., 5.2 and
//! 5.3). Q is the chi-square probability of *Numerical Recipes* section 15.1, the figure Howell reports beside
//! each fit: near 1 the model is good (or the errors are overstated), below 0.001 it is not.

use crate::distribution::chi2_sf;
use crate::error::{StatsError, check, check_pair, out_of_range};
use crate::spread::sum;

/// Largest number of columns of a design.
pub const MAX_COLUMNS: usize = 12;

/// What is known about the errors of the observations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Weighting<'a> {
    /// Equal unknown variance; covariance scaled by the residuals.
    Unit,
    /// Relative weights (inverse variances up to a factor); covariance scaled by the residuals.
    Relative(&'a [f64]),
    /// Known standard deviations; covariance absolute, and chi-square comparable with its law.
    Sigma(&'a [f64]),
}

/// A fitted linear model.
#[derive(Debug, Clone, PartialEq)]
pub struct LinearFit {
    /// One coefficient per column.
    pub coefficients: Vec<f64>,
    /// Standard error of each coefficient.
    pub standard_errors: Vec<f64>,
    /// Covariance matrix of the coefficients, row by row.
    pub covariance: Vec<Vec<f64>>,
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Points minus columns.
    pub dof: usize,
    /// `P(chi-square >= chi2)`; only with [`Weighting::Sigma`], otherwise the scale of the errors is unknown.
    pub q: Option<f64>,
    /// Observation minus model, in the unit of `y`.
    pub residuals: Vec<f64>,
}

/// Fits `y = sum_j coefficient_j * columns[j]`. Needs one more point than columns (at most 12).
///
/// # Errors
/// Too few points, unequal lengths, non-finite input, weights that are not positive, dependent columns.
pub fn weighted_least_squares(
    columns: &[&[f64]],
    y: &[f64],
    weighting: Weighting<'_>,
) -> Result<LinearFit, StatsError> {
    let k = columns.len();
    if k == 0 || k > MAX_COLUMNS {
        return Err(out_of_range("columns", k as f64, "1 to 12"));
    }
    check("observations", y, k + 1)?;
    for column in columns {
        check_pair("column and observations", column.len(), y.len())?;
        check("design column", column, 0)?;
    }
    let roots = weight_roots(weighting, y.len())?;
    let weigh = |xs: &[f64]| -> Vec<f64> { xs.iter().zip(&roots).map(|(x, w)| x * w).collect() };
    let design: Vec<Vec<f64>> = columns.iter().map(|c| weigh(c)).collect();
    let (coefficients, unscaled) = solve_qr(design, weigh(y))?;
    let residuals: Vec<f64> = (0..y.len())
        .map(|i| y[i] - coefficients.iter().zip(columns).map(|(b, c)| b * c[i]).sum::<f64>())
        .collect();
    let squares: Vec<f64> = residuals.iter().zip(&roots).map(|(r, w)| (r * w).powi(2)).collect();
    let chi2 = sum(&squares);
    let dof = y.len() - k;
    let known = matches!(weighting, Weighting::Sigma(_));
    let scale = if known { 1.0 } else { chi2 / dof as f64 };
    let covariance: Vec<Vec<f64>> =
        unscaled.iter().map(|row| row.iter().map(|v| v * scale).collect()).collect();
    let standard_errors: Vec<f64> = (0..k).map(|j| covariance[j][j].max(0.0).sqrt()).collect();
    let all = coefficients.iter().chain(&standard_errors).chain([&chi2]);
    if !all.copied().all(f64::is_finite) {
        return Err(StatsError::Overflow { what: "least squares fit" });
    }
    Ok(LinearFit {
        q: if known { chi_square_q(chi2, dof) } else { None },
        coefficients,
        standard_errors,
        covariance,
        chi2,
        dof,
        residuals,
    })
}

/// Straight line `y = intercept + slope * x`; coefficients in that order.
///
/// # Errors
/// As [`weighted_least_squares`].
pub fn line(x: &[f64], y: &[f64], weighting: Weighting<'_>) -> Result<LinearFit, StatsError> {
    weighted_least_squares(&[&vec![1.0; x.len()], x], y, weighting)
}

/// Goodness of fit Q: probability that chi-square with `dof` degrees of freedom is at least `chi2`.
pub fn chi_square_q(chi2: f64, dof: usize) -> Option<f64> {
    if dof == 0 { None } else { chi2_sf(chi2, dof as f64) }
}

/// Square roots of the weights.
fn weight_roots(weighting: Weighting<'_>, n: usize) -> Result<Vec<f64>, StatsError> {
    let (name, given) = match weighting {
        Weighting::Unit => return Ok(vec![1.0; n]),
        Weighting::Relative(w) => ("weight", w),
        Weighting::Sigma(s) => ("sigma", s),
    };
    check_pair("weights and observations", given.len(), n)?;
    let convert = |value: f64| {
        let root = if name == "sigma" { 1.0 / value } else { value.sqrt() };
        if value > 0.0 && value.is_finite() && root.is_finite() {
            Ok(root)
        } else {
            Err(out_of_range(name, value, "positive and finite"))
        }
    };
    given.iter().map(|v| convert(*v)).collect()
}

type Solution = (Vec<f64>, Vec<Vec<f64>>);

/// Solves the least squares problem; returns coefficients and `(X'X)^-1`.
fn solve_qr(mut design: Vec<Vec<f64>>, mut y: Vec<f64>) -> Result<Solution, StatsError> {
    let k = design.len();
    let n = y.len();
    let scales = normalize(&mut design)?;
    let mut diagonal = vec![0.0; k];
    for j in 0..k {
        let norm = design[j][j..].iter().map(|v| v * v).sum::<f64>().sqrt();
        // The columns have unit length, so what is left of one after removing the others measures dependence.
        if norm <= 1e-13 * (n as f64).sqrt() {
            return Err(StatsError::RankDeficient { column: j });
        }
        let alpha = if design[j][j] > 0.0 { -norm } else { norm };
        let mut reflector = design[j][j..].to_vec();
        reflector[0] -= alpha;
        let squared = reflector.iter().map(|v| v * v).sum::<f64>();
        for column in design[j + 1..].iter_mut().chain([&mut y]) {
            let dot: f64 = reflector.iter().zip(&column[j..]).map(|(r, c)| r * c).sum();
            for (c, r) in column[j..].iter_mut().zip(&reflector) {
                *c -= 2.0 * dot / squared * r;
            }
        }
        diagonal[j] = alpha;
    }
    // Upper triangle R: design[column][row] above the diagonal, `diagonal` on it.
    let back_substitute = |rhs: &[f64]| {
        let mut out = vec![0.0; k];
        for i in (0..k).rev() {
            let known: f64 = (i + 1..k).map(|j| design[j][i] * out[j]).sum();
            out[i] = (rhs[i] - known) / diagonal[i];
        }
        out
    };
    let coefficients: Vec<f64> = back_substitute(&y).iter().zip(&scales).map(|(b, s)| b / s).collect();
    let inverse: Vec<Vec<f64>> = (0..k)
        .map(|c| back_substitute(&(0..k).map(|i| f64::from(u8::from(i == c))).collect::<Vec<_>>()))
        .collect();
    let covariance = (0..k)
        .map(|a| {
            (0..k)
                .map(|b| inverse.iter().map(|col| col[a] * col[b]).sum::<f64>() / (scales[a] * scales[b]))
                .collect()
        })
        .collect();
    Ok((coefficients, covariance))
}

/// Scales each column to unit length; returns the lengths.
fn normalize(design: &mut [Vec<f64>]) -> Result<Vec<f64>, StatsError> {
    let mut scales = Vec::with_capacity(design.len());
    for (j, column) in design.iter_mut().enumerate() {
        let largest = column.iter().fold(0.0_f64, |a, v| a.max(v.abs()));
        if largest == 0.0 {
            return Err(StatsError::RankDeficient { column: j });
        }
        let length = largest * column.iter().map(|v| (v / largest).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() {
            return Err(StatsError::Overflow { what: "design column" });
        }
        for v in column.iter_mut() {
            *v /= length;
        }
        scales.push(length);
    }
    Ok(scales)
}
