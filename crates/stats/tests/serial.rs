//! Intervals hold what they promise: many streams of known truth of every kind, most of them correlated.

#![allow(clippy::print_stdout, reason = "the coverage found is worth reading: cargo test -- --show-output")]

use machmeter_stats::quantile;
use machmeter_stats::random::Random;
use machmeter_stats::rank::hodges_lehmann;
use machmeter_stats::serial::{mean_interval, quantile_interval, share_interval};

const STREAMS: usize = 1000;

/// What a stream is made of.
#[derive(Debug, Clone, Copy)]
enum Law {
    /// First-order autoregression with this correlation, normal, mean 10, standard deviation 1.
    Normal(f64),
    /// Exponential lateness (mean 1) whose neighbors are alike with this correlation (before the change of law).
    Exponential(f64),
    /// Two states: quiet (exponential, mean 1) and, for this share of the time and a mean of so many samples, bursts
    /// (exponential, mean 20).
    Bursts(f64, f64),
    /// Taken for this share of the time, in spells of so many values on average, and free between.
    Spells(f64, f64),
    /// Independent, logarithms normal with this standard deviation.
    Lognormal(f64),
    /// Equal parts of autoregressions whose memories double from 1 to an eighth of the stream: 1/f between.
    OneOverF,
    /// Independent, and a straight line that rises or falls by up to two standard deviations.
    Drift,
}

/// First-order autoregression with a standard deviation of 1.
fn alike(rho: f64, n: usize, random: &mut Random) -> Vec<f64> {
    let mut z = random.normal();
    let step = (1.0 - rho * rho).sqrt();
    (0..n)
        .map(|_| {
            z = rho * z + step * random.normal();
            z
        })
        .collect()
}

/// Values by whether they lie in a spell: spells take this share of the time and last for so many values on average.
fn spells(
    (share, length): (f64, f64),
    n: usize,
    random: &mut Random,
    value: impl Fn(bool, &mut Random) -> f64,
) -> Vec<f64> {
    let leave = 1.0 / length;
    let enter = leave * share / (1.0 - share);
    let mut on = random.unit() < share;
    (0..n)
        .map(|_| {
            let turn = random.unit();
            on = if on { turn >= leave } else { turn < enter };
            value(on, random)
        })
        .collect()
}

fn stream(law: Law, n: usize, random: &mut Random) -> Vec<f64> {
    let exponential = |z: f64| -machmeter_stats::distribution::normal_sf(z).expect("finite").ln();
    match law {
        Law::Normal(rho) => alike(rho, n, random).iter().map(|z| 10.0 + z).collect(),
        Law::Exponential(rho) => alike(rho, n, random).into_iter().map(exponential).collect(),
        Law::Bursts(share, length) => spells((share, length), n, random, |on, random| {
            random.exponential() * if on { 20.0 } else { 1.0 }
        }),
        Law::Spells(share, length) => {
            spells((share, length), n, random, |on, random| if on { 0.5 + 0.5 * random.unit() } else { 0.0 })
        }
        Law::Lognormal(sigma) => (0..n).map(|_| (sigma * random.normal()).exp()).collect(),
        Law::OneOverF => {
            let mut xs = vec![10.0; n];
            let mut memory = 1.0;
            while memory <= n as f64 / 8.0 {
                for (x, z) in xs.iter_mut().zip(alike((-1.0_f64 / memory).exp(), n, random)) {
                    *x += z;
                }
                memory *= 2.0;
            }
            xs
        }
        Law::Drift => {
            let rise = 4.0 * random.unit() - 2.0;
            let at = |k: usize| rise * ((k as f64 + 0.5) / n as f64 - 0.5);
            (0..n).map(|k| 10.0 + at(k) + random.normal()).collect()
        }
    }
}

/// `P(x > limit)` in truth, for the share of misses, and quantiles by bisection of it.
fn beyond(law: Law, x: f64) -> f64 {
    match law {
        Law::Normal(_) => machmeter_stats::distribution::normal_sf(x - 10.0).expect("finite"),
        Law::Exponential(_) => (-x).exp(),
        Law::Bursts(share, _) => (1.0 - share) * (-x).exp() + share * (-x / 20.0).exp(),
        _ => unreachable!("only means of {law:?} are looked at"),
    }
}

fn true_quantile(law: Law, q: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1000.0);
    for _ in 0..100 {
        let x = f64::midpoint(low, high);
        if beyond(law, x) > 1.0 - q { low = x } else { high = x }
    }
    low
}

fn true_mean(law: Law) -> f64 {
    match law {
        Law::Normal(_) | Law::OneOverF | Law::Drift => 10.0,
        Law::Exponential(_) => 1.0,
        Law::Bursts(share, _) => (1.0 - share) + share * 20.0,
        Law::Spells(share, _) => 0.75 * share,
        Law::Lognormal(sigma) => (sigma * sigma / 2.0).exp(),
    }
}

/// Given intervals and hits among them.
#[derive(Default, Clone, Copy)]
struct Seen {
    given: usize,
    hit: usize,
}

impl Seen {
    fn note(&mut self, hit: Option<bool>) {
        self.given += usize::from(hit.is_some());
        self.hit += usize::from(hit == Some(true));
    }
    fn coverage(self) -> f64 {
        self.hit as f64 / self.given.max(1) as f64
    }
}

/// Figures of a stream: mean, shares of misses of 5, 20 and 50 %, p50, p95.
const FIGURES: [&str; 6] = ["mean", "misses 5 %", "misses 20 %", "misses 50 %", "p50", "p95"];

fn coverage(law: Law, n: usize, seed: u64) -> [Seen; 6] {
    let mut random = Random::new(seed);
    let mut seen = [Seen::default(); 6];
    let misses = [0.05, 0.2, 0.5].map(|m| (m, true_quantile(law, 1.0 - m)));
    for _ in 0..STREAMS {
        let xs = stream(law, n, &mut random);
        let one = [n];
        seen[0].note(mean_interval(&xs, &one, 0.95).ok().map(|e| e.interval.contains(true_mean(law))));
        for (i, (miss, limit)) in misses.into_iter().enumerate() {
            let hits: Vec<bool> = xs.iter().map(|x| *x > limit).collect();
            let all_alike = hits.iter().all(|h| *h == hits[0]);
            // One-sided bounds of streams without a miss hold by themselves and are counted elsewhere.
            let e = share_interval(&hits, &xs, &one, 0.95).ok().filter(|_| !all_alike);
            seen[1 + i].note(e.map(|e| e.interval.contains(miss)));
        }
        for (i, q) in [0.5, 0.95].into_iter().enumerate() {
            let e = quantile_interval(&xs, q, &one, 0.95).ok();
            seen[4 + i].note(e.map(|e| e.interval.contains(true_quantile(law, q))));
        }
    }
    seen
}

/// Asserts coverage between 93 and 97 % (two standard errors beyond) where most streams have intervals, as `must` of six do.
fn assert_coverage(law: Law, n: usize, must: usize) {
    let seen = coverage(law, n, 5);
    let shown: Vec<String> = seen
        .iter()
        .zip(FIGURES)
        .map(|(s, what)| format!("{what} {:.1} % of {}", s.coverage() * 100.0, s.given))
        .collect();
    println!("{law:?} n {n}: {}", shown.join(", "));
    let mut mostly = 0;
    for (s, what) in seen.iter().zip(FIGURES).filter(|(s, _)| s.given > STREAMS * 3 / 4) {
        mostly += 1;
        let margin = 2.0 * (0.05 * 0.95 / s.given as f64).sqrt();
        let range = 0.93 - margin..=0.97 + margin;
        assert!(range.contains(&s.coverage()), "{law:?} n {n} {what}: coverage {}", s.coverage());
    }
    assert!(mostly >= must, "{law:?} n {n}: intervals for {mostly} figures only");
}

/// Streams of laws by their length, each with the number of figures that must have intervals.
fn assert_covered(laws: &[(Law, &[(usize, usize)])]) {
    for (law, lengths) in laws {
        lengths.iter().for_each(|(n, must)| assert_coverage(*law, *n, *must));
    }
}

#[test]
fn autoregressions_are_covered() {
    assert_covered(&[
        (Law::Normal(0.0), &[(34, 4), (60, 5), (100, 5), (1000, 6)]),
        (Law::Normal(0.4), &[(60, 4), (100, 4), (300, 5), (1000, 6)]),
        (Law::Normal(0.7), &[(300, 5), (1000, 6)]),
        (Law::Normal(0.9), &[(1000, 4), (3000, 6)]),
    ]);
}

#[test]
fn skewed_lateness_is_covered() {
    assert_covered(&[
        (Law::Exponential(0.0), &[(34, 4), (100, 5)]),
        (Law::Exponential(0.4), &[(100, 4), (300, 5), (1000, 6)]),
        (Law::Exponential(0.9), &[(1000, 4), (3000, 6)]),
    ]);
}

#[test]
fn bursts_are_covered_where_there_are_enough_of_them() {
    assert_covered(&[
        (Law::Bursts(0.2, 4.0), &[(1000, 6), (3000, 6)]),
        (Law::Bursts(0.05, 8.0), &[(10_000, 4)]),
    ]);
}

#[test]
fn what_too_few_samples_or_clusters_carry_is_refused() {
    // Some three, five and ten independent samples.
    for n in [34, 60, 100] {
        let seen = coverage(Law::Normal(0.9), n, 5);
        for (s, what) in seen.iter().zip(FIGURES) {
            assert!(s.given < STREAMS / 10, "{what} of {n}: given for {}", s.given);
        }
    }
    // One or two spells in a quiet stream say nothing of the next one.
    for (spells, length) in [(1, 20), (2, 4)] {
        let mut random = Random::new(8);
        let taken = |k: usize| (1..=spells).any(|s| (s * 300..s * 300 + length).contains(&k));
        let xs: Vec<f64> =
            (0..1000).map(|k| if taken(k) { 0.9 } else { 0.001 * random.exponential() }).collect();
        let refused = mean_interval(&xs, &[1000], 0.95).expect_err("too few spells").to_string();
        assert!(refused.contains("clusters"), "{refused}");
    }
    // Six bursts rule the mean.
    let mean = coverage(Law::Bursts(0.05, 8.0), 1000, 5)[0];
    println!("mean of some six bursts: {:.1} % of {}", mean.coverage() * 100.0, mean.given);
    assert!(mean.given > STREAMS / 4 && mean.coverage() > 0.88, "{}", mean.coverage());
}

#[test]
fn segments_that_differ_make_the_interval_honest() {
    // Each segment has a level of its own, as cells measured at different moments have.
    for (segments, length) in [(3, 300), (8, 100)] {
        let mut random = Random::new(9);
        let mut seen = Seen::default();
        for _ in 0..STREAMS {
            let mut xs = Vec::new();
            for _ in 0..segments {
                let level = 10.0 + random.normal();
                xs.extend((0..length).map(|_| level + random.normal()));
            }
            let e = mean_interval(&xs, &vec![length; segments], 0.95).ok();
            seen.note(e.map(|e| e.interval.contains(10.0)));
        }
        println!("{segments} segments: {:.3} of {}", seen.coverage(), seen.given);
        assert!(seen.given == STREAMS && (0.92..0.98).contains(&seen.coverage()), "{}", seen.coverage());
    }
}

#[test]
fn all_or_nothing_is_bounded_by_the_independent_samples() {
    let mut random = Random::new(3);
    let xs = stream(Law::Normal(0.9), 2000, &mut random);
    let e = share_interval(&[false; 2000], &xs, &[2000], 0.95).expect("enough");
    // About 105 of the 2000 are independent: the rule of three gives 2.8 %, not 0.15 %.
    assert_eq!((e.value, e.interval.low), (0.0, 0.0));
    assert!((0.015..0.06).contains(&e.interval.high), "{e:?}");
    let e = share_interval(&[true; 2000], &xs, &[2000], 0.95).expect("enough");
    assert_eq!((e.value, e.interval.high), (1.0, 1.0));
    assert!((0.94..0.985).contains(&e.interval.low), "{e:?}");
}

#[test]
fn what_cannot_be_known_is_refused_with_a_reason() {
    let mut random = Random::new(4);
    let xs: Vec<f64> = (0..300).map(|_| random.exponential()).collect();
    let text = |q| quantile_interval(&xs, q, &[300], 0.95).map_err(|e| e.to_string());
    assert!(text(0.95).is_ok());
    let refused = text(0.999).unwrap_err();
    assert!(refused.contains("independent samples) needs at least 6000"), "{refused}");
    assert!(mean_interval(&xs[..10], &[10], 0.95).is_err());
    assert!(mean_interval(&xs, &[200], 0.95).is_err(), "segments do not add up");
    assert!(mean_interval(&[1.0; 50], &[50], 0.95).is_err(), "a constant has no variance to learn from");
    assert!(mean_interval(&[f64::NAN; 50], &[50], 0.95).is_err());
    assert!(mean_interval(&xs, &[300], 1.0).is_err());
}

/// Laws that the method was not made on, as noise gives them, and for how many of a hundred streams of 1,000, 10,000 and 20,000
/// values there must be an interval of the mean.
const UNSEEN: [(Law, [usize; 3]); 10] = [
    (Law::Normal(0.5), [95, 95, 95]),
    (Law::Normal(0.9), [95, 95, 95]),
    (Law::Spells(0.05, 4.0), [75, 95, 95]),
    (Law::Spells(0.05, 40.0), [0, 75, 90]),
    (Law::Spells(0.2, 40.0), [40, 90, 95]),
    (Law::Spells(0.2, 400.0), [0, 60, 90]),
    (Law::Lognormal(1.0), [95, 95, 95]),
    (Law::Lognormal(2.0), [50, 80, 90]),
    (Law::OneOverF, [90, 90, 90]),
    (Law::Drift, [75, 90, 90]),
];

#[test]
fn means_of_streams_never_seen_are_covered() {
    const STREAMS: usize = 300;
    let mut random = Random::new(2_027);
    for (law, least) in UNSEEN {
        for (n, least) in [1_000, 10_000, 20_000].into_iter().zip(least) {
            let mut seen = Seen::default();
            for _ in 0..STREAMS {
                let e = mean_interval(&stream(law, n, &mut random), &[n], 0.95).ok();
                seen.note(e.map(|e| e.interval.contains(true_mean(law))));
            }
            println!("{law:?} n {n}: {:.1} % of {}", seen.coverage() * 100.0, seen.given);
            assert!(seen.given * 100 >= least * STREAMS, "{law:?} {n}: given for {}", seen.given);
            // 90 %, less two standard errors of 300 streams. What few of them pass by luck is no sample of the law.
            let enough = seen.given >= STREAMS / 10;
            assert!(!enough || seen.coverage() > 0.9 - 2.0 * 0.0173, "{law:?} {n}: {}", seen.coverage());
        }
    }
}

#[test]
fn rank_intervals_of_independent_values_cover() {
    const STREAMS: usize = 2000;
    let mut random = Random::new(16);
    let (mut median, mut shift) = (Seen::default(), Seen::default());
    for _ in 0..STREAMS {
        let xs: Vec<f64> = (0..101).map(|_| random.normal().exp()).collect();
        let ascending = quantile::sorted(&xs).expect("finite");
        median.note(quantile::quantile_interval(&ascending, 0.5, 0.95).map(|i| i.contains(1.0)));
        let ys: Vec<f64> = (0..40).map(|_| random.normal().powi(3) + 0.5).collect();
        let zs: Vec<f64> = (0..30).map(|_| random.normal().powi(3)).collect();
        let of_both = hodges_lehmann(&zs, &ys, 0.95).expect("valid").interval;
        shift.note(of_both.map(|i| i.contains(0.5)));
    }
    // Between 93 and 97 %, at four sigma.
    let margin = 4.0 * (0.95 * 0.05 / STREAMS as f64).sqrt();
    for seen in [median, shift] {
        let held = (0.93 - margin..=0.97 + margin).contains(&seen.coverage());
        assert!(seen.given == STREAMS && held, "{} of {}", seen.coverage(), seen.given);
    }
}
