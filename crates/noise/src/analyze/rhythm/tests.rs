//! Planted rhythms, and none.

use super::*;
use machmeter_stats::random::Random;

/// A planted source: `jitter` about a grid and phase that walks, in cycles; frequency that rises; share of events missing.
#[derive(Debug, Clone, Copy)]
struct Planted {
    hz: f64,
    jitter: f64,
    walk: f64,
    drift: f64,
    missing: f64,
}

const WALL_S: f64 = 10.0;
/// Planted sources of each kind.
const SOURCES: usize = 24;

fn events(p: Planted, random: &mut Random) -> Vec<f64> {
    let (mut out, mut phase) = (Vec::new(), random.unit());
    let cycles = (WALL_S * p.hz) as u64;
    for k in 0..cycles {
        phase += p.walk * random.normal();
        let at = (k as f64 + phase + p.jitter * random.normal()) / p.hz;
        // The middle of the run has the planted frequency.
        out.push(at * (1.0 - p.drift / 2.0 * (at / WALL_S - 1.0)));
    }
    out.retain(|t| (0.0..WALL_S).contains(t) && random.unit() >= p.missing);
    out.sort_by(f64::total_cmp);
    out
}

const RIGID: Planted = Planted { hz: 73.0, jitter: 0.005, walk: 0.0, drift: 0.0, missing: 0.0 };

fn strongest(mut found: Vec<Rhythm>) -> Option<Rhythm> {
    found.sort_by_key(|r| std::cmp::Reverse(r.times_s.len()));
    found.into_iter().next()
}

#[test]
fn a_source_that_jitters_walks_or_drifts_is_one_rhythm_with_the_truth_in_its_interval() {
    let mut random = Random::new(1);
    let kinds = [
        Planted { jitter: 0.005, ..RIGID },
        Planted { jitter: 0.03, hz: 701.0, ..RIGID },
        Planted { walk: 0.001, hz: 250.0, ..RIGID },
        Planted { walk: 0.01, hz: 100.0, ..RIGID },
        Planted { walk: 0.05, hz: 100.0, ..RIGID },
        Planted { drift: 1e-4, hz: 333.0, ..RIGID },
        Planted { drift: 1e-4, walk: 0.01, ..RIGID },
        Planted { jitter: 0.05, hz: 250.0, ..RIGID },
        Planted { jitter: 0.05, hz: 250.0, missing: 0.4, ..RIGID },
        Planted { jitter: 0.005, hz: 100.0, missing: 0.4, ..RIGID },
        Planted { walk: 0.01, hz: 701.0, missing: 0.4, ..RIGID },
        Planted { drift: 1e-4, walk: 0.001, hz: 250.0, missing: 0.4, ..RIGID },
    ];
    for kind in kinds {
        let (mut held, mut alone, mut near) = (0, 0, 0);
        for _ in 0..SOURCES {
            // The frequency of a drifting source is that of the middle of the run; events of no rhythm beside it.
            let mut times = events(kind, &mut random);
            times.extend((0..200).map(|_| random.unit() * WALL_S));
            times.sort_by(f64::total_cmp);
            let found = rhythms(&times, WALL_S);
            alone += usize::from(found.len() == 1);
            let Some(r) = strongest(found) else { continue };
            // A walking phase ends elsewhere: what the run had is its own frequency, which the interval is to hold too.
            held += usize::from(r.half_hz.is_some_and(|h| (r.hz - kind.hz).abs() <= h));
            let walked = kind.walk / (kind.hz * WALL_S).sqrt();
            near += usize::from((r.hz / kind.hz - 1.0).abs() < 5e-4 + 3.0 * walked);
        }
        println!(
            "{kind:?}: {held} of {SOURCES} intervals hold the truth, {alone} one rhythm, {near} near it"
        );
        assert!(near + 1 >= SOURCES, "{kind:?}: {near} of {SOURCES} within 0.05 % and what a phase walks");
        assert!(held * 100 >= SOURCES * 87, "{kind:?}: {held} of {SOURCES} intervals hold the truth");
        assert!(alone * 100 >= SOURCES * 90, "{kind:?}: {alone} of {SOURCES} are one rhythm");
    }
}

#[test]
fn events_without_a_rhythm_have_none() {
    let mut random = Random::new(2);
    let (mut plain, mut bursts) = (0, 0);
    for _ in 0..60 {
        let mut times: Vec<f64> = (0..1_000).map(|_| random.unit() * WALL_S).collect();
        times.sort_by(f64::total_cmp);
        plain += rhythms(&times, WALL_S).len();
        let mut times = Vec::new();
        for _ in 0..60 {
            let at = random.unit() * WALL_S;
            times.extend((0..20).map(|_| at + random.unit() * 1e-3));
        }
        times.retain(|t| *t < WALL_S);
        times.sort_by(f64::total_cmp);
        bursts += rhythms(&times, WALL_S).len();
    }
    assert!(plain <= 1 && bursts <= 1, "{plain} and {bursts} of 60");
}

#[test]
fn two_sources_are_two_rhythms_and_one_that_ends_is_none() {
    let mut random = Random::new(3);
    let mut both = events(Planted { hz: 97.0, ..RIGID }, &mut random);
    both.extend(events(Planted { hz: 101.0, ..RIGID }, &mut random));
    both.sort_by(f64::total_cmp);
    let mut found: Vec<f64> = rhythms(&both, WALL_S).iter().map(|r| r.hz).collect();
    found.sort_by(f64::total_cmp);
    assert!(
        found.len() == 2 && (found[0] - 97.0).abs() < 0.01 && (found[1] - 101.0).abs() < 0.01,
        "{found:?}"
    );
    let mut ends = events(RIGID, &mut random);
    ends.retain(|t| *t < 4.0);
    ends.extend((0..300).map(|_| 4.0 + random.unit() * 6.0));
    ends.sort_by(f64::total_cmp);
    assert!(rhythms(&ends, WALL_S).is_empty());
}

#[test]
fn who_runs_at_some_of_the_ticks_has_one_rhythm() {
    // Every other cycle for a while, then nearly all: 125 and 250 Hz in one source.
    let mut random = Random::new(5);
    for _ in 0..20 {
        let mut times = events(Planted { hz: 250.0, jitter: 0.002, ..RIGID }, &mut random);
        let of_cycle = |t: &f64| (t * 250.0).round() as u64;
        times.retain(|t| if (t * 0.7).fract() < 0.5 { of_cycle(t) % 2 == 0 } else { random.unit() < 0.7 });
        let found = rhythms(&times, WALL_S);
        let hz: Vec<f64> = found.iter().map(|r| r.hz).collect();
        assert!(hz.len() == 1 && (hz[0] / 250.0 - 1.0).abs() < 5e-5, "{hz:?}");
    }
}

#[test]
fn a_rhythm_over_two_classes_is_told_once() {
    let one = |class: &str, hz: f64, events: usize| Periodic {
        cpu: 0,
        class: class.to_owned(),
        source: UNKNOWN.to_owned(),
        hz,
        half_hz: Some(0.03),
        events,
        p: 1e-9,
        median_ns: 1e4,
        at_tick: false,
    };
    let found = vec![one("1-10 us", 100.12, 130), one("10-100 us", 100.0, 140), one("1-10 us", 250.0, 80)];
    let hz = |found: &[Periodic]| found.iter().map(|f| f.hz).collect::<Vec<_>>();
    assert_eq!(hz(&one_per_source(found.clone())), [100.0, 100.12, 250.0]);
    let found: Vec<Periodic> = found.into_iter().map(|f| Periodic { half_hz: Some(0.1), ..f }).collect();
    assert_eq!(hz(&one_per_source(found)), [100.0, 250.0]);
}

#[test]
fn a_rhythm_in_bursts_is_followed_over_the_holes() {
    let mut random = Random::new(4);
    let mut times = events(Planted { hz: 211.0, ..RIGID }, &mut random);
    times.retain(|t| t.fract() < 0.25);
    let r = strongest(rhythms(&times, WALL_S)).unwrap();
    assert!((r.hz / 211.0 - 1.0).abs() < 5e-5 && r.half_hz.unwrap() < 0.1, "{r:?}");
}

#[test]
fn a_thread_that_the_tick_lets_in_has_no_rhythm_of_its_own() {
    let tick = Rhythm {
        hz: 250.0,
        half_hz: None,
        times_s: (0..2_500).map(|k| f64::from(k) / 250.0).collect(),
        p: 0.0,
    };
    let let_in: Vec<f64> = tick.times_s.iter().step_by(3).map(|t| t + 9e-6).collect();
    assert!(follows(&let_in, &tick, 0.0));
    let series = |kind| Series { kind: Some(kind), times_s: vec![], durations_ns: vec![3e5], until_s: None };
    let at = |late_s: f64| Rhythm {
        hz: 73.0,
        half_hz: None,
        times_s: (0..730).map(|k| f64::from(k) / 73.0 + late_s).collect(),
        p: 0.0,
    };
    let (timer, first, then) = (at(0.0), at(5e-6), at(4e-4));
    let thread = Leader::of(&series(SourceKind::Thread), &first, None);
    assert!(thread.brings(&Leader::of(&series(SourceKind::Tick), &timer, None)), "its timer");
    assert!(thread.brings(&Leader::of(&series(SourceKind::Thread), &then, None)), "who gets the rest");
    assert!(!Leader::of(&series(SourceKind::Thread), &then, None).brings(&thread));
    let own: Vec<f64> = (0..730).map(|k| f64::from(k) / 73.0).collect();
    assert!(!follows(&own, &tick, 0.0));
}
