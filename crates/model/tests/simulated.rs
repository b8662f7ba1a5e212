//! Planted links are found again: breaks to the byte, parameters within per cents.

use std::collections::BTreeMap;

use machmeter_model::loggps::{Begins, Latency, Measured, Pace, SizePoint, TRAIN, Table, fit, grid, propose};
use machmeter_stats::random::Random;

const LARGEST: u64 = 1 << 20;
/// Relative error of a measured time.
const NOISE: f64 = 0.003;

#[derive(Debug, Clone, Copy)]
struct Protocol {
    first: u64,
    gap: f64,
    per_byte: f64,
    send: f64,
    recv: f64,
    latency: f64,
}

impl Protocol {
    fn link(&self, s: u64) -> f64 {
        self.gap + self.per_byte * (s - 1) as f64
    }

    /// Time per message of a train.
    fn each(&self, s: u64) -> f64 {
        self.link(s).max(self.send).max(self.recv)
    }

    fn one_way(&self, s: u64) -> f64 {
        self.send + self.latency + self.recv + self.per_byte * (s - 1) as f64
    }
}

/// One to four protocols with jumps of at least 8 %; overheads below and above the gap.
fn truth(random: &mut Random) -> Vec<Protocol> {
    let count = 1 + random.below(4);
    loop {
        let mut firsts: Vec<u64> =
            (1..count).map(|_| 2_f64.powf(4.0 + 13.0 * random.unit()) as u64).collect();
        firsts.sort_unstable();
        let is_apart = std::iter::once(&1).chain(&firsts).zip(&firsts).all(|(a, b)| *b >= 6 * *a);
        let ends_early = firsts.last().is_none_or(|f| f * 6 < LARGEST);
        if !(is_apart && ends_early) {
            continue;
        }
        let mut all: Vec<Protocol> = Vec::new();
        for first in std::iter::once(1).chain(firsts) {
            let gap = 200.0 * 2_f64.powf(4.0 * random.unit());
            let per_byte = 0.02 * 2_f64.powf(5.0 * random.unit());
            let below = |random: &mut Random| gap * (0.2 + 0.6 * random.unit());
            let send = if random.below(3) == 0 { gap * (1.2 + random.unit()) } else { below(random) };
            let recv = below(random);
            let latency = gap * (0.5 + 3.0 * random.unit());
            all.push(Protocol { first, gap, per_byte, send, recv, latency });
        }
        let jumps = |w: &[Protocol]| (w[1].each(w[1].first) / w[0].each(w[1].first) - 1.0).abs() >= 0.08;
        if all.windows(2).all(jumps) {
            return all;
        }
    }
}

fn of(protocols: &[Protocol], s: u64) -> &Protocol {
    protocols.iter().rev().find(|p| p.first <= s).expect("the first begins at 1")
}

fn measured(random: &mut Random, ns: f64) -> Measured {
    Measured { ns: ns * (1.0 + NOISE * random.normal()), sigma_ns: ns * NOISE }
}

fn point(protocols: &[Protocol], s: u64, random: &mut Random) -> SizePoint {
    let p = of(protocols, s);
    let one = 2.0 * p.one_way(s);
    let train = one + f64::from(TRAIN - 1) * p.each(s);
    let mut out = SizePoint::of_trains(s, measured(random, one), measured(random, train));
    out.overhead_send = Some(measured(random, p.send));
    out.overhead_recv = Some(measured(random, p.recv));
    out
}

/// Points of all the sizes that are proposed, and their table.
fn explored(protocols: &[Protocol], random: &mut Random) -> (usize, Table) {
    let mut points: Vec<SizePoint> =
        grid(1, LARGEST, 30).into_iter().map(|s| point(protocols, s, random)).collect();
    for round in 0.. {
        let wanted = propose(&points, round);
        assert!(round < 60, "no end: {wanted:?}");
        if wanted.is_empty() && round > 2 {
            break;
        }
        points.extend(wanted.into_iter().map(|s| point(protocols, s, random)));
    }
    (points.len(), fit(&points).expect("a table"))
}

#[test]
fn planted_links_are_found_again() {
    let seeds = 300;
    let (mut exact, mut false_breaks, mut sizes, mut covered, mut intervals) = (0, 0, 0, 0, 0);
    let mut errors: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
    for seed in 0..seeds {
        let mut random = Random::new(seed);
        let planted = truth(&mut random);
        let (points, table) = explored(&planted, &mut random);
        sizes += points;
        let breaks: Vec<u64> = planted.iter().skip(1).map(|p| p.first).collect();
        let found: Vec<u64> = table.jumps().collect();
        exact += usize::from(found == breaks);
        false_breaks += usize::from(found.iter().any(|f| !breaks.contains(f)));
        if found != breaks {
            continue;
        }
        for (i, p) in planted.iter().enumerate() {
            let last = breaks.get(i).copied().unwrap_or(LARGEST + 1) - 1;
            let s = table.segment(last);
            let mut tell = |what, found: Measured, truth: f64| {
                errors.entry(what).or_default().push((found.ns / truth - 1.0).abs());
                covered += usize::from((found.ns - truth).abs() <= 1.96 * found.sigma_ns);
                intervals += 1;
            };
            // Where a third of the time per message is of bytes, and the link sets the pace of half the sizes.
            let is_link = p.link(last) > 1.5 * p.send.max(p.recv).max(p.gap);
            if is_link && s.pace == Pace::Link {
                tell("G", s.gap.per_byte, p.per_byte);
                if p.gap > 0.2 * p.link(s.first_bytes) && s.begins != Begins::Kink {
                    tell("g", s.gap.at_first, p.gap);
                }
            }
            tell("o_s", s.overhead_send.expect("measured").at_first, p.send);
            tell("o_r", s.overhead_recv.expect("measured").at_first, p.recv);
            if let Latency::Known(l) = s.latency
                && p.one_way(p.first) < 8.0 * p.latency
            {
                tell("L", l, p.latency);
            }
            assert!(s.gap.at_first.ns >= 0.0 && s.gap.per_byte.ns >= 0.0);
        }
    }
    println!(
        "{exact} exact, {false_breaks} false of {seeds}; {} sizes; {covered} of {intervals} held",
        sizes / seeds as usize
    );
    for (what, e) in &mut errors {
        e.sort_by(f64::total_cmp);
        println!("{what}: n {} median {:.4} p90 {:.4}", e.len(), e[e.len() / 2], e[e.len() * 9 / 10]);
    }
    assert!(exact * 100 >= 95 * seeds as usize, "{exact} of {seeds} sets of breaks");
    assert!(false_breaks * 100 <= 3 * seeds as usize, "{false_breaks} of {seeds} with a false break");
    for (what, most) in [("G", 0.01), ("g", 0.02), ("o_s", 0.02), ("o_r", 0.02), ("L", 0.02)] {
        let e = &errors[what];
        assert!(e.len() > 100 && e[e.len() / 2] <= most, "{what}: {} of {}", e[e.len() / 2], e.len());
    }
    assert!(covered * 100 >= 90 * intervals, "{covered} of {intervals} intervals hold");
}
