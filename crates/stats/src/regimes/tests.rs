use super::*;
use crate::random::Random;

/// A trace that jumps between levels with stays of `stay` samples on average; disturbed samples with the probability
/// `disturbed` are up to five times too long. Times, values, truth.
fn trace(levels: &[f64], stay: f64, n: usize, disturbed: f64, seed: u64) -> (Vec<f64>, Vec<f64>, Vec<usize>) {
    let mut random = Random::new(seed);
    let (mut at, mut now) = (0.0, 0);
    let (mut times, mut values, mut truth) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..n {
        if random.unit() < 1.0 / stay {
            now = random.below(levels.len());
        }
        at += 1.0 + random.unit();
        let mut value = levels[now] * (1.0 + 0.04 * random.normal()).max(0.8);
        if random.unit() < disturbed {
            value *= 5f64.powf(random.unit());
        }
        times.push(at);
        values.push(value);
        truth.push(now);
    }
    (times, values, truth)
}

#[test]
fn planted_levels_are_found_and_99_of_100_samples_tagged_right() {
    let planted = [9.5, 26.0, 106.0];
    for seed in 0..20 {
        let (times, values, truth) = trace(&planted, 60.0, 3_000, 0.05, seed);
        let found = regimes(&times, &values, LEVEL_RATIO, 0.95).unwrap();
        assert_eq!(found.regimes.len(), 3, "seed {seed}: {:?}", found.regimes);
        for (k, (r, level)) in found.regimes.iter().zip(planted).enumerate() {
            assert!((r.center / level - 1.0).abs() < 0.03, "seed {seed}: {r:?}");
            let share = truth.iter().filter(|t| **t == k).count() as f64 / truth.len() as f64;
            assert!((r.share - share).abs() < 0.02, "seed {seed}: {} of {share}", r.share);
            // Some twenty stays carry a share: not always enough for an interval.
            assert!(r.share_interval.is_none_or(|i| i.contains(r.share)));
            assert!(r.interval.unwrap().contains(r.center));
        }
        let right = found.tags.iter().zip(&truth).filter(|(a, b)| a == b).count();
        assert!(right >= 2_970, "seed {seed}: {right} of 3000 tagged right");
    }
}

#[test]
fn a_rare_level_that_lasts_is_found_and_one_that_is_gone_is_not() {
    let (mut times, mut values, _) = trace(&[24.0], 60.0, 400, 0.03, 5);
    for v in &mut values[200..209] {
        *v = 105.0 + (*v - 24.0).clamp(-1.0, 1.0);
    }
    let found = regimes(&times, &values, LEVEL_RATIO, 0.95).unwrap();
    assert_eq!(found.regimes.len(), 2, "{:?}", found.regimes);
    assert!((found.regimes[1].share - 9.0 / 400.0).abs() < 0.01 && found.regimes[1].stays == 1);
    assert_eq!((found.main(), found.nearest(60.0)), (0, 1));
    times.truncate(200);
    values.truncate(200);
    assert_eq!(regimes(&times, &values, LEVEL_RATIO, 0.95).unwrap().regimes.len(), 1);
}

#[test]
fn one_noisy_level_is_one_level_whatever_its_noise() {
    for seed in 0..20 {
        let mut random = Random::new(100 + seed);
        for n in [12, 60, 400, 3_000] {
            let times: Vec<f64> = (0..n).map(f64::from).collect();
            let mut noisy = |spread: f64, tail: f64| -> Vec<f64> {
                (0..n)
                    .map(|_| {
                        let disturbed =
                            if random.unit() < tail { 10f64.powf(2.0 * random.unit()) } else { 1.0 };
                        24.0 * (spread * random.normal()).exp() * disturbed
                    })
                    .collect()
            };
            for (spread, tail) in [(0.02, 0.0), (0.02, 0.15), (0.1, 0.3), (0.3, 0.0), (0.3, 0.1)] {
                let values = noisy(spread, tail);
                let found = regimes(&times, &values, LEVEL_RATIO, 0.95).unwrap();
                let one = &found.regimes;
                assert_eq!(one.len(), 1, "seed {seed}, n {n}, spread {spread}, tail {tail}: {one:?}");
                assert!((one[0].share - 1.0).abs() < 1e-12 && found.tags.iter().all(|t| *t == 0));
            }
        }
    }
}

#[test]
fn levels_nearer_than_the_gap_are_one() {
    let (times, values, _) = trace(&[24.0, 30.0], 60.0, 2_000, 0.0, 1);
    assert_eq!(regimes(&times, &values, LEVEL_RATIO, 0.95).unwrap().regimes.len(), 1);
    let (times, values, _) = trace(&[24.0, 34.0], 60.0, 2_000, 0.0, 1);
    assert_eq!(regimes(&times, &values, 1.15, 0.95).unwrap().regimes.len(), 2);
}

#[test]
fn what_is_no_series_is_refused() {
    let of = |times: &[f64], values: &[f64], gap| regimes(times, values, gap, 0.95);
    assert!(of(&[], &[], LEVEL_RATIO).is_err());
    assert!(of(&[0.0, 1.0], &[1.0, 0.0], LEVEL_RATIO).is_err());
    assert!(of(&[1.0, 0.0], &[1.0, 1.0], LEVEL_RATIO).is_err());
    assert!(of(&[0.0], &[f64::NAN], LEVEL_RATIO).is_err());
    assert!(of(&[0.0], &[1.0], 1.0).is_err());
    let one = of(&[0.0], &[3.0], LEVEL_RATIO).unwrap();
    assert!((one.regimes[0].center - 3.0).abs() < 1e-12 && (one.regimes[0].share - 1.0).abs() < 1e-12);
}
