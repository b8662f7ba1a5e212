//! Planted bends are found, and straight lines are left alone.

use machmeter_stats::random::Random;
use machmeter_stats::segmented::{SegmentedOptions, segmented_regression};

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
    let opts = SegmentedOptions { max_breaks: 2, exact: true, min_points: 5, known_errors: false };
    let found = segmented_regression(&x, &exact, None, &opts).expect("valid");
    assert!(found.len() == 3 && found.iter().all(|s| s.end - s.start >= 5));
    assert!(segmented_regression(&x[..4], &exact[..4], None, &opts).is_err());
}

#[test]
fn known_errors_leave_straight_lines_whole_and_see_what_is_beyond_them() {
    let mut random = Random::new(26);
    let x: Vec<f64> = (0..60).map(f64::from).collect();
    let opts = SegmentedOptions { known_errors: true, ..SegmentedOptions::default() };
    let mut count = |bend: f64| {
        (0..200)
            .filter(|_| {
                let y: Vec<f64> =
                    x.iter().map(|x| 3.0 + bend * (x - 30.0).max(0.0) + 2.0 * random.normal()).collect();
                segmented_regression(&x, &y, Some(&[0.25; 60]), &opts).expect("valid").len() > 1
            })
            .count()
    };
    let (straight, bent) = (count(0.0), count(0.4));
    assert!(straight <= 10 && bent >= 190, "{straight} of 200 straight lines cut, {bent} of 200 bends seen");
}
