//! Cumulative probabilities and quantiles of the normal, Student t and binomial laws.
//!
//! The incomplete beta function is our own continued fraction (modified Lentz; *Numerical Recipes*, 3rd ed., section 6.4): rank
//! intervals need it for a million trials, beyond the iterations of statrs, whose gamma and error functions serve here.

use crate::error::finite;
use statrs::function::{erf, gamma};

/// `P(Z > z)` of the standard normal law, accurate in the far tail.
pub fn normal_sf(z: f64) -> Option<f64> {
    Some(0.5 * libm::erfc(finite(z)? / std::f64::consts::SQRT_2))
}

/// Quantile of the standard normal law; `p` strictly between 0 and 1.
pub fn normal_quantile(p: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let mut z = -std::f64::consts::SQRT_2 * erf::erfc_inv(2.0 * p);
    // Newton steps on the nearer tail remove the last digits of error in the starting value.
    for _ in 0..2 {
        let density = (-0.5 * z * z).exp() / (2.0 * std::f64::consts::PI).sqrt();
        let error = if z <= 0.0 { normal_sf(-z)? - p } else { (1.0 - p) - normal_sf(z)? };
        if density > 0.0 {
            z -= error / density;
        }
    }
    finite(z)
}

/// Standard deviations to each side of the mean between which the normal law has this share, between 0 and 1.
pub fn deviations(level: f64) -> f64 {
    normal_quantile(f64::midpoint(1.0, level)).unwrap_or(f64::INFINITY)
}

/// `P(T <= t)` of Student's law with `dof` > 0 degrees of freedom.
pub fn t_cdf(t: f64, dof: f64) -> Option<f64> {
    if !(t.is_finite() && dof > 0.0 && dof.is_finite()) {
        return None;
    }
    let tail = 0.5 * beta_regularized(0.5 * dof, 0.5, dof / (dof + t * t))?;
    Some(if t <= 0.0 { tail } else { 1.0 - tail })
}

/// Quantile of Student's law with `dof` > 0 degrees of freedom; `p` strictly between 0 and 1.
pub fn t_quantile(p: f64, dof: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0 && dof > 0.0 && dof.is_finite()) {
        return None;
    }
    if p == 0.5 {
        return Some(0.0);
    }
    let tail = p.min(1.0 - p);
    let magnitude = t_magnitude(tail, dof)?;
    finite(if p < 0.5 { -magnitude } else { magnitude })
}

/// The distance from 0 beyond which a share `tail` < 1/2 of Student's law lies on each side: Newton steps on the logarithms of distance and tail, where
/// far tails are straight lines, and a bisection of the bracket where a step leaves it.
fn t_magnitude(tail: f64, dof: f64) -> Option<f64> {
    // Student's tails are wider than the normal law's.
    let (mut low, mut high) = ((-normal_quantile(tail)?).max(f64::MIN_POSITIVE) * 0.5, 1e300_f64);
    let ln_scale = gamma::ln_gamma(0.5 * (dof + 1.0))
        - gamma::ln_gamma(0.5 * dof)
        - 0.5 * (dof * std::f64::consts::PI).ln();
    let mut at = low * 2.0;
    for _ in 0..MOST_STEPS {
        let beyond = t_cdf(-at, dof).unwrap_or(0.0);
        if beyond > tail {
            low = at;
        } else {
            high = at;
        }
        let density = (ln_scale - 0.5 * (dof + 1.0) * (at * at / dof).ln_1p()).exp();
        let next = at * ((beyond / tail).ln() * beyond / (density * at)).exp();
        let next = if low < next && next < high { next } else { low.sqrt() * high.sqrt() };
        let is_there = (next - at).abs() <= 4.0 * f64::EPSILON * at;
        at = next;
        if is_there || high <= low {
            break;
        }
    }
    Some(at)
}

/// More steps than bisecting the logarithms of all positive numbers would take.
const MOST_STEPS: usize = 200;

/// `P(X <= k)` for `n` trials of probability `p` in `[0, 1]`.
pub fn binomial_cdf(k: u64, n: u64, p: f64) -> Option<f64> {
    if !(0.0..=1.0).contains(&p) {
        return None;
    }
    if k >= n {
        return Some(1.0);
    }
    beta_regularized((n - k) as f64, k as f64 + 1.0, 1.0 - p)
}

/// The exact interval of the mean of a Poisson count (Garwood, Biometrika 28, 1936): each tail has half of `1 - level`. None for
/// a level outside (0, 1) or a count too large for the functions behind it.
pub fn poisson_interval(count: u64, level: f64) -> Option<[f64; 2]> {
    if !(level > 0.0 && level < 1.0) {
        return None;
    }
    let tail = (1.0 - level) / 2.0;
    let (k, far) = (count as f64, (count as f64 + 20.0) * 4.0);
    // `Q(a, mean)`, the chance of fewer than `a` events, rises from 0 to 1 as the mean falls.
    let mean = |a: f64, chance: f64| {
        let (mut low, mut high) = (0.0, far);
        for _ in 0..MOST_STEPS {
            let middle = 0.5 * (low + high);
            if middle <= low || middle >= high {
                break;
            }
            *if gamma_q(a, middle)? < chance { &mut high } else { &mut low } = middle;
        }
        Some(0.5 * (low + high))
    };
    let low = if count == 0 { 0.0 } else { mean(k, 1.0 - tail)? };
    Some([low, mean(k + 1.0, tail)?])
}

/// Regularized upper incomplete gamma function `Q(a, x)`; also `P(S > x)` for a sum of `a` unit exponentials.
pub fn gamma_q(a: f64, x: f64) -> Option<f64> {
    if !(a > 0.0 && a.is_finite() && x >= 0.0 && x.is_finite()) {
        return None;
    }
    if x == 0.0 {
        return Some(1.0);
    }
    finite(gamma::checked_gamma_ur(a, x).ok()?).map(|q| q.clamp(0.0, 1.0))
}

/// Regularized incomplete beta function `I_x(a, b)`.
pub fn beta_regularized(a: f64, b: f64, x: f64) -> Option<f64> {
    if !(a > 0.0 && b > 0.0 && a.is_finite() && b.is_finite() && (0.0..=1.0).contains(&x)) {
        return None;
    }
    if x == 0.0 || x == 1.0 {
        return Some(x);
    }
    let ln_front =
        gamma::ln_gamma(a + b) - gamma::ln_gamma(a) - gamma::ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    let value = if x < (a + 1.0) / (a + b + 2.0) {
        ln_front.exp() * beta_fraction(a, b, x) / a
    } else {
        1.0 - ln_front.exp() * beta_fraction(b, a, 1.0 - x) / b
    };
    finite(value).map(|v| v.clamp(0.0, 1.0))
}

/// Continued fraction of the incomplete beta function; converges in about `sqrt(max(a, b))` steps.
fn beta_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / guard(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    let limit = 200 + 20 * (a.max(b).sqrt() as usize);
    for i in 1..=limit {
        let m = i as f64;
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        d = 1.0 / guard(1.0 + even * d);
        c = guard(1.0 + even / c);
        value *= d * c;
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        d = 1.0 / guard(1.0 + odd * d);
        c = guard(1.0 + odd / c);
        let step = d * c;
        value *= step;
        if (step - 1.0).abs() < 1e-16 {
            break;
        }
    }
    value
}
