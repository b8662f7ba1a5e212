//! How far the location of one run can lie from the level of the machine, judged from the run alone.
//!
//! Twenty blocks rarely tell how slowly a machine drifts, so no single model of the drift is chosen. Each candidate says that
//! the blocks are the sum of white noise and a first-order autoregression: correlation `(1 - white) * phi^lag`. Under a flat
//! prior on level and log scale (Zellner 1971, section 3) each candidate gives the run's location a t distribution, and the
//! likelihood of the blocks weighs the candidates. The variance includes the extrapolation from the run to the process: for
//! `phi = 0.9` twenty blocks are worth less than two independent ones.

use std::collections::BTreeMap;

/// Correlation of neighboring blocks of the slow part.
const PHI: [f64; 5] = [0.3, 0.6, 0.8, 0.9, 0.95];
/// Share of white noise in the variance of the blocks.
const WHITE: [f64; 3] = [0.0, 0.5, 0.75];
/// Number of candidates: independent blocks, and every pair of the above.
pub(crate) const CANDIDATES: usize = 1 + PHI.len() * WHITE.len();
/// Prior probability of independent blocks in the estimate that is printed.
const PRIOR_INDEPENDENT: f64 = 0.5;
/// The same in the law that guards verdicts.
const GUARD_PRIOR_INDEPENDENT: f64 = 0.3;
/// Share of the guarding law that the blocks of the runs cannot take from the drifting candidates.
const GUARD_FLOOR: f64 = 0.05;
/// Slowest candidate that takes part in the printed estimate.
const PRINTED_PHI: f64 = 0.9;

/// What one run says under each candidate.
#[derive(Debug, Clone)]
pub(crate) struct Fit {
    /// Logarithm of the marginal likelihood, up to a constant shared by the candidates.
    pub(crate) log_likelihood: [f64; CANDIDATES],
    /// Squared standard error of the run's location.
    pub(crate) variance: [f64; CANDIDATES],
    pub(crate) dof: f64,
}

impl Fit {
    /// A run without blocks whose location has this squared standard error: it says nothing about the candidates.
    pub(crate) fn flat(variance: f64, dof: f64) -> Self {
        Self { log_likelihood: [0.0; CANDIDATES], variance: [variance; CANDIDATES], dof }
    }
}

/// The candidates for one series length, factored once.
struct Candidate {
    /// Lower triangle of the Cholesky factor of the correlation matrix, row by row.
    factor: Vec<Vec<f64>>,
    /// The factor's solution for a vector of ones.
    whitened_ones: Vec<f64>,
    log_det: f64,
    /// Sum of all elements of the inverse of the correlation matrix.
    precision_sum: f64,
    /// Variance of the mean of the series when each element has variance 1.
    mean_variance: f64,
}

/// Fits series of any length; factors are kept for the next series of the same length.
#[derive(Default)]
pub(crate) struct DriftModels {
    by_length: BTreeMap<usize, Vec<Candidate>>,
}

impl DriftModels {
    /// The fit of a time-ordered series of at least two values. `resolution` is a standard deviation below which the values
    /// do not tell anything; it keeps a constant series from being infinitely certain.
    pub(crate) fn fit(&mut self, series: &[f64], resolution: f64) -> Fit {
        let n = series.len();
        let candidates = self.by_length.entry(n).or_insert_with(|| candidates(n));
        let dof = (n - 1) as f64;
        let mut fit = Fit { log_likelihood: [0.0; CANDIDATES], variance: [0.0; CANDIDATES], dof };
        let mut unresolved = false;
        for (k, c) in candidates.iter().enumerate() {
            let whitened = solve_lower(&c.factor, series);
            let level = dot(&whitened, &c.whitened_ones) / c.precision_sum;
            let squares: f64 =
                whitened.iter().zip(&c.whitened_ones).map(|(y, o)| (y - level * o).powi(2)).sum();
            let floor = (dof * resolution * resolution).max(f64::MIN_POSITIVE);
            unresolved |= squares <= floor;
            let squares = squares.max(floor);
            fit.log_likelihood[k] = -0.5 * (c.log_det + c.precision_sum.ln() + dof * squares.ln());
            fit.variance[k] = squares / dof * c.mean_variance;
        }
        // Taken literally, a series that never moves is the slowest drift of all; it only says that nothing was resolved.
        if unresolved {
            fit.log_likelihood = [0.0; CANDIDATES];
        }
        fit
    }
}

/// Weights of the candidates given all `fits` and the likelihood of what is known `between` runs: for the printed estimate,
/// and for the law that guards verdicts.
pub(crate) fn weights(fits: &[&Fit], between: &[f64; CANDIDATES]) -> ([f64; CANDIDATES], [f64; CANDIDATES]) {
    let mut log_likelihood = *between;
    for fit in fits {
        for (sum, l) in log_likelihood.iter_mut().zip(&fit.log_likelihood) {
            *sum += l;
        }
    }
    let guard_prior = prior(GUARD_PRIOR_INDEPENDENT, 1.0);
    let printed = posterior(&prior(PRIOR_INDEPENDENT, PRINTED_PHI), &log_likelihood);
    let mut guard = posterior(&guard_prior, &log_likelihood);
    for (w, p) in guard.iter_mut().zip(&posterior(&guard_prior, between)) {
        *w = (1.0 - GUARD_FLOOR) * *w + GUARD_FLOOR * p;
    }
    (printed, guard)
}

fn prior(independent: f64, max_phi: f64) -> [f64; CANDIDATES] {
    let admitted = PHI.iter().filter(|p| **p <= max_phi).count() * WHITE.len();
    let mut out = [0.0; CANDIDATES];
    out[0] = independent;
    // Candidates are in order of phi, so that the admitted ones come first.
    for w in out.iter_mut().skip(1).take(admitted) {
        *w = (1.0 - independent) / admitted as f64;
    }
    out
}

fn posterior(prior: &[f64; CANDIDATES], log_likelihood: &[f64; CANDIDATES]) -> [f64; CANDIDATES] {
    let top = log_likelihood.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut out = [0.0; CANDIDATES];
    for k in 0..CANDIDATES {
        out[k] = prior[k] * (log_likelihood[k] - top).exp();
    }
    let sum: f64 = out.iter().sum();
    if sum <= 0.0 {
        return *prior;
    }
    out.map(|w| w / sum)
}

fn candidates(n: usize) -> Vec<Candidate> {
    let mut out = vec![candidate(n, 0.0, 0.0)];
    for phi in PHI {
        out.extend(WHITE.iter().map(|white| candidate(n, phi, *white)));
    }
    out
}

fn candidate(n: usize, phi: f64, white: f64) -> Candidate {
    let correlation = |i: usize, j: usize| {
        let slow = (1.0 - white) * phi.powi(i.abs_diff(j) as i32);
        if i == j { slow + white } else { slow }
    };
    let factor = cholesky(n, &correlation);
    let ones = solve_lower(&factor, &vec![1.0; n]);
    let total: f64 = (0..n).map(|i| (0..n).map(|j| correlation(i, j)).sum::<f64>()).sum();
    Candidate {
        log_det: 2.0 * factor.iter().enumerate().map(|(i, row)| row[i].ln()).sum::<f64>(),
        precision_sum: dot(&ones, &ones),
        mean_variance: total / (n * n) as f64,
        whitened_ones: ones,
        factor,
    }
}

/// Cholesky factor of a positive definite matrix given by its elements.
fn cholesky(n: usize, element: &dyn Fn(usize, usize) -> f64) -> Vec<Vec<f64>> {
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(n);
    for i in 0..n {
        let mut row = vec![0.0; i + 1];
        for j in 0..i {
            row[j] = (element(i, j) - dot(&row[..j], &rows[j][..j])) / rows[j][j];
        }
        row[i] = (element(i, i) - dot(&row[..i], &row[..i])).sqrt();
        rows.push(row);
    }
    rows
}

/// Solves `factor * x = y` for a lower triangular factor.
fn solve_lower(factor: &[Vec<f64>], y: &[f64]) -> Vec<f64> {
    let mut x: Vec<f64> = Vec::with_capacity(y.len());
    for (row, v) in factor.iter().zip(y) {
        let i = x.len();
        x.push((v - dot(&row[..i], &x)) / row[i]);
    }
    x
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variance_of_the_mean_matches_the_closed_form_of_ar1() {
        let (n, phi) = (20_usize, 0.9_f64);
        let sum: f64 = (1..n).map(|k| (1.0 - k as f64 / n as f64) * phi.powi(k as i32)).sum();
        let exact = (1.0 + 2.0 * sum) / n as f64;
        assert!((candidate(n, phi, 0.0).mean_variance - exact).abs() < 1e-12);
        assert!((candidate(n, 0.0, 0.0).mean_variance - 0.05).abs() < 1e-12);
    }

    #[test]
    fn the_factor_reproduces_the_matrix() {
        let c = candidate(4, 0.6, 0.5);
        let rebuilt = dot(&c.factor[2], &c.factor[3][..3]);
        assert!((rebuilt - 0.3).abs() < 1e-12, "{rebuilt}");
        // Determinant of the 2 x 2 case by hand: 1 - 0.3^2.
        assert!((candidate(2, 0.6, 0.5).log_det - (1.0_f64 - 0.09).ln()).abs() < 1e-12);
    }

    #[test]
    fn a_ramp_is_taken_for_drift_and_an_alternation_is_not() {
        let mut models = DriftModels::default();
        let ramp: Vec<f64> = (0..20).map(f64::from).collect();
        let alternation: Vec<f64> = (0..20).map(|i| f64::from(i % 2)).collect();
        let of = |fit: &Fit| weights(&[fit], &[0.0; CANDIDATES]).0[0];
        assert!(of(&models.fit(&ramp, 1e-9)) < 1e-3);
        assert!(of(&models.fit(&alternation, 1e-9)) > 0.5);
    }

    #[test]
    fn a_constant_series_is_certain_only_down_to_its_resolution() {
        let fit = DriftModels::default().fit(&[1.0; 20], 0.001);
        assert!(fit.variance.iter().all(|v| v.is_finite() && *v > 0.0));
        assert!((fit.variance[0] - 0.001_f64.powi(2) / 20.0).abs() < 1e-12);
    }
}
