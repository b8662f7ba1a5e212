//! Planted combs are found, nothing else is, in logs like those of a noisy machine.

use machmeter_stats::StatsError;
use machmeter_stats::events::{Comb, FALSE_ALARM, comb_search};
use machmeter_stats::random::Random;

fn poisson(random: &mut Random, rate_hz: f64, span_s: f64) -> Vec<f64> {
    let mut times = Vec::new();
    let mut t = random.exponential() / rate_hz;
    while t < span_s {
        times.push(t);
        t += random.exponential() / rate_hz;
    }
    times
}

/// Events of a comb with normal jitter (share of the period), each kept with probability `recall`.
fn comb(random: &mut Random, freq_hz: f64, span_s: f64, jitter: f64, recall: f64) -> Vec<f64> {
    let phase = random.unit();
    (0..(span_s * freq_hz) as usize)
        .filter_map(|k| {
            let t = (k as f64 + phase + jitter * random.normal()) / freq_hz;
            (random.unit() < recall).then_some(t)
        })
        .collect()
}

/// Drops what falls into holes of 50 ms, one per second on average.
fn punch_holes(random: &mut Random, times: &mut Vec<f64>, span_s: f64) {
    for start in poisson(random, 1.0, span_s) {
        times.retain(|t| *t < start || *t > start + 0.05);
    }
}

fn assert_found(found: &[Comb], planted: &[f64], tolerance: f64, what: &str) {
    let mut hz: Vec<f64> = found.iter().map(|c| c.fundamental_hz).collect();
    hz.sort_by(f64::total_cmp);
    let close = |a: &f64, b: &f64| (a / b - 1.0).abs() < tolerance;
    assert!(
        hz.len() == planted.len() && hz.iter().zip(planted).all(|(a, b)| close(a, b)),
        "{what}: planted {planted:?}, found {hz:?}: {found:?}"
    );
}

#[test]
fn single_combs_over_three_decades() {
    let mut random = Random::new(1);
    for (freq_hz, rate_hz, span_s, jitter) in [
        (1.0, 3.0, 30.0, 0.002),
        (1.7, 20.0, 40.0, 0.0005),
        (10.0, 50.0, 10.0, 0.02),
        (47.3, 100.0, 5.0, 0.01),
        (100.0, 300.0, 5.0, 0.03),
        (250.02, 1000.0, 5.0, 0.0001),
        (333.3, 200.0, 5.0, 0.03),
        (1000.0, 1500.0, 4.0, 0.02),
        (1999.0, 1000.0, 3.0, 0.01),
    ] {
        let mut times = comb(&mut random, freq_hz, span_s, jitter, 0.9);
        times.extend(poisson(&mut random, rate_hz, span_s));
        punch_holes(&mut random, &mut times, span_s);
        random.shuffle(&mut times);
        let found = comb_search(&times, 0.5, 2000.0).expect("valid log");
        assert_found(&found, &[freq_hz], 5e-4, "single");
        assert!(found[0].p < 1e-6);
    }
}

#[test]
fn several_combs_at_once() {
    let mut random = Random::new(22);
    for planted in [
        vec![100.0, 250.0],
        vec![10.0, 15.0],
        vec![99.7, 100.0],
        vec![40.0, 250.0, 1000.0],
        vec![30.0, 71.0, 333.0],
    ] {
        let mut times = poisson(&mut random, 200.0, 10.0);
        for freq_hz in &planted {
            times.extend(comb(&mut random, *freq_hz, 10.0, 0.002, 0.9));
        }
        punch_holes(&mut random, &mut times, 10.0);
        let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
        assert_found(&found, &planted, 5e-4, "several");
    }
}

#[test]
fn duties_from_a_ten_thousandth_to_a_twentieth() {
    let mut random = Random::new(3);
    for duty in [1e-4, 1e-3, 1e-2, 5e-2] {
        let mut times: Vec<f64> = (0..800).map(|k| (f64::from(k) + duty * random.unit()) / 80.0).collect();
        times.extend(poisson(&mut random, 160.0, 10.0));
        let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
        assert_found(&found, &[80.0], 1e-4, "duty");
        // The standard deviation of an even law is 0.29 of its width.
        let jitter = found[0].jitter_s * 80.0;
        assert!(jitter <= 0.29 * (1.6 * duty + 2e-4), "{duty}: {found:?}");
    }
}

#[test]
fn clean_comb_is_precise_and_its_phase_predicts_events() {
    let times: Vec<f64> = (0..1000).map(|k| 5.0 + (f64::from(k) + 0.25) / 123.456).collect();
    let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
    assert_found(&found, &[123.456], 1e-6, "clean");
    let cycles = times[500] * found[0].fundamental_hz - found[0].phase;
    assert!((cycles - cycles.round()).abs() < 1e-3, "{cycles}");
    assert!(found[0].jitter_s < 1e-6, "{found:?}");
}

#[test]
fn two_events_per_cycle_are_one_comb() {
    let mut random = Random::new(4);
    let mut times = poisson(&mut random, 100.0, 10.0);
    for offset in [0.0, 0.3] {
        times.extend((0..500).map(|k| (f64::from(k) + offset + 0.001 * random.normal()) / 50.0));
    }
    let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
    assert_found(&found, &[50.0], 1e-4, "two teeth");
}

#[test]
fn poisson_logs_and_bursty_logs_raise_no_alarm() {
    let mut random = Random::new(5);
    let (mut plain, mut bursty) = (0, 0);
    for _ in 0..1000 {
        let rate_hz = 20.0 + 480.0 * random.unit();
        let mut times = poisson(&mut random, rate_hz, 2.0);
        if times.len() < 5 {
            continue;
        }
        plain += usize::from(!comb_search(&times, 2.0, 500.0).expect("valid log").is_empty());
        punch_holes(&mut random, &mut times, 2.0);
        let echoes: Vec<f64> = times.iter().filter(|_| random.unit() < 0.3).map(|t| t + 0.0005).collect();
        times.extend(echoes);
        bursty += usize::from(!comb_search(&times, 2.0, 500.0).expect("valid log").is_empty());
    }
    // FALSE_ALARM allows half an alarm in a thousand; four or more would come by once in 500 such tests.
    assert!(FALSE_ALARM <= 1e-3 && plain <= 3, "{plain} false alarms in Poisson logs");
    assert!(bursty <= 5, "{bursty} false alarms in logs with holes and echoes");
}

#[test]
fn a_handful_of_random_events_raises_no_alarm() {
    let mut random = Random::new(8);
    let mut alarms = Vec::new();
    for _ in 0..1500 {
        let n = 5 + random.below(60);
        let times: Vec<f64> = (0..n).map(|_| random.unit()).collect();
        let found = comb_search(&times, 1.0, 500.0).expect("valid log");
        if !found.is_empty() {
            alarms.push((n, found));
        }
    }
    assert!(alarms.len() <= 4, "{} of 1500: {alarms:?}", alarms.len());
}

#[test]
fn hundred_thousand_events() {
    let mut random = Random::new(6);
    let mut times = poisson(&mut random, 8000.0, 10.0);
    times.extend(comb(&mut random, 1000.0, 10.0, 0.02, 0.95));
    times.extend(comb(&mut random, 250.0, 10.0, 0.001, 0.95));
    let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
    assert_found(&found, &[250.0, 1000.0], 1e-4, "large");
}

#[test]
fn nearly_all_randomly_drawn_machines_are_seen_through() {
    let mut wrong = Vec::new();
    for seed in 0..120 {
        let mut random = Random::new(1000 + seed);
        let freq_hz = 2000_f64.powf(0.1 + 0.9 * random.unit());
        let span_s = (60.0 / freq_hz).max(3.0);
        let jitter = 0.03 * random.unit();
        let background_hz = freq_hz * 1.5 * random.unit();
        let mut times = comb(&mut random, freq_hz, span_s, jitter, 0.9);
        let strays = (background_hz * span_s) as usize;
        times.extend((0..strays).map(|_| span_s * random.unit()));
        let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
        if found.len() != 1 || (found[0].fundamental_hz / freq_hz - 1.0).abs() >= 2e-3 {
            wrong.push((freq_hz, jitter, background_hz, found));
        }
    }
    assert!(wrong.len() <= 3, "of 120: {wrong:#?}");
}

#[test]
fn bad_logs_are_refused_with_a_reason() {
    let why = |times: &[f64], low, high| comb_search(times, low, high).unwrap_err();
    assert!(matches!(why(&[], 1.0, 10.0), StatsError::TooFew { .. }));
    assert!(matches!(why(&[1.0; 9], 1.0, 10.0), StatsError::Parameter(..)));
    assert!(matches!(why(&[0.0, f64::NAN, 1.0, 2.0, 3.0], 1.0, 10.0), StatsError::NonFinite(..)));
    assert!(matches!(why(&[0.0, 1.0, 2.0, 3.0, 4.0], 10.0, 1.0), StatsError::Parameter(..)));
}
