//! Planted steps and bends are recovered, and quiet series are left alone.

use machmeter_stats::StatsError;
use machmeter_stats::changepoint::{PeltOptions, SegmentedOptions, pelt_mean, segmented_regression};
use machmeter_stats::random::Random;

#[test]
fn planted_steps_are_found_where_they_are() {
    let mut random = Random::new(21);
    for steps in [vec![], vec![300], vec![100, 250, 600], vec![50, 55, 900]] {
        let starts: Vec<usize> = std::iter::once(0).chain(steps.iter().copied()).collect();
        let level = |i: usize| 6.0 * (starts.partition_point(|s| *s <= i) % 2) as f64;
        let xs: Vec<f64> = (0..1000).map(|i| level(i) + random.normal()).collect();
        let found = pelt_mean(&xs, &PeltOptions::default()).expect("valid");
        assert_eq!(found.len(), starts.len(), "{starts:?}: {found:?}");
        assert!(found.iter().zip(&starts).all(|(a, b)| a.abs_diff(*b) <= 1), "{starts:?}: {found:?}");
    }
}

#[test]
fn search_matches_an_exhaustive_one() {
    // Pruning must not lose the optimum: compare with the plain quadratic recursion.
    let mut random = Random::new(22);
    for case in 0..40 {
        let n = 40 + case;
        let min_len = 1 + case % 6;
        let xs: Vec<f64> =
            (0..n).map(|i| f64::from(u8::from((i / 9) % 2 == 0)) * 2.0 + random.normal()).collect();
        let opts = PeltOptions { penalty: Some(3.0), min_len, sigma: Some(1.0) };
        let cost = |a: usize, b: usize| {
            let mean = xs[a..b].iter().sum::<f64>() / (b - a) as f64;
            xs[a..b].iter().map(|x| (x - mean).powi(2)).sum::<f64>() + 3.0
        };
        let mut best = vec![f64::INFINITY; n + 1];
        best[0] = 0.0;
        for end in min_len..=n {
            for start in 0..=end - min_len {
                best[end] = best[end].min(best[start] + cost(start, end));
            }
        }
        let starts = pelt_mean(&xs, &opts).expect("valid");
        let total: f64 =
            (0..starts.len()).map(|i| cost(starts[i], starts.get(i + 1).copied().unwrap_or(n))).sum();
        assert!((total - best[n]).abs() < 1e-9, "case {case}: {total} instead of {}, {starts:?}", best[n]);
        assert!(starts.windows(2).all(|w| w[1] - w[0] >= min_len));
    }
}

#[test]
fn false_changes_are_rare_and_long_series_are_refined_to_the_sample() {
    let mut random = Random::new(23);
    let alarms = (0..200)
        .filter(|_| {
            let xs: Vec<f64> = (0..500).map(|_| random.normal()).collect();
            pelt_mean(&xs, &PeltOptions::default()).expect("valid").len() > 1
        })
        .count();
    assert!(alarms <= 14, "{alarms} of 200 quiet series");
    let xs: Vec<f64> = (0..200_000)
        .map(|i| f64::from(u8::from((70_001..133_337).contains(&i))) * 3.0 + random.normal())
        .collect();
    let found = pelt_mean(&xs, &PeltOptions::default()).expect("valid");
    assert!(
        found.len() == 3 && found[1].abs_diff(70_001) <= 5 && found[2].abs_diff(133_337) <= 5,
        "{found:?}"
    );
}

#[test]
fn constant_series_have_one_segment() {
    assert_eq!(pelt_mean(&[4.0; 100], &PeltOptions::default()), Ok(vec![0]));
    assert!(matches!(pelt_mean(&[], &PeltOptions::default()), Err(StatsError::TooFew { .. })));
    assert!(matches!(
        pelt_mean(&[1.0, f64::NAN], &PeltOptions::default()),
        Err(StatsError::NonFinite { .. })
    ));
}

#[test]
fn protocol_switches_over_many_octaves_are_found() {
    // Costs of messages: three protocols with their own overhead and cost per byte, as in LogGPS.
    let mut random = Random::new(24);
    let x: Vec<f64> = (0..61).map(|i| 2_f64.powf(f64::from(i) / 3.0)).collect();
    let truth = |s: f64| match s {
        s if s < 256.0 => 500.0 + 0.8 * s,
        s if s < 32_768.0 => 900.0 + 0.2 * s,
        s => 6000.0 + 0.1 * s,
    };
    let y: Vec<f64> = x.iter().map(|s| truth(*s) * (1.0 + 0.002 * random.normal())).collect();
    let weights: Vec<f64> = y.iter().map(|v| 1.0 / (0.002 * v).powi(2)).collect();
    let found = segmented_regression(&x, &y, Some(&weights), &SegmentedOptions::default()).expect("valid");
    assert_eq!(found.len(), 3, "{found:?}");
    for (segment, slope) in found.iter().zip([0.8, 0.2, 0.1]) {
        assert!((segment.slope / slope - 1.0).abs() < 0.05, "{found:?}");
    }
    let edges: Vec<f64> = found[1..].iter().map(|s| x[s.start]).collect();
    assert!((edges[0] / 256.0 - 1.0).abs() < 0.3 && (edges[1] / 32_768.0 - 1.0).abs() < 0.3, "{edges:?}");
}

#[test]
fn straight_lines_are_not_cut_and_exact_counts_are_kept() {
    let mut random = Random::new(25);
    let x: Vec<f64> = (0..60).map(f64::from).collect();
    let exact: Vec<f64> = x.iter().map(|x| 3.0 + 2.0 * x).collect();
    let found = segmented_regression(&x, &exact, None, &SegmentedOptions::default()).expect("valid");
    assert!(
        found.len() == 1 && (found[0].slope - 2.0).abs() < 1e-12 && (found[0].intercept - 3.0).abs() < 1e-9
    );
    let cut = (0..200)
        .filter(|_| {
            let y: Vec<f64> = x.iter().map(|x| 3.0 + 2.0 * x + random.normal()).collect();
            segmented_regression(&x, &y, None, &SegmentedOptions::default()).expect("valid").len() > 1
        })
        .count();
    assert!(cut <= 20, "{cut} of 200 straight lines cut");
    let opts = SegmentedOptions { max_breaks: 2, exact: true, min_points: 5 };
    let found = segmented_regression(&x, &exact, None, &opts).expect("valid");
    assert!(found.len() == 3 && found.iter().all(|s| s.end - s.start >= 5));
    assert!(segmented_regression(&x[..4], &exact[..4], None, &opts).is_err());
}
