//! The law of the difference between two runs of an unchanged machine: a mixture of t distributions about zero.

use machmeter_stats::distribution::t_cdf;

/// Parts with less weight than this move no printed figure.
const NEGLIGIBLE_WEIGHT: f64 = 1e-9;
/// Bisection steps: 2^-40 of the bracket.
const STEPS: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    /// Weight; the weights of a law sum to 1.
    pub(crate) weight: f64,
    pub(crate) se: f64,
    pub(crate) dof: f64,
}

/// A mixture of t distributions about zero.
#[derive(Debug, Clone)]
pub(crate) struct Law(Vec<Part>);

impl Law {
    /// A law from its parts; parts of no weight or scale are left out. `None` if nothing is left or something is not finite.
    pub(crate) fn new(parts: impl IntoIterator<Item = Part>) -> Option<Self> {
        let parts: Vec<Part> = parts.into_iter().filter(|p| p.weight > NEGLIGIBLE_WEIGHT).collect();
        let usable = |p: &Part| p.se.is_finite() && p.se > 0.0 && p.dof.is_finite() && p.dof > 0.0;
        (!parts.is_empty() && parts.iter().all(usable)).then_some(Self(parts))
    }

    /// Probability of a difference at least as far from zero as `difference`.
    pub(crate) fn two_sided(&self, difference: f64) -> f64 {
        let sum: f64 = self.0.iter().map(|p| p.weight * tail(difference.abs() / p.se, p.dof)).sum();
        (2.0 * sum).clamp(0.0, 1.0)
    }

    /// The distance from zero that a difference exceeds with probability `p`, `0 < p < 1`.
    pub(crate) fn distance(&self, p: f64) -> f64 {
        let (mut low, mut high) = (0.0, self.0.iter().map(|part| part.se).fold(0.0, f64::max));
        // Student tails fall as a power, so doubling reaches any probability that a double can hold.
        for _ in 0..1000 {
            if self.two_sided(high) <= p || !high.is_finite() {
                break;
            }
            low = high;
            high *= 2.0;
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if self.two_sided(middle) > p {
                low = middle;
            } else {
                high = middle;
            }
        }
        high
    }
}

/// Upper tail of Student's law.
fn tail(t: f64, dof: f64) -> f64 {
    t_cdf(-t, dof).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_part_is_students_law() {
        let law = Law::new([Part { weight: 1.0, se: 2.0, dof: 9.0 }]).unwrap();
        // t of 9 degrees of freedom: 2.262 at 95 %, 3.250 at 99 % (Fisher and Yates, table III).
        assert!((law.distance(0.05) - 2.0 * 2.262).abs() < 2e-3);
        assert!((law.distance(0.01) - 2.0 * 3.250).abs() < 2e-3);
        assert!((law.two_sided(-2.0 * 2.262) - 0.05).abs() < 1e-4);
    }

    #[test]
    fn a_wide_part_rules_the_far_tail_and_not_the_near_one() {
        let narrow = Law::new([Part { weight: 1.0, se: 1.0, dof: 1e6 }]).unwrap();
        let mixed =
            Law::new([Part { weight: 0.9, se: 1.0, dof: 1e6 }, Part { weight: 0.1, se: 5.0, dof: 1e6 }])
                .unwrap();
        assert!(mixed.distance(0.3) < 1.3 * narrow.distance(0.3));
        assert!(mixed.distance(0.001) > 2.5 * narrow.distance(0.001));
    }

    #[test]
    fn impossible_parts_are_refused() {
        assert!(Law::new([Part { weight: 1.0, se: 0.0, dof: 3.0 }]).is_none());
        assert!(Law::new([Part { weight: 1.0, se: f64::NAN, dof: 3.0 }]).is_none());
        assert!(Law::new([]).is_none());
    }
}
