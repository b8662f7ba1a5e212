//! Which terms: all subsets of the dictionary by weighted least squares, the fewest terms among those that fit alike.

use std::collections::BTreeSet;

use machmeter_stats::Interval;
use machmeter_stats::distribution::{deviations, t_quantile};
use machmeter_stats::regression::{Fit, chi_square_q, weighted_least_squares};

use super::terms::LEAST_P;
use super::{Cell, Coefficient, LEVEL, Prediction, Term};

/// Terms of a law at most: no law of the seed has more.
const MAX_TERMS: u32 = 3;
/// Laws whose `AICc` differs by less are told apart by their terms alone: odds of e^3 = 20 to 1 (Burnham and Anderson 2002, 2.6).
pub(super) const MARGIN: f64 = 6.0;
/// Q below which even the best law says that the errors are understated.
const CONTRADICTED: f64 = 0.05;

/// A sum of terms with its fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// 1 to 3, in the order of [`Term::ALL`], all coefficients positive.
    pub terms: Vec<Coefficient>,
    /// Weighted sum of squared residuals.
    pub chi2: f64,
    /// Cells minus terms.
    pub dof: usize,
    pub(super) covariance: Vec<Vec<f64>>,
    /// Standard errors of half an interval.
    pub(super) reach: f64,
    /// Half an interval for what launches share, relative.
    shared_reach: f64,
}

impl Form {
    pub fn at(&self, p: u32, d: u64) -> f64 {
        self.terms.iter().map(|c| c.value * c.term.at(p, d)).sum()
    }

    /// Value at `p` and `d` with the interval of this law alone.
    pub(super) fn predict(&self, p: u32, d: u64) -> Option<Prediction> {
        let x: Vec<f64> = self.terms.iter().map(|c| c.term.at(p, d)).collect();
        let rows = self.covariance.iter().zip(&x);
        let variance: f64 =
            rows.map(|(row, xi)| xi * row.iter().zip(&x).map(|(c, xj)| c * xj).sum::<f64>()).sum();
        let value = self.at(p, d);
        Some(Prediction { value, interval: self.interval(value, variance)? })
    }

    pub(super) fn interval(&self, value: f64, variance: f64) -> Option<Interval> {
        let half = (self.reach * variance.max(0.0).sqrt()).hypot(self.shared_reach * value);
        Interval::new(LEVEL, (value - half).max(0.0), value + half)
    }
}

/// A subset with positive coefficients.
struct Candidate {
    terms: Vec<Term>,
    fit: Fit,
}

impl Candidate {
    /// `AICc` of the chi-square over `dispersion`. Needs two cells more than terms.
    fn aicc(&self, dispersion: f64) -> f64 {
        let (k, dof) = (self.terms.len() as f64, self.fit.dof as f64);
        self.fit.chi2 / dispersion + 2.0 * k + 2.0 * k * (k + 1.0) / (dof - 1.0)
    }
}

/// All subsets of at most [`MAX_TERMS`] terms that the cells can tell and whose coefficients are positive.
///
/// Dropping the others is the non-negative fit: its optimum has some terms above zero and is the plain least squares
/// fit of just these, so it is among the subsets; a coefficient of zero is a term fewer.
fn candidates(cells: &[Cell]) -> Vec<Candidate> {
    let has_p = cells.iter().map(|c| c.p).collect::<BTreeSet<_>>().len() >= LEAST_P;
    let has_d = cells.iter().any(|c| c.d != cells[0].d);
    let terms = Term::ALL.into_iter().filter(|t| (has_p || !t.is_of_p()) && (has_d || !t.is_of_d()));
    let column = |t: Term| -> Vec<f64> { cells.iter().map(|c| t.at(c.p, c.d)).collect() };
    let columns: Vec<(Term, Vec<f64>)> = terms.map(|t| (t, column(t))).collect();
    let y: Vec<f64> = cells.iter().map(|c| c.value).collect();
    let sigma: Vec<f64> = cells.iter().map(|c| c.sigma).collect();
    let subset = |mask: u32| {
        let of: Vec<_> = columns.iter().enumerate().filter(|(i, _)| mask >> i & 1 == 1).collect();
        let x: Vec<&[f64]> = of.iter().map(|(_, (_, x))| x.as_slice()).collect();
        // AICc has no value without two cells to spare; terms that depend on each other are another subset with fewer.
        let fit = weighted_least_squares(&x, &y, &sigma).ok().filter(|f| f.dof > 1)?;
        let terms: Vec<Term> = of.iter().map(|(_, (t, _))| *t).collect();
        let is_law = fit.coefficients.iter().all(|c| *c > 0.0) && !is_told_by_p(&terms, &fit.coefficients);
        is_law.then_some(Candidate { terms, fit })
    };
    let masks = (1..1_u32 << columns.len()).filter(|m| m.count_ones() <= MAX_TERMS);
    masks.filter_map(subset).collect()
}

/// Whether the same values have a law in p instead of p - 1: a + b (p - 1) is (a - b) + b p. Only one of the two is a candidate.
fn is_told_by_p(terms: &[Term], coefficients: &[f64]) -> bool {
    let of = |wanted| terms.iter().position(|t| *t == wanted).map(|at| coefficients[at]);
    [(Term::One, Term::P, Term::PMinusOne), (Term::D, Term::PD, Term::PMinusOneD)].into_iter().any(
        |(level, by_p, by_others)| {
            of(by_others).is_some_and(|b| of(by_p).is_some() || of(level).is_some_and(|a| a >= b))
        },
    )
}

/// Least `AICc` of all laws of these cells; infinite where there is none.
pub(super) fn least_aicc(cells: &[Cell]) -> (f64, Option<Form>) {
    let all = candidates(cells);
    let best = all.iter().min_by(|a, b| a.aicc(1.0).total_cmp(&b.aicc(1.0)));
    best.map_or((f64::INFINITY, None), |best| (best.aicc(1.0), form(best, 0.0)))
}

/// The laws within the margin: first the chosen one, then the others by `AICc`. Empty where no law fits.
pub(super) fn forms(cells: &[Cell], shared_reach: f64) -> Vec<Form> {
    let all = candidates(cells);
    let reduced = |c: &Candidate| c.fit.chi2 / c.fit.dof as f64;
    // Errors that no law fits are too small by this factor, so that chi-squares differ by more than they tell (the QAICc of
    // Burnham and Anderson 2002, 2.5).
    let best = all.iter().min_by(|a, b| reduced(a).total_cmp(&reduced(b)));
    let is_contradicted =
        |c: &&Candidate| chi_square_q(c.fit.chi2, c.fit.dof).is_some_and(|q| q < CONTRADICTED);
    let dispersion = best.filter(is_contradicted).map_or(1.0, reduced);
    let least = all.iter().map(|c| c.aicc(dispersion)).fold(f64::INFINITY, f64::min);
    let mut within: Vec<&Candidate> = all.iter().filter(|c| c.aicc(dispersion) <= least + MARGIN).collect();
    within.sort_by(|a, b| a.aicc(dispersion).total_cmp(&b.aicc(dispersion)));
    // Of equally few terms, the first is the one with the least AICc.
    if let Some(chosen) = (0..within.len()).min_by_key(|i| within[*i].terms.len()) {
        within[..=chosen].rotate_right(1);
    }
    within.iter().filter_map(|c| form(c, shared_reach)).collect()
}

fn form(of: &Candidate, shared_reach: f64) -> Option<Form> {
    let fit = &of.fit;
    // Scatter beyond the known errors widens intervals by itself and by how little is known of it.
    let wider = (fit.chi2 / fit.dof as f64).sqrt();
    let t = t_quantile(f64::midpoint(1.0, LEVEL), fit.dof as f64)?;
    let (covariance, reach) = (fit.covariance.clone(), deviations(LEVEL).max(wider * t));
    let mut form = Form { terms: Vec::new(), chi2: fit.chi2, dof: fit.dof, covariance, reach, shared_reach };
    for (j, (term, value)) in of.terms.iter().zip(&fit.coefficients).enumerate() {
        let interval = form.interval(*value, fit.covariance[j][j])?;
        form.terms.push(Coefficient { term: *term, value: *value, interval });
    }
    Some(form)
}
