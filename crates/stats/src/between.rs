//! Interval of a quantity that differs from run to run by more than any one run can see; earlier runs tell how much.
//!
//! One-way random effects; variance between runs by R. C. Paule, J. Mandel, "Consensus values and weighting factors", 1982.

use crate::Interval;
use crate::bisection::narrowed;
use crate::distribution::{normal_quantile, t_quantile};
use crate::error::finite;

/// Fewest earlier runs that change an interval. With two, t of two degrees of freedom made 2 % of a cost a range of three times as much and
/// a third.
pub const FEWEST: usize = 4;

/// What one run said: a value, and the interval that it knew of by itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    pub value: f64,
    pub own: Interval,
}

/// The interval of `this` run's value, widened by what it and the `earlier` runs differ by: ratios where all values are positive.
/// Never negative where no end is. `None` with fewer than [`FEWEST`] earlier runs, or figures that are not finite.
pub fn among_runs(this: Estimate, earlier: &[Estimate]) -> Option<Interval> {
    let all: Vec<Estimate> = earlier.iter().copied().chain([this]).collect();
    let ends = |e: &Estimate| [e.value, e.own.low, e.own.high];
    if earlier.len() < FEWEST || !all.iter().flat_map(ends).all(f64::is_finite) {
        return None;
    }
    let ratios = all.iter().all(|e| e.value > 0.0) && this.own.low > 0.0;
    let scaled = |v: f64| if ratios { v.ln() } else { v };
    let mut values = Vec::new();
    for e in &all {
        let sure = normal_quantile(f64::midpoint(1.0, e.own.level))?;
        let error = e.own.width() / 2.0 / sure / if ratios { e.value } else { 1.0 };
        values.push([scaled(e.value), error * error]);
    }
    let between = variance_between(&[values], earlier.len() as f64)?.sqrt();
    let reach = between * t_quantile(f64::midpoint(1.0, this.own.level), earlier.len() as f64)?;
    let middle = scaled(this.value);
    let low = middle - (middle - scaled(this.own.low)).hypot(reach);
    let high = middle + (scaled(this.own.high) - middle).hypot(reach);
    let (mut low, high) = if ratios { (low.exp(), high.exp()) } else { (low, high) };
    if all.iter().flat_map(ends).all(|v| v >= 0.0) {
        low = low.max(0.0);
    }
    // Logarithm and back may lose the last digit.
    Interval::new(this.own.level, low.min(this.own.low), high.max(this.own.high))
}

/// The variance that values (each with its own) have in addition: weighted squared distances then add up to the degrees of `freedom`.
/// 0 where their own explain more than there is. `None` without freedom or with figures that are not finite.
pub fn variance_between(groups: &[Vec<[f64; 2]>], freedom: f64) -> Option<f64> {
    const HALVINGS: usize = 200;
    let all = || groups.iter().flatten().flatten();
    if !(freedom > 0.0 && all().all(|v| v.is_finite())) {
        return None;
    }
    let distance = |group: &[[f64; 2]], weight: &dyn Fn(f64) -> f64| {
        let weights: f64 = group.iter().map(|[_, v]| weight(*v)).sum();
        let mean = group.iter().map(|[x, v]| weight(*v) * x).sum::<f64>() / weights;
        group.iter().map(|[x, v]| weight(*v) * (x - mean).powi(2)).sum::<f64>()
    };
    // A run that claims to know itself exactly has a weight, too.
    let excess = |between: f64| {
        groups.iter().map(|g| distance(g, &|v| 1.0 / (v + between).max(1e-200))).sum::<f64>() - freedom
    };
    let none = excess(0.0);
    if none.is_nan() || none <= 0.0 {
        return Some(0.0);
    }
    // It falls with the variance, and is not above zero at that of the values as they stand.
    let plain: f64 = groups.iter().map(|g| distance(g, &|_| 1.0)).sum();
    let [_, high] = narrowed(0.0, finite(plain / freedom)?, HALVINGS, |between| excess(between) > 0.0);
    Some(high)
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

    /// Share of 2,000 intervals after so many `earlier` runs that hold 10.
    fn covered(earlier: usize, mut run: impl FnMut() -> Estimate) -> f64 {
        let holds = (0..2_000).filter(|_| {
            let past: Vec<Estimate> = (0..earlier).map(|_| run()).collect();
            among_runs(run(), &past).unwrap().contains(10.0)
        });
        holds.count() as f64 / 2_000.0
    }

    #[test]
    fn intervals_cover_whatever_runs_differ_by() {
        let mut random = Random::new(11);
        let few = [(4, 0.1, 0.001), (4, 0.1, 0.1), (5, 0.1, 0.1), (5, 0.0, 0.1)];
        let many = [(11, 0.1, 0.001), (11, 0.1, 0.1), (11, 0.0, 0.1)];
        for (earlier, between, within) in few.into_iter().chain(many) {
            let share = covered(earlier, || run(&mut random, between, within));
            assert!(share >= 0.93, "{earlier} earlier runs, {between} and {within}: {share}");
        }
    }

    #[test]
    fn a_run_in_ten_in_another_state_leaves_the_other_nine_covered() {
        // 2.5 % more in every tenth run, and hardly anything else: not the normal law, so those runs themselves know too little.
        let mut random = Random::new(3);
        let share = covered(11, || {
            let other = if random.unit() < 0.1 { 0.25 } else { 0.0 };
            let Estimate { value, own } = run(&mut random, 0.002, 0.001);
            let own = Interval::new(0.95, own.low + other, own.high + other).unwrap();
            Estimate { value: value + other, own }
        });
        assert!(share >= 0.88, "{share}");
    }

    #[test]
    fn runs_that_agree_widen_nothing_and_few_or_wrong_ones_tell_nothing() {
        let e = |value: f64| Estimate { value, own: Interval::new(0.95, value - 0.1, value + 0.2).unwrap() };
        let same = among_runs(e(5.0), &[e(5.01), e(4.99), e(5.0), e(5.0)]).unwrap();
        assert!((same.low - 4.9).abs() < 1e-9 && (same.high - 5.2).abs() < 1e-9, "{same:?}");
        assert_eq!(among_runs(e(5.0), &[e(5.0); 3]), None);
        let broken = Estimate { value: f64::NAN, own: e(5.0).own };
        assert_eq!(among_runs(e(5.0), &[e(5.0), e(5.0), e(5.0), broken]), None);
        // Far apart, near zero: an interval of ratios stays positive, and where nothing negative was said, so does one of differences.
        let positive = among_runs(e(0.3), &[e(3.0), e(30.0), e(300.0), e(30.0)]).unwrap();
        assert!(positive.low > 0.0 && positive.high > 300.0, "{positive:?}");
        assert_eq!(among_runs(e(0.1), &[e(1.0), e(2.0), e(3.0), e(2.0)]).unwrap().low, 0.0);
        assert!(among_runs(e(0.05), &[e(1.0), e(2.0), e(3.0), e(2.0)]).unwrap().low < 0.0);
    }

    #[test]
    fn a_run_that_hardly_knows_itself_does_not_speak_for_the_others() {
        let e = |value: f64, half: f64| Estimate {
            value,
            own: Interval::new(0.95, value - half, value + half).unwrap(),
        };
        let mut past = [97.0, 98.0, 99.0, 99.5, 100.5, 101.0, 102.0, 103.0].map(|v| e(v, 0.1)).to_vec();
        let known = among_runs(e(100.0, 0.1), &past).unwrap();
        past.push(e(100.0, 15.0));
        let with = among_runs(e(100.0, 0.1), &past).unwrap();
        let wider = |than: Interval| (than.width() / known.width() - 1.0).abs();
        assert!(known.width() > 8.0 && wider(with) < 0.1, "{known:?} {with:?}");
        // One that claims to know itself exactly is heard, and no more than that.
        past.push(e(100.0, 0.0));
        let exact = among_runs(e(100.0, 0.1), &past).unwrap();
        assert!(wider(exact) < 0.2, "{exact:?}");
    }
}
