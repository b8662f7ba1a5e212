//! Intervals hold what they promise on streams with known truth.

#![allow(clippy::print_stdout, reason = "the coverage found is worth reading: cargo test -- --show-output")]

use machmeter_stats::quantile::{quantile_interval, sorted};
use machmeter_stats::random::Random;
use machmeter_stats::rank::hodges_lehmann;

/// Share of hits among `streams` that is compatible with coverage between 93 and 97 %, at four sigma.
fn assert_coverage(hits: usize, streams: usize, what: &str) {
    let share = hits as f64 / streams as f64;
    let margin = 4.0 * (0.95 * 0.05 / streams as f64).sqrt();
    assert!((0.93 - margin..=0.97 + margin).contains(&share), "{what}: coverage {share} of {streams}");
    println!("{what}: coverage {share:.3} of {streams} streams");
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
