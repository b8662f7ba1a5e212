//! Coverage of the interval of a mean on streams that its method was not made on, as noise gives them: shares of time that
//! come in spells, bursts, slow waves and drifts.

#![allow(clippy::print_stdout, reason = "the table is worth reading: cargo test -- --show-output")]

use machmeter_stats::random::Random;
use machmeter_stats::serial::mean_interval;

const STREAMS: usize = 300;

#[derive(Debug, Clone, Copy)]
enum Law {
    /// First-order autoregression with this correlation.
    Alike(f64),
    /// Taken for this share of the time, in spells of so many values on average, and free between.
    Spells(f64, f64),
    /// Independent, logarithms normal with this standard deviation.
    Lognormal(f64),
    /// Equal parts of autoregressions whose memories double from 1 to an eighth of the stream: 1/f between.
    OneOverF,
    /// Independent, and a straight line that rises or falls by up to two standard deviations.
    Drift,
}

/// A stream and the mean that it was drawn with.
fn stream(law: Law, n: usize, random: &mut Random) -> (Vec<f64>, f64) {
    let alike = |rho: f64, random: &mut Random| -> Vec<f64> {
        let mut z = random.normal();
        let step = (1.0 - rho * rho).sqrt();
        (0..n)
            .map(|_| {
                z = rho * z + step * random.normal();
                z
            })
            .collect()
    };
    match law {
        Law::Alike(rho) => (alike(rho, random).iter().map(|z| 10.0 + z).collect(), 10.0),
        Law::Spells(share, length) => {
            let leave = 1.0 / length;
            let enter = leave * share / (1.0 - share);
            let mut on = random.unit() < share;
            let xs = (0..n).map(|_| {
                let turn = random.unit();
                on = if on { turn >= leave } else { turn < enter };
                if on { 0.5 + 0.5 * random.unit() } else { 0.0 }
            });
            (xs.collect(), 0.75 * share)
        }
        Law::Lognormal(sigma) => {
            ((0..n).map(|_| (sigma * random.normal()).exp()).collect(), (sigma * sigma / 2.0).exp())
        }
        Law::OneOverF => {
            let mut xs = vec![10.0; n];
            let mut memory = 1.0;
            while memory <= n as f64 / 8.0 {
                for (x, z) in xs.iter_mut().zip(alike((-1.0_f64 / memory).exp(), random)) {
                    *x += z;
                }
                memory *= 2.0;
            }
            (xs, 10.0)
        }
        Law::Drift => {
            let rise = 4.0 * random.unit() - 2.0;
            let at = |k: usize| rise * ((k as f64 + 0.5) / n as f64 - 0.5);
            ((0..n).map(|k| 10.0 + at(k) + random.normal()).collect(), 10.0)
        }
    }
}

/// What the intervals of many streams came to.
#[derive(Default)]
struct Held {
    given: usize,
    too_low: usize,
    too_high: usize,
    widths: f64,
}

impl Held {
    fn of(law: Law, n: usize, random: &mut Random) -> Self {
        let mut out = Self::default();
        for _ in 0..STREAMS {
            let (xs, truth) = stream(law, n, random);
            let Ok(e) = mean_interval(&xs, &[n], 0.95) else { continue };
            out.given += 1;
            out.too_low += usize::from(e.interval.high < truth);
            out.too_high += usize::from(e.interval.low > truth);
            out.widths += e.interval.width() / truth;
        }
        out
    }

    fn coverage(&self) -> f64 {
        1.0 - (self.too_low + self.too_high) as f64 / self.given.max(1) as f64
    }
}

/// Laws, and for how many of a hundred streams of 1,000, 10,000 and 20,000 values there must be an interval.
const LAWS: [(Law, [usize; 3]); 10] = [
    (Law::Alike(0.5), [95, 95, 95]),
    (Law::Alike(0.9), [95, 95, 95]),
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
    let mut random = Random::new(2_027);
    for (law, least) in LAWS {
        for (n, least) in [1_000, 10_000, 20_000].into_iter().zip(least) {
            let held = Held::of(law, n, &mut random);
            let percent = |of: usize| of as f64 * 100.0 / held.given.max(1) as f64;
            println!(
                "{:18} n {n:5}: given for {:5.1} %, held {:5.1} %, below truth {:4.1} %, above {:4.1} %, width {:.3} of truth",
                format!("{law:?}"),
                held.given as f64 * 100.0 / STREAMS as f64,
                held.coverage() * 100.0,
                percent(held.too_low),
                percent(held.too_high),
                held.widths / held.given.max(1) as f64
            );
            assert!(held.given * 100 >= least * STREAMS, "{law:?} {n}: given for {}", held.given);
            // 90 %, less two standard errors of 300 streams. What few of them pass by luck is no sample of the law.
            let enough = held.given >= STREAMS / 10;
            assert!(!enough || held.coverage() > 0.9 - 2.0 * 0.0173, "{law:?} {n}: {}", held.coverage());
        }
    }
}
