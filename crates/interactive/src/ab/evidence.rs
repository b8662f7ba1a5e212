//! What the rounds say about one figure of one cell: the effect of the setting, its standard error, its degrees of freedom.
//!
//! The unit is the round: mean of the two B segments less that of the two A segments, on the scale of comparison. Segments
//! are alike within a round and jobs within a segment; rounds with a coin of their own are not.

use machmeter_stats::spread;

use super::{Figure, Scale, Series};

/// Differences of logarithms that vary less than this (half a percent) come from clocks that count in steps, not from a
/// machine that never varies.
const LEAST_LOG_SD: f64 = 0.005;

/// Effect of setting B against A on the scale of comparison (difference of logarithms, or of shares).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    pub effect: f64,
    pub se: f64,
    /// Degrees of freedom of the standard error.
    pub dof: f64,
    pub rounds: usize,
}

/// Evidence of the first `rounds` rounds; `None` for fewer than 2 differences or where they are not finite.
pub(super) fn of(series: &Series, rounds: usize) -> Option<Evidence> {
    let used = &series.rounds[..rounds.min(series.rounds.len())];
    let differences: Vec<f64> = used.iter().map(|r| r.b - r.a).collect();
    let n = differences.len();
    let effect = spread::mean(&differences)?;
    let sd = spread::stddev(&differences)?;
    let least_se = match series.figure.scale() {
        Scale::Ratio => LEAST_LOG_SD / (n as f64).sqrt(),
        Scale::Points => counting_se(series, used.len())?,
    };
    Some(Evidence { effect, se: (sd / (n as f64).sqrt()).max(least_se), dof: (n - 1) as f64, rounds: n })
}

/// Standard error that a difference of shares has by counting alone: no misses in few jobs are not no misses at all. One
/// success and one failure are added, as in Laplace's rule of succession.
fn counting_se(series: &Series, rounds: usize) -> Option<f64> {
    let side = |share: f64, jobs: f64| {
        let p = ((share * jobs).clamp(0.0, jobs) + 1.0) / (jobs + 2.0);
        p * (1.0 - p) / (jobs + 2.0)
    };
    let used = &series.rounds[..rounds];
    let (a, b): (Vec<f64>, Vec<f64>) = used.iter().map(|r| (r.a, r.b)).unzip();
    let jobs = |pick: fn(&[u64; 2]) -> u64| used.iter().map(|r| pick(&r.jobs)).sum::<u64>() as f64;
    let variance = side(spread::mean(&a)?, jobs(|j| j[0])) + side(spread::mean(&b)?, jobs(|j| j[1]));
    Some(variance.sqrt())
}

/// Prior degrees of freedom at most: beyond, the standard errors of all cells would be taken for one, and cells with bursts
/// for those without.
const MOST_PRIOR_DOF: f64 = 12.0;

/// Cells from which a prior is estimated at least.
const LEAST_CELLS: usize = 2;

/// Lets each standard error borrow from those of the same figure in the other cells, as far as they agree: with four
/// rounds a cell alone has three degrees of freedom, which is next to nothing at the levels of a family of tests.
///
/// The moderated t of G. K. Smyth (Statistical Applications in Genetics and Molecular Biology 3, 2004): variances are taken
/// to be drawn from a scaled inverse chi-square law, whose scale and degrees of freedom are found by the moments of their
/// logarithms.
pub(super) fn moderate(series: &[Series], found: &mut [Option<Evidence>]) {
    for figure in [Figure::Mean, Figure::P95, Figure::P99, Figure::Misses, Figure::DesiredCpu] {
        let mut alike: Vec<&mut Evidence> = series
            .iter()
            .zip(found.iter_mut())
            .filter(|(s, _)| s.figure == figure)
            .filter_map(|(_, e)| e.as_mut())
            .filter(|e| e.se > 0.0 && e.dof >= 1.0)
            .collect();
        let variances: Vec<(f64, f64)> =
            alike.iter().map(|e| (e.se.powi(2) * e.rounds as f64, e.dof)).collect();
        let Some((prior_variance, prior_dof)) = prior(&variances) else { continue };
        for (e, (variance, dof)) in alike.iter_mut().zip(variances) {
            e.dof = dof + prior_dof;
            e.se = ((prior_dof * prior_variance + dof * variance) / (e.dof * e.rounds as f64)).sqrt();
        }
    }
}

/// Scale and degrees of freedom of the law that `(variance, dof)` were drawn from; `None` when there are too few, or they
/// differ more than any such law would have it.
fn prior(variances: &[(f64, f64)]) -> Option<(f64, f64)> {
    if variances.len() < LEAST_CELLS {
        return None;
    }
    let centered: Vec<f64> =
        variances.iter().map(|(v, d)| v.ln() - digamma(d / 2.0) + (d / 2.0).ln()).collect();
    let own: Vec<f64> = variances.iter().map(|(_, d)| trigamma(d / 2.0)).collect();
    let excess = spread::variance(&centered)? - spread::mean(&own)?;
    let dof =
        if excess > 0.0 { (2.0 * trigamma_inverse(excess)).min(MOST_PRIOR_DOF) } else { MOST_PRIOR_DOF };
    let variance = (spread::mean(&centered)? + digamma(dof / 2.0) - (dof / 2.0).ln()).exp();
    (variance.is_finite() && variance > 0.0 && dof > 0.0).then_some((variance, dof))
}

/// Derivative of the logarithm of the gamma function for positive `x`: recurrence up to 6, then the asymptotic series
/// (Abramowitz and Stegun 6.3.5, 6.3.18).
fn digamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + x.ln() - 0.5 / x - y * (1.0 / 12.0 - y * (1.0 / 120.0 - y * (1.0 / 252.0 - y / 240.0)))
}

/// Derivative of [`digamma`] (Abramowitz and Stegun 6.4.6, 6.4.12).
fn trigamma(mut x: f64) -> f64 {
    let mut sum = 0.0;
    while x < 6.0 {
        sum += 1.0 / (x * x);
        x += 1.0;
    }
    let y = 1.0 / (x * x);
    sum + 1.0 / x + y / 2.0 + y / x * (1.0 / 6.0 - y * (1.0 / 30.0 - y * (1.0 / 42.0 - y / 30.0)))
}

/// The positive `x` whose [`trigamma`] is `y`, by bisection on its logarithm: it falls from infinity to nothing.
fn trigamma_inverse(y: f64) -> f64 {
    let (mut low, mut high) = (-20.0_f64, 20.0_f64);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if trigamma(middle.exp()) > y { low = middle } else { high = middle }
    }
    high.exp()
}

#[cfg(test)]
mod tests {
    use machmeter_stats::random::Random;

    use super::*;

    #[test]
    fn the_gamma_functions_are_those_of_the_tables() {
        // Abramowitz and Stegun, table 6.1 and pi^2 / 6.
        assert!((digamma(1.0) + 0.577_215_664_901_532_9).abs() < 1e-8);
        assert!((digamma(1.5) - 0.036_489_973_978_576_5).abs() < 1e-8);
        assert!((trigamma(1.0) - std::f64::consts::PI.powi(2) / 6.0).abs() < 1e-8);
        for x in [0.01, 0.5, 1.0, 3.7, 40.0] {
            assert!((trigamma_inverse(trigamma(x)) / x - 1.0).abs() < 1e-6, "{x}");
        }
    }

    /// Sample variances of `dof + 1` values of standard deviation `sd`.
    fn drawn(random: &mut Random, sd: f64, dof: usize) -> (f64, f64) {
        let chi2: f64 = (0..dof).map(|_| random.normal().powi(2)).sum();
        (sd * sd * chi2 / dof as f64, dof as f64)
    }

    #[test]
    fn cells_that_agree_lend_much_and_cells_that_differ_little() {
        let mut random = Random::new(3);
        let alike: Vec<_> = (0..200).map(|_| drawn(&mut random, 0.2, 5)).collect();
        let (variance, dof) = prior(&alike).unwrap();
        assert!((variance / 0.04 - 1.0).abs() < 0.15, "{variance}");
        assert!(dof > 0.8 * MOST_PRIOR_DOF, "{dof}");
        let different: Vec<_> = (0..200)
            .map(|i| {
                let sd = if i % 2 == 0 { 0.02 } else { 2.0 };
                drawn(&mut random, sd, 5)
            })
            .collect();
        assert!(prior(&different).unwrap().1 < 0.8);
        assert!(prior(&alike[..1]).is_none());
    }
}
