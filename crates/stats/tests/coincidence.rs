//! Coincidences and spectra with planted truth.

use machmeter_stats::coincidence::{Event, coincidence};
use machmeter_stats::quantile::median_of;
use machmeter_stats::random::Random;
use machmeter_stats::spectrum::{clip_robust, welch};

fn log(random: &mut Random, n: usize, length_s: f64) -> Vec<Event> {
    (0..n)
        .map(|_| {
            let start_s = random.unit() * (10.0 - length_s);
            Event { start_s, end_s: start_s + length_s }
        })
        .collect()
}

#[test]
fn planted_coincidences_are_seen_and_independence_is_not_accused() {
    let mut random = Random::new(33);
    let mut accused = 0;
    for seed in 0..100 {
        let (a, b) = (log(&mut random, 300, 1e-4), log(&mut random, 400, 2e-4));
        accused += usize::from(coincidence(&a, &b, 10.0, 199, seed).expect("valid").p <= 0.05);
    }
    assert!(accused <= 14, "{accused} of 100 unrelated pairs");
    let a = log(&mut random, 300, 1e-4);
    let mut b = log(&mut random, 350, 2e-4);
    b.extend(a[..30].iter().map(|e| Event { start_s: e.start_s + 5e-6, end_s: e.end_s + 5e-6 }));
    let found = coincidence(&a, &b, 10.0, 199, 7).expect("valid");
    let expected = 300.0 * 380.0 * 3e-4 / 10.0;
    assert!((found.expected / expected - 1.0).abs() < 0.3, "{found:?}, expected {expected}");
    assert!(found.observed >= 30 && found.p <= 0.005 && found.ratio.is_some_and(|r| r > 5.0), "{found:?}");
    assert!(found.overlap_s > 30.0 * 0.9e-4, "{found:?}");
    assert!(coincidence(&a, &[], 10.0, 199, 7).is_none() && coincidence(&a, &b, 1.0, 199, 7).is_none());
}

#[test]
fn line_in_clipped_counts_is_found_at_its_frequency() {
    let mut random = Random::new(34);
    let rate_hz = 1240.0;
    let mut xs: Vec<f64> = (0..3720)
        .map(|i| {
            100.0 + 2.0 * (std::f64::consts::TAU * 100.3 * f64::from(i) / rate_hz).sin() + random.normal()
        })
        .collect();
    for hole in [300, 1500, 2900] {
        xs[hole..hole + 40].fill(0.0);
    }
    let clipped = clip_robust(&xs, 8.0).expect("valid");
    let spectrum = welch(&clipped, rate_hz, clipped.len(), 0).expect("valid");
    let bins = || spectrum.freq_hz.iter().zip(&spectrum.power).filter(|(hz, _)| **hz > 20.0);
    let (hz, highest) = bins().max_by(|a, b| a.1.total_cmp(b.1)).expect("bins");
    let floor = median_of(&spectrum.power).expect("bins");
    assert!((hz - 100.3).abs() < 0.5 && *highest > 100.0 * floor, "{hz} Hz: {highest}, {floor}");
    let white: Vec<f64> = (0..4096).map(|_| random.normal()).collect();
    let spectrum = welch(&white, 1000.0, 512, 256).expect("valid");
    let total: f64 = spectrum.power.iter().sum::<f64>() * 1000.0 / 512.0;
    assert!((total - 1.0).abs() < 0.1, "power {total} of unit variance");
}
