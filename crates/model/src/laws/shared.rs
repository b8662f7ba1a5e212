//! Laws of exact points whose errors come from causes that all points share, as those of simulated times do.

use machmeter_stats::distribution::deviations;
use machmeter_stats::regression::weighted_least_squares;

use super::select::Form;
use super::{Cell, LEVEL, Law, LawError, NoQ, fit_known};

/// Relative error of exact points: a picosecond, their unit, of a nanosecond.
const OF_UNIT: f64 = 1e-3;

/// Laws of points (p, d, value) in any order. `causes` has for each cause of error how far one standard deviation of it moves each point.
/// Terms are those of the exact values. Causes move points together: they make the intervals, no number of points makes these narrower,
/// and there is no Q. Errors: as [`super::fit`].
pub fn fit_shared(points: &[(u32, u64, f64)], causes: &[Vec<f64>]) -> Result<Vec<Law>, LawError> {
    let cell = |&(p, d, value): &(u32, u64, f64)| Cell { p, d, value, sigma: OF_UNIT * value };
    let cells: Vec<Cell> = points.iter().map(cell).collect();
    let mut laws = fit_known(&cells)?;
    for law in &mut laws {
        let only_p = law.only_p;
        for s in &mut law.segments {
            let is_own =
                |c: &Cell| only_p.is_none_or(|p| p == c.p) && (s.from_bytes..=s.to_bytes).contains(&c.d);
            let own: Vec<usize> = (0..cells.len()).filter(|i| is_own(&cells[*i])).collect();
            s.forms.iter_mut().for_each(|form| widen(form, &cells, &own, causes));
            s.q = Err(NoQ::Shared);
        }
    }
    Ok(laws)
}

/// Coefficients are linear in the values: what a cause moves cells by moves them by its own fit. What the law misses is added
/// as scatter.
fn widen(form: &mut Form, cells: &[Cell], own: &[usize], causes: &[Vec<f64>]) {
    let of = |value: &dyn Fn(usize) -> f64| own.iter().map(|i| value(*i)).collect::<Vec<f64>>();
    let sigma = of(&|i| cells[i].sigma);
    let columns: Vec<Vec<f64>> =
        form.terms.iter().map(|c| of(&|i| c.term.at(cells[i].p, cells[i].d))).collect();
    let columns: Vec<&[f64]> = columns.iter().map(Vec::as_slice).collect();
    let missed = form.chi2 / form.dof.max(1) as f64;
    let mut covariance = form.covariance.clone();
    covariance.iter_mut().flatten().for_each(|c| *c *= missed);
    for cause in causes {
        let Ok(moved) = weighted_least_squares(&columns, &of(&|i| cause[i]), &sigma) else { continue };
        for (row, a) in covariance.iter_mut().zip(&moved.coefficients) {
            row.iter_mut().zip(&moved.coefficients).for_each(|(c, b)| *c += a * b);
        }
    }
    form.covariance = covariance;
    form.reach = deviations(LEVEL);
    for j in 0..form.terms.len() {
        if let Some(interval) = form.interval(form.terms[j].value, form.covariance[j][j]) {
            form.terms[j].interval = interval;
        }
    }
}
