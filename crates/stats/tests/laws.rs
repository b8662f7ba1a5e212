//! Laws that hold for any input, checked on generated ones.

use machmeter_stats::events::comb_search;
use machmeter_stats::histogram::{Bucket, LogHistogram};
use machmeter_stats::quantile::{median, median_of, quantile, quantile_interval, sorted};
use machmeter_stats::rank::{hodges_lehmann, holm, mann_whitney};
use machmeter_stats::regression::{Weighting, line};
use machmeter_stats::segmented::{Curve, breaks};
use machmeter_stats::spectrum::{autocorrelation, clip_robust, welch};
use machmeter_stats::spread::{mad, mean, stddev, variance};
use proptest::prelude::*;

fn sample() -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(-1e6..1e6_f64, 1..60)
}

/// Anything at all, NaN, infinities and extremes among it.
fn wild() -> impl Strategy<Value = Vec<f64>> {
    let value = prop_oneof![
        6 => -1e3..1e3_f64,
        1 => Just(0.0),
        1 => prop::num::f64::ANY,
        1 => Just(f64::MAX),
        1 => Just(f64::MIN_POSITIVE),
    ];
    prop::collection::vec(value, 0..40)
}

fn all_finite(values: &[Option<f64>]) -> bool {
    values.iter().flatten().all(|v| v.is_finite())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn quantiles_are_ordered_and_within_the_sample(xs in sample(), p in 0.0..=1.0_f64, q in 0.0..=1.0_f64) {
        let ascending = sorted(&xs).expect("finite");
        let (a, b) = (quantile(&ascending, p.min(q)).expect("valid"), quantile(&ascending, p.max(q)).expect("valid"));
        prop_assert!(ascending[0] <= a && a <= b && b <= ascending[ascending.len() - 1]);
        prop_assert_eq!(median(&ascending), median_of(&xs));
        if let Some(interval) = quantile_interval(&ascending, 0.5, 0.9) {
            prop_assert!(interval.low <= interval.high && interval.contains(median(&ascending).expect("valid")));
        }
    }

    #[test]
    fn spread_ignores_shifts_and_follows_scales(xs in sample(), shift in -1e3..1e3_f64, scale in 0.1..10.0_f64) {
        let moved: Vec<f64> = xs.iter().map(|x| x * scale + shift).collect();
        for f in [stddev, mad] {
            if let (Some(a), Some(b)) = (f(&xs), f(&moved)) {
                prop_assert!((b - a * scale).abs() <= 1e-7 * (1.0 + a * scale), "{} {}", a * scale, b);
            }
        }
        let (a, b) = (mean(&xs).expect("valid"), mean(&moved).expect("valid"));
        prop_assert!((b - a * scale - shift).abs() <= 1e-6);
    }

    #[test]
    fn tests_are_symmetric_and_probabilities(x in sample(), y in sample()) {
        let (ab, ba) = (mann_whitney(&x, &y).expect("valid"), mann_whitney(&y, &x).expect("valid"));
        prop_assert!((ab - ba).abs() < 1e-9 && (0.0..=1.0).contains(&ab));
        let (hl, lh) = (hodges_lehmann(&x, &y, 0.9).expect("valid"), hodges_lehmann(&y, &x, 0.9).expect("valid"));
        prop_assert!((hl.estimate + lh.estimate).abs() <= 1e-6);
        if let Some(interval) = hl.interval {
            prop_assert!(interval.contains(hl.estimate));
        }
    }

    #[test]
    fn holm_keeps_order_and_never_lowers(p in prop::collection::vec(0.0..=1.0_f64, 0..20)) {
        let adjusted = holm(&p);
        prop_assert_eq!(adjusted.len(), p.len());
        for i in 0..p.len() {
            prop_assert!(p[i] <= adjusted[i] && adjusted[i] <= 1.0);
            for j in 0..p.len() {
                prop_assert!(p[i] > p[j] || adjusted[i] <= adjusted[j]);
            }
        }
    }

    #[test]
    fn lines_are_recovered_exactly(a in -1e3..1e3_f64, b in -1e3..1e3_f64, n in 3_usize..40) {
        let x: Vec<f64> = (0..n).map(|i| i as f64).collect();
        let y: Vec<f64> = x.iter().map(|x| a + b * x).collect();
        let fit = line(&x, &y, Weighting::Relative(&vec![1.0; n])).expect("valid");
        prop_assert!((fit.coefficients[0] - a).abs() < 1e-7 && (fit.coefficients[1] - b).abs() < 1e-7);
    }

    #[test]
    fn histogram_bounds_every_quantile(values in prop::collection::vec(any::<u64>(), 1..200), shift in 0_u32..64, p in 0.0..=1.0_f64) {
        let mut ascending: Vec<u64> = values.iter().map(|v| v >> shift).collect();
        let mut whole = LogHistogram::new();
        for v in &ascending {
            whole.record(*v);
        }
        ascending.sort_unstable();
        let rank = ((p * ascending.len() as f64).ceil() as usize).clamp(1, ascending.len());
        let truth = ascending[rank - 1];
        let mut through = 0;
        let mut ranked = |b: &Bucket| {
            through += b.count;
            through >= rank as u64
        };
        let bucket = whole.iter().find(|b| ranked(b)).expect("not empty");
        prop_assert!(bucket.low <= truth && truth <= bucket.high);
        prop_assert!(bucket.high - bucket.low <= bucket.low / 32);
        prop_assert_eq!(whole.sum(), ascending.iter().map(|v| u128::from(*v)).sum::<u128>());
        prop_assert_eq!((whole.min(), whole.max()), (Some(ascending[0]), ascending.last().copied()));
        prop_assert_eq!(whole.iter().map(|b| b.count).sum::<u64>(), whole.count());
        for pair in whole.iter().collect::<Vec<_>>().windows(2) {
            prop_assert!(pair[0].high < pair[1].low);
        }
    }

    #[test]
    fn nothing_panics_or_gives_nan_on_wild_input(x in wild(), y in wild()) {
        let ones = vec![1.0; x.len()];
        let figures = [
            mean(&x), variance(&x), mad(&x), median_of(&x),
            median(&x), quantile(&x, 0.9),
            mann_whitney(&x, &y), hodges_lehmann(&x, &y, 0.9).map(|t| t.estimate),
        ];
        prop_assert!(all_finite(&figures), "{:?}", figures);
        let lists = [
            autocorrelation(&x, 5).unwrap_or_default(), clip_robust(&x, 3.0).unwrap_or_default(), holm(&x),
            sorted(&x).unwrap_or_default(),
            welch(&x, 10.0, x.len(), 0).map(|s| s.power).unwrap_or_default(),
            line(&x, &x, Weighting::Relative(&ones)).map(|f| f.coefficients.to_vec()).unwrap_or_default(),
        ];
        prop_assert!(lists.iter().flatten().all(|v| v.is_finite()), "{:?}", lists);
        let broken = breaks(&sorted(&x).unwrap_or_default(), &[Curve { y: &x, weights: &ones }], 3, 3).unwrap_or_default();
        prop_assert!(broken.iter().all(|at| (3..=x.len() - 3).contains(at)), "{:?}", broken);
        let moderate: Vec<f64> = x.iter().copied().filter(|v| v.abs() <= 1e3).collect();
        for comb in comb_search(&moderate, 0.5, 5.0).unwrap_or_default() {
            prop_assert!(comb.p > 0.0 && comb.p <= 1.0 && comb.fundamental_hz.is_finite() && comb.jitter_s.is_finite());
        }
    }
}
