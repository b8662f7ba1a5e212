//! Variances of many alike quantities lend to each other: each alone rests on few values, all together on many.
//!
//! The moderated t of G. K. Smyth (Statistical Applications in Genetics and Molecular Biology 3, 2004).

use statrs::function::gamma::digamma;

use crate::bisection::narrowed;
use crate::spread;

/// A variance and its degrees of freedom.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Variance {
    /// Variance, above 0.
    pub value: f64,
    /// Degrees of freedom, at least 1.
    pub dof: f64,
}

/// Prior degrees of freedom at most: beyond, all variances would be taken for one, and quantities with bursts for those without.
const MOST_PRIOR_DOF: f64 = 12.0;

/// Variances from which a prior is estimated at least.
const LEAST: usize = 2;

/// What each of `own` becomes when it borrows from the others as far as they agree, and their prior. Those that are not above 0
/// or not finite neither lend nor borrow; of fewer than two there is no prior.
pub fn moderated(own: &[Variance]) -> (Vec<Variance>, Option<Variance>) {
    moderated_at_least(own, 0.0)
}

/// The same with a prior of at least `least_dof` degrees of freedom, however much the variances differ.
pub fn moderated_at_least(own: &[Variance], least_dof: f64) -> (Vec<Variance>, Option<Variance>) {
    let is_sound = |v: &Variance| v.value > 0.0 && v.value.is_finite() && v.dof >= 1.0 && v.dof.is_finite();
    let sound: Vec<Variance> = own.iter().copied().filter(is_sound).collect();
    let Some(prior) = prior(&sound, least_dof) else { return (own.to_vec(), None) };
    let borrow = |v: &Variance| {
        let dof = v.dof + prior.dof;
        let value = (prior.dof * prior.value + v.dof * v.value) / dof;
        if is_sound(v) { Variance { value, dof } } else { *v }
    };
    (own.iter().map(borrow).collect(), Some(prior))
}

/// Scale and degrees of freedom of the law that `own` were drawn from.
fn prior(own: &[Variance], least_dof: f64) -> Option<Variance> {
    if own.len() < LEAST {
        return None;
    }
    let centered: Vec<f64> =
        own.iter().map(|v| v.value.ln() - digamma(v.dof / 2.0) + (v.dof / 2.0).ln()).collect();
    let expected: Vec<f64> = own.iter().map(|v| trigamma(v.dof / 2.0)).collect();
    let excess = spread::variance(&centered)? - spread::mean(&expected)?;
    let estimate = if excess > 0.0 { 2.0 * trigamma_inverse(excess) } else { MOST_PRIOR_DOF };
    let dof = estimate.max(least_dof).min(MOST_PRIOR_DOF);
    let value = (spread::mean(&centered)? + digamma(dof / 2.0) - (dof / 2.0).ln()).exp();
    (value.is_finite() && value > 0.0 && dof > 0.0).then_some(Variance { value, dof })
}

/// Derivative of [`digamma`] for positive `x`: recurrence up to 6, then the asymptotic series (Abramowitz and Stegun 6.4.6, 6.4.12).
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
    narrowed(-20.0, 20.0, 60, |ln| trigamma(ln.exp()) > y)[1].exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

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

    /// Sample variance of `dof + 1` values of standard deviation `sd`.
    fn drawn(random: &mut Random, sd: f64, dof: usize) -> Variance {
        let chi2: f64 = (0..dof).map(|_| random.normal().powi(2)).sum();
        Variance { value: sd * sd * chi2 / dof as f64, dof: dof as f64 }
    }

    #[test]
    fn variances_that_agree_lend_much_and_those_that_differ_little() {
        let mut random = Random::new(3);
        let alike: Vec<_> = (0..200).map(|_| drawn(&mut random, 0.2, 5)).collect();
        let (lent, of_all) = moderated(&alike);
        let of_all = of_all.unwrap();
        assert!((of_all.value / 0.04 - 1.0).abs() < 0.15 && of_all.dof > 0.8 * MOST_PRIOR_DOF, "{of_all:?}");
        let far = |all: &[Variance]| all.iter().map(|v| (v.value / 0.04).ln().abs()).fold(0.0, f64::max);
        assert!(far(&lent) < 0.6 * far(&alike), "{} {}", far(&lent), far(&alike));
        let different: Vec<_> =
            (0..100).flat_map(|_| [0.02, 2.0].map(|sd| drawn(&mut random, sd, 5))).collect();
        assert!(prior(&different, 0.0).unwrap().dof < 0.8);
        let quiet_ones = |lent: &[Variance]| lent.iter().step_by(2).map(|v| v.value).sum::<f64>();
        let (little, more) = (moderated(&different), moderated_at_least(&different, 5.0));
        assert!(more.1.unwrap().dof == 5.0 && quiet_ones(&more.0) > 2.0 * quiet_ones(&little.0));
        let unknown = Variance { value: 0.0, dof: 5.0 };
        assert_eq!(moderated(&[alike[0], unknown]), (vec![alike[0], unknown], None));
    }
}
