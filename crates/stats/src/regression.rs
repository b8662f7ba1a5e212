//! Linear models: weighted least squares with goodness of fit, and the Theil-Sen slope.
//!
//! Least squares by Householder QR with column scaling (Golub & Van Loan, *Matrix Computations*, 4th ed., 5.2 and
//! 5.3). Q is the chi-square probability of *Numerical Recipes* section 15.1, the figure Howell reports beside
//! each fit: near 1 the model is good (or the errors are overstated), below 0.001 it is not. Theil (1950), Sen
//! (JASA 1968) for the median of pairwise slopes and its interval.

use crate::distribution::{chi2_sf, normal_quantile};
use crate::error::{StatsError, check, check_pair};
use crate::interval::{Interval, valid_level};
use crate::quantile::{quantile, select_median, sorted};
use crate::spread::sum;

/// Largest number of columns of a design.
pub const MAX_COLUMNS: usize = 12;
/// Largest number of points of [`theil_sen`], which holds every pairwise slope.
pub const MAX_THEIL_SEN: usize = 4096;

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
    /// Coefficient of determination, about the mean if a constant column is present; `None` if `y` is constant.
    pub r2: Option<f64>,
    /// The same, adjusted for the number of columns.
    pub r2_adj: Option<f64>,
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
        return Err(StatsError::Parameter { name: "columns", value: k as f64, allowed: "1 to 12" });
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
    let has_constant = columns.iter().any(|c| c[0] != 0.0 && c.iter().all(|v| *v == c[0]));
    let r2 = determination(y, &roots, chi2, has_constant);
    let free = (y.len() - usize::from(has_constant)) as f64;
    Ok(LinearFit {
        r2_adj: r2.map(|r2| 1.0 - (1.0 - r2) * free / dof as f64),
        r2,
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
            Err(StatsError::Parameter { name, value, allowed: "positive and finite" })
        }
    };
    given.iter().map(|v| convert(*v)).collect()
}

fn determination(y: &[f64], roots: &[f64], chi2: f64, centered: bool) -> Option<f64> {
    let weights: Vec<f64> = roots.iter().map(|w| w * w).collect();
    let center = if centered {
        sum(&y.iter().zip(&weights).map(|(y, w)| y * w).collect::<Vec<_>>()) / sum(&weights)
    } else {
        0.0
    };
    let total = sum(&y.iter().zip(&weights).map(|(y, w)| w * (y - center).powi(2)).collect::<Vec<_>>());
    let r2 = 1.0 - chi2 / total;
    (total > 0.0 && r2.is_finite()).then_some(r2)
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

/// A robust line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TheilSen {
    /// Median of the pairwise slopes, unit of `y` per unit of `x`.
    pub slope: f64,
    /// Median of `y` minus slope times median of `x`.
    pub intercept: f64,
    /// Distribution-free interval of the slope; `None` if there are too few points for the level.
    pub interval: Option<Interval>,
}

/// Theil-Sen line through at least 3 and at most 4096 points; breaks down only if 29 % of them are wrong.
///
/// # Errors
/// Unequal lengths, non-finite input, too few or too many points, level out of range, all `x` equal.
pub fn theil_sen(x: &[f64], y: &[f64], level: f64) -> Result<TheilSen, StatsError> {
    check_pair("x and y", x.len(), y.len())?;
    check("x", x, 3)?;
    check("y", y, 3)?;
    if x.len() > MAX_THEIL_SEN {
        return Err(StatsError::TooMany { what: "Theil-Sen line", limit: MAX_THEIL_SEN, got: x.len() });
    }
    if !valid_level(level) {
        return Err(StatsError::Parameter { name: "level", value: level, allowed: "between 0 and 1" });
    }
    let mut slopes = Vec::with_capacity(x.len() * (x.len() - 1) / 2);
    for i in 0..x.len() {
        for j in i + 1..x.len() {
            let slope = (y[j] - y[i]) / (x[j] - x[i]);
            if x[j] != x[i] && slope.is_finite() {
                slopes.push(slope);
            }
        }
    }
    if slopes.is_empty() {
        return Err(StatsError::RankDeficient { column: 1 });
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = quantile(&slopes, 0.5).ok_or(StatsError::Overflow { what: "slope" })?;
    let intercept = select_median(&mut y.to_vec()) - slope * select_median(&mut x.to_vec());
    if !intercept.is_finite() {
        return Err(StatsError::Overflow { what: "intercept" });
    }
    Ok(TheilSen { slope, intercept, interval: slope_interval(&slopes, x, y, level) })
}

fn slope_interval(slopes: &[f64], x: &[f64], y: &[f64], level: f64) -> Option<Interval> {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let ties = |values: &[f64]| -> Option<f64> {
        Some(sorted(values).ok()?.chunk_by(|a, b| a == b).map(|run| spread(run.len() as f64)).sum())
    };
    let variance = (spread(x.len() as f64) - ties(x)? - ties(y)?) / 18.0;
    let half = normal_quantile(0.5 + level / 2.0)? * variance.max(0.0).sqrt();
    let count = slopes.len() as f64;
    let low = ((count - half) / 2.0).round() - 1.0;
    let high = f64::midpoint(count, half).round();
    if low < 0.0 || high >= count {
        return None;
    }
    Interval::new(level, slopes[low as usize], slopes[high as usize])
}
