//! Interval of a quantity that differs from run to run by more than any one run can see: the layout of memory that a process was given,
//! the clock of that hour. Earlier runs tell how much.
//!
//! One-way random effects with unequal variances (method of moments; Paule and Mandel, "Consensus values and weighting factors",
//! J. Res. Natl. Bur. Stand. 1982): what the runs differ by, less what their own intervals explain, is the variance between runs.

use crate::Interval;
use crate::distribution::{normal_quantile, t_quantile};
use crate::spread;

/// Earlier runs from which on their spread is known at all.
pub const FEWEST: usize = 3;

/// What one run said: a value, and the interval that it knew of by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Value.
    pub value: f64,
    /// Interval around it.
    pub own: Interval,
}

/// The interval of `this` run's value for the quantity itself: its own, widened by what it and the `earlier` runs differ by. Never
/// narrower than its own. Differences are taken as ratios where all that is said is positive, so that an interval of a positive
/// quantity holds no negative value. `None` with fewer than [`FEWEST`] earlier runs, or figures that are not finite.
pub fn among_runs(this: Estimate, earlier: &[Estimate]) -> Option<Interval> {
    let all = || earlier.iter().chain([&this]);
    let ends = |e: &Estimate| [e.value, e.own.low, e.own.high];
    if earlier.len() < FEWEST || !all().flat_map(ends).all(f64::is_finite) {
        return None;
    }
    let ratios = all().flat_map(ends).all(|v| v > 0.0);
    let scaled = |v: f64| if ratios { v.ln() } else { v };
    let back = |v: f64| if ratios { v.exp() } else { v };
    let sure = |level: f64| normal_quantile(f64::midpoint(1.0, level));
    let mut within = 0.0;
    for e in all() {
        let half = (scaled(e.own.high) - scaled(e.own.low)) / 2.0;
        within += (half / sure(e.own.level)?).powi(2) / (earlier.len() + 1) as f64;
    }
    let values: Vec<f64> = all().map(|e| scaled(e.value)).collect();
    let between = (spread::variance(&values)? - within).max(0.0).sqrt();
    let reach = between * t_quantile(f64::midpoint(1.0, this.own.level), earlier.len() as f64)?;
    let middle = scaled(this.value);
    let low = back(middle - (middle - scaled(this.own.low)).hypot(reach));
    let high = back(middle + (scaled(this.own.high) - middle).hypot(reach));
    // Logarithm and back may lose the last digit.
    Interval::new(this.own.level, low.min(this.own.low), high.max(this.own.high))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// A run around 10: it is `between` off by itself, and sees its own level up to `within`.
    fn run(random: &mut Random, between: f64, within: f64) -> Estimate {
        let value = 10.0 + between * random.normal() + within * random.normal();
        Estimate { value, own: Interval::new(0.95, value - 1.96 * within, value + 1.96 * within).unwrap() }
    }

    #[test]
    fn intervals_cover_whatever_runs_differ_by() {
        let mut random = Random::new(11);
        for (earlier, between, within) in
            [(3, 0.1, 0.001), (3, 0.1, 0.1), (5, 0.0, 0.1), (11, 0.1, 0.001), (11, 0.1, 0.1), (11, 0.0, 0.1)]
        {
            let covers = (0..2_000).filter(|_| {
                let past: Vec<Estimate> = (0..earlier).map(|_| run(&mut random, between, within)).collect();
                among_runs(run(&mut random, between, within), &past).unwrap().contains(10.0)
            });
            let share = f64::from(covers.count() as u32) / 2_000.0;
            assert!(share >= 0.93, "{earlier} earlier runs, {between} and {within}: {share}");
        }
    }

    #[test]
    fn a_run_in_ten_in_another_state_leaves_the_other_nine_covered() {
        // 2.5 % more in every tenth run, and hardly anything else: not the normal law, so those runs themselves know too little.
        let mut random = Random::new(3);
        let mut state = || {
            let other = if random.unit() < 0.1 { 0.25 } else { 0.0 };
            let mut e = run(&mut random, 0.002, 0.001);
            e.value += other;
            e.own = Interval::new(0.95, e.own.low + other, e.own.high + other).unwrap();
            e
        };
        let covers = (0..2_000).filter(|_| {
            let past: Vec<Estimate> = (0..11).map(|_| state()).collect();
            among_runs(state(), &past).unwrap().contains(10.0)
        });
        let share = f64::from(covers.count() as u32) / 2_000.0;
        assert!(share >= 0.88, "{share}");
    }

    #[test]
    fn runs_that_agree_widen_nothing_and_few_or_wrong_ones_tell_nothing() {
        let e = |value: f64| Estimate { value, own: Interval::new(0.95, value - 0.1, value + 0.2).unwrap() };
        let same = among_runs(e(5.0), &[e(5.01), e(4.99), e(5.0)]).unwrap();
        assert!((same.low - 4.9).abs() < 1e-9 && (same.high - 5.2).abs() < 1e-9, "{same:?}");
        assert_eq!(among_runs(e(5.0), &[e(5.0), e(5.0)]), None);
        let broken = Estimate { value: f64::NAN, own: e(5.0).own };
        assert_eq!(among_runs(e(5.0), &[e(5.0), e(5.0), broken]), None);
        // Far apart, near zero: an interval of ratios stays positive, one of differences need not.
        let positive = among_runs(e(0.3), &[e(3.0), e(30.0), e(300.0)]).unwrap();
        assert!(positive.low > 0.0 && positive.high > 300.0, "{positive:?}");
        assert!(among_runs(e(0.05), &[e(1.0), e(2.0), e(3.0)]).unwrap().low < 0.0);
    }
}
