//! Intervals hold what they promise on streams with known truth.

#![allow(clippy::print_stdout, reason = "the coverage found is worth reading: cargo test -- --show-output")]

use machmeter_stats::bootstrap::{
    BootstrapOptions, block_bootstrap, effective_sample_size, ratio_block_bootstrap,
};
use machmeter_stats::quantile::{quantile_interval, sorted};
use machmeter_stats::random::Random;
use machmeter_stats::rank::hodges_lehmann;
use machmeter_stats::spread::mean;

/// Share of hits among `streams` that is compatible with coverage between 93 and 97 %, at four sigma.
fn assert_coverage(hits: usize, streams: usize, what: &str) {
    let share = hits as f64 / streams as f64;
    let margin = 4.0 * (0.95 * 0.05 / streams as f64).sqrt();
    assert!((0.93 - margin..=0.97 + margin).contains(&share), "{what}: coverage {share} of {streams}");
    println!("{what}: coverage {share:.3} of {streams} streams");
}

/// A first-order autoregressive stream with mean zero.
fn autoregressive(random: &mut Random, n: usize, phi: f64) -> Vec<f64> {
    let mut x = random.normal() / (1.0 - phi * phi).sqrt();
    (0..n)
        .map(|_| {
            x = phi * x + random.normal();
            x
        })
        .collect()
}

#[test]
fn block_bootstrap_of_the_mean_covers_on_correlated_streams() {
    for (phi, n) in [(0.0, 400), (0.5, 800), (0.8, 2000), (-0.4, 400)] {
        let mut random = Random::new(11);
        let streams = 500;
        let hits = (0..streams)
            .filter(|seed| {
                let xs = autoregressive(&mut random, n, phi);
                let opts = BootstrapOptions { resamples: 200, seed: *seed, ..BootstrapOptions::default() };
                let plain = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
                block_bootstrap(&xs, plain, &opts).expect("valid").contains(0.0)
            })
            .count();
        assert_coverage(hits, streams as usize, &format!("phi {phi}"));
    }
}

#[test]
fn naive_interval_would_not_cover() {
    // Shows that the streams above are hard enough to tell a wrong method.
    let mut random = Random::new(12);
    let hits = (0..200)
        .filter(|seed| {
            let xs = autoregressive(&mut random, 800, 0.5);
            let opts =
                BootstrapOptions { resamples: 200, seed: *seed, block_len: Some(1), ..Default::default() };
            block_bootstrap(&xs, |x| mean(x).unwrap_or(0.0), &opts).expect("valid").contains(0.0)
        })
        .count();
    assert!(hits < 170, "{hits} of 200");
}

#[test]
fn ratio_bootstrap_covers_a_stolen_fraction() {
    let mut random = Random::new(13);
    let streams = 500;
    let hits = (0..streams)
        .filter(|seed| {
            // Windows of unequal length; stolen time comes in clusters and is proportional to the length on average.
            let level = autoregressive(&mut random, 3000, 0.6);
            let den: Vec<f64> = level.iter().map(|_| 1.0 + 0.2 * random.unit()).collect();
            let num: Vec<f64> = level.iter().zip(&den).map(|(l, d)| d * 0.05 * (1.0 + 0.3 * l)).collect();
            let opts = BootstrapOptions { resamples: 300, seed: *seed, ..Default::default() };
            ratio_block_bootstrap(&num, &den, &opts).expect("valid").contains(0.05)
        })
        .count();
    assert_coverage(hits, streams as usize, "ratio");
}

#[test]
fn ratio_bootstrap_of_a_million_windows() {
    let mut random = Random::new(14);
    let num: Vec<f64> = (0..1_000_000).map(|_| random.exponential()).collect();
    let den = vec![20.0; num.len()];
    let interval = ratio_block_bootstrap(&num, &den, &BootstrapOptions::default()).expect("valid");
    assert!(interval.contains(0.05), "{interval:?}");
    let expected = 2.0 * 1.96 * 0.05 / 1000.0;
    assert!((0.7..1.4).contains(&(interval.width() / expected)), "{interval:?}, expected width {expected}");
}

#[test]
fn effective_size_falls_with_correlation() {
    let mut random = Random::new(15);
    for phi in [0.0, 0.5, 0.9] {
        let xs = autoregressive(&mut random, 20_000, phi);
        let size = effective_sample_size(&xs).expect("valid");
        let truth = 20_000.0 * (1.0 - phi) / (1.0 + phi);
        assert!((0.75..1.33).contains(&(size / truth)), "phi {phi}: {size} instead of {truth}");
    }
}

#[test]
fn rank_intervals_cover() {
    let mut random = Random::new(16);
    let streams = 2000;
    let mut hits = [0; 2];
    for _ in 0..streams {
        let xs: Vec<f64> = (0..101).map(|_| random.normal().exp()).collect();
        let ascending = sorted(&xs).expect("finite");
        let median = quantile_interval(&ascending, 0.5, 0.95).expect("enough");
        hits[0] += usize::from(median.contains(1.0));
        let ys: Vec<f64> = (0..40).map(|_| random.normal().powi(3) + 0.5).collect();
        let zs: Vec<f64> = (0..30).map(|_| random.normal().powi(3)).collect();
        let shift = hodges_lehmann(&zs, &ys, 0.95).expect("valid").interval.expect("enough");
        hits[1] += usize::from(shift.contains(0.5));
    }
    assert_coverage(hits[0], streams, "median");
    assert_coverage(hits[1], streams, "Hodges-Lehmann");
}
