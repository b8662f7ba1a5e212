//! Randomly drawn machines: how often the comb search is right, over many seeds.

use machmeter_stats::events::comb_search;
use machmeter_stats::random::Random;

#[test]
fn comb_search_is_right_in_nearly_all_random_logs() {
    let mut right = 0;
    let mut wrong = Vec::new();
    for seed in 0..120 {
        let mut random = Random::new(1000 + seed);
        let freq_hz = 2000_f64.powf(0.1 + 0.9 * random.unit());
        let span_s = (60.0 / freq_hz).max(3.0);
        let jitter = 0.03 * random.unit();
        let background_hz = freq_hz * 1.5 * random.unit();
        let phase = random.unit();
        let mut times: Vec<f64> = (0..(span_s * freq_hz) as usize)
            .filter_map(|k| {
                let t = (k as f64 + phase + jitter * random.normal()) / freq_hz;
                (random.unit() < 0.9).then_some(t)
            })
            .collect();
        let strays = (background_hz * span_s) as usize;
        times.extend((0..strays).map(|_| span_s * random.unit()));
        let found = comb_search(&times, 1.0, 2000.0).expect("valid log");
        let close = found.len() == 1 && (found[0].fundamental_hz / freq_hz - 1.0).abs() < 2e-3;
        if close {
            right += 1;
        } else {
            wrong.push((freq_hz, jitter, background_hz, found));
        }
    }
    assert!(right >= 117, "{right} of 120; wrong: {wrong:#?}");
}
