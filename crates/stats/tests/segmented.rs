//! Planted bends are found, and straight lines are left alone.

use machmeter_stats::random::Random;
use machmeter_stats::segmented::{Curve, breaks};

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
    let found = breaks(&x, &[Curve { y: &y, weights: &weights }], 3, 3).expect("valid");
    let edges: Vec<f64> = found.iter().map(|at| x[*at]).collect();
    assert_eq!(edges.len(), 2, "{edges:?}");
    assert!((edges[0] / 256.0 - 1.0).abs() < 0.3 && (edges[1] / 32_768.0 - 1.0).abs() < 0.3, "{edges:?}");
    assert!(breaks(&x[..2], &[Curve { y: &y[..2], weights: &weights[..2] }], 3, 3).is_err());
    assert!(breaks(&x, &[], 3, 3).is_err());
}

#[test]
fn straight_lines_are_left_whole_and_bends_beyond_the_errors_are_seen() {
    let mut random = Random::new(26);
    let x: Vec<f64> = (0..60).map(f64::from).collect();
    let mut count = |bend: f64| {
        (0..200)
            .filter(|_| {
                let y: Vec<f64> =
                    x.iter().map(|x| 3.0 + bend * (x - 30.0).max(0.0) + 2.0 * random.normal()).collect();
                !breaks(&x, &[Curve { y: &y, weights: &[0.25; 60] }], 3, 3).expect("valid").is_empty()
            })
            .count()
    };
    let (straight, bent) = (count(0.0), count(0.4));
    assert!(straight <= 10 && bent >= 190, "{straight} of 200 straight lines cut, {bent} of 200 bends seen");
}

#[test]
fn curves_that_break_together_show_it_more_surely() {
    // Six curves of 24 points, each of its own height and slope, jump by three of their errors at the twelfth.
    let mut random = Random::new(28);
    let x: Vec<f64> = (0..24).map(f64::from).collect();
    let (mut together, mut alone, mut none) = (0, 0, 0);
    for _ in 0..100 {
        let mut curves = |jump: f64| -> Vec<Vec<f64>> {
            let curve = |k: i32, random: &mut Random| {
                let y = |x: &f64| {
                    let behind = if *x >= 12.0 { jump } else { 0.0 };
                    f64::from(k) * (10.0 + x) + behind + random.normal()
                };
                x.iter().map(y).collect()
            };
            (1..=6).map(|k| curve(k, &mut random)).collect()
        };
        // The last point of one curve was never measured.
        let mut weights = vec![vec![1.0; 24]; 6];
        weights[5][23] = 0.0;
        let found = |y: &[Vec<f64>]| {
            let all: Vec<Curve> = y.iter().zip(&weights).map(|(y, weights)| Curve { y, weights }).collect();
            breaks(&x, &all, 3, 3).expect("valid")
        };
        let mut jumping = curves(3.0);
        jumping[5][23] = 1e6;
        together += usize::from(found(&jumping) == [12]);
        alone += usize::from(found(&jumping[..1]) == [12]);
        none += usize::from(!found(&curves(0.0)).is_empty());
    }
    assert!(together >= 90 && alone <= 75 && none <= 5, "{together} together, {alone} alone, {none} false");
}
