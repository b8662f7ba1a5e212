//! What a list could lose: many gaps, the meter's own notes, micro-stalls, stops, short runs, tables.

use machmeter_data::Metric;
use machmeter_data::quantity::Unit;
use machmeter_data::summary::Fit;
use machmeter_stats::random::Random;

use super::*;
use crate::attribute::activity_log::{Sight, Source, SourceKind, Span};
use crate::attribute::stolen::Stolen;
use crate::samples::{SpeedPhase, SpeedSample, ThreadFacts};
use crate::tables::{from_tables, to_tables};
use machmeter_loops::noise::measure::Raise;

#[test]
fn a_list_that_fills_takes_longer_detours_and_sums_stay_whole() {
    let mut plan = Planted::new(100_000, 2_000);
    plan.capacity = 64;
    plan.stall_ticks = 500;
    // Detours of 600 to 900, of 2,000, and some of 50,000: those of 50,000 must all be listed.
    plan.stolen = (0..1_900)
        .map(|i| {
            let length = if i % 100 == 7 {
                50_000
            } else if i % 5 == 0 {
                2_000
            } else {
                600 + i % 300
            };
            (30_000 + i * 100_003, length)
        })
        .collect();
    let truth = plan.stolen.iter().map(|s| s.1 as f64).sum::<f64>() / 2e8;
    let samples = plan.samples();
    let cpu = &samples.cpus[0];
    assert!(cpu.gaps.len() < 64 && !cpu.raises.is_empty(), "{:?}", cpu.raises);
    assert_eq!(cpu.gaps.iter().filter(|g| g.ticks() > 40_000).count(), 19, "{:?}", cpu.raises);
    assert!(cpu.raises.windows(2).all(|w| w[0].listing_ticks * 10 == w[1].listing_ticks));
    let (sources, stolen) = balance(&samples);
    assert!((stolen / truth - 1.0).abs() < 1e-3, "{stolen} for {truth}");
    assert!((sources / stolen - 1.0).abs() < 0.01, "{sources} of {stolen}");
    assert_eq!(value(&samples, "noise.detour_rate"), 1_900.0 / 0.2);
    let duration = value(&samples, "noise.detour_duration");
    assert!((duration / 750.0 - 1.0).abs() < 0.1, "median from the histogram: {duration}");
}

#[test]
fn taking_notes_is_no_detour() {
    let mut random = Random::new(5);
    let mut plan = Planted::new(100_000, 20_000);
    let mut at = 5_000;
    while at < 1_990_000_000 {
        plan.stolen.push((at, 1_000 + random.below(3_000) as u64));
        at += 5_000 + random.below(20_000) as u64;
    }
    for (note_ticks, is_seen) in [(90, false), (400, false), (3_000, true)] {
        plan.note_ticks = note_ticks;
        let samples = plan.samples();
        let gaps = &samples.cpus[0].gaps;
        let soon = gaps.windows(2).filter(|w| w[1].start_ticks - w[0].end_ticks < 60).count();
        // What takes longer than any note was interrupted while noting: that is a detour.
        assert_eq!(soon * 100 > gaps.len(), is_seen, "{soon} of {} with notes of {note_ticks}", gaps.len());
        let noted = samples.cpus[0].lengths.count + 20_000;
        let own = samples.cpus[0].sums.iter().map(|s| f64::from(s.own_ticks)).sum::<f64>() / 2e9;
        assert!(is_seen || (own / (noted as f64 * note_ticks as f64 / 2e9) - 1.0).abs() < 0.1, "{own}");
    }
}

#[test]
fn micro_stalls_are_a_class_of_their_own() {
    let mut random = Random::new(9);
    // 2,000 clusters a second of 5 to 24 stalls of 60 to 300, and 73 bursts a second of 317,000.
    let mut plan = Planted::new(100_000, 50_000);
    plan.stall_ticks = 500;
    let (mut at, mut clusters) = (10_000, 0);
    while at < 4_990_000_000_u64 {
        clusters += 1;
        for _ in 0..5 + random.below(20) {
            plan.stolen.push((at, 60 + random.below(240) as u64));
            at += 1_000 + random.below(3_000) as u64;
        }
        at += 100_000 + (random.exponential() * 400_000.0) as u64;
    }
    let truth_stalls = plan.stolen.iter().map(|s| s.1 as f64).sum::<f64>() / 5e9;
    let bursts: Vec<(u64, u64)> = (0..364).map(|i| (7_000_000 + i * 13_698_630, 317_000)).collect();
    plan.stolen.retain(|s| !bursts.iter().any(|b| s.0 + 500 > b.0 && s.0 < b.0 + b.1 + 500));
    plan.stolen.extend(&bursts);
    plan.stolen.sort_unstable();
    let samples = plan.samples();
    assert_eq!(samples.cpus[0].gaps.len(), 364, "the list holds none of them");
    let rate = value(&samples, "noise.microstall_rate");
    assert!((rate / (f64::from(clusters) / 5.0) - 1.0).abs() < 0.08, "{rate} for {clusters} in 5 s");
    let share = value(&samples, "noise.microstall_fraction");
    assert!((share / truth_stalls - 1.0).abs() < 0.05, "{share} for {truth_stalls}");
    assert_eq!(value(&samples, "noise.detour_rate"), 364.0 / 5.0);
    assert!((value(&samples, "noise.detour_duration") - 317_000.0).abs() < 10.0);
    let (sources, stolen) = balance(&samples);
    assert!((sources / stolen - 1.0).abs() < 0.01, "{sources} of {stolen}");
    let a = analyze(&samples, 1);
    let periods: Vec<&Metric> = a.metrics.iter().filter(|m| m.id == "noise.period").collect();
    assert_eq!(periods.len(), 1, "{periods:?}");
    let ci = periods[0].ci.as_ref().unwrap();
    assert!(ci.low <= 73.0 && 73.0 <= ci.high, "{ci:?}");
}

/// Starts of events: at a rate, at random with it, or in the first quarter of each 100 ms.
fn starts(kind: &str, hz: f64, random: &mut Random) -> Vec<u64> {
    let mut out = Vec::new();
    let mut at = 3e6;
    while at < 1.99e9 {
        if kind != "bursts" || at % 1e8 < 2.5e7 {
            out.push(at as u64);
        }
        at += 1e9 / hz * if kind == "random" { random.exponential() } else { 1.0 };
    }
    out
}

#[test]
fn disturbers_of_any_kind_are_measured_beside_micro_stalls() {
    let mut random = Random::new(12);
    let mut held = [0, 0];
    let disturbers = [(10.0, 2_000_000), (73.0, 317_000), (701.0, 23_000), (3_000.0, 5_000)];
    for (i, (hz, length)) in disturbers.into_iter().enumerate() {
        for (k, kind) in ["periodic", "random", "bursts"].into_iter().enumerate() {
            let mut plan = Planted::new(100_000, 20_000);
            (plan.unit_ticks, plan.stall_ticks, plan.step_ticks) = (40, 500, 10);
            let mut events: Vec<(u64, u64)> =
                starts(kind, hz, &mut random).into_iter().map(|s| (s, length)).collect();
            events.dedup_by(|b, a| b.0 < a.0 + a.1 + 2_000);
            let (count, truth) = (events.len() as f64, events.iter().map(|e| e.1).sum::<u64>() as f64 / 2e9);
            // 5,000 to 100,000 stalls a second of 200.
            let every = [200_000, 30_000, 10_000][(i + k) % 3];
            let stalls = (0..1_990_000_000 / every).map(|s| (5_000 + s * every + s % 977, 200));
            let next = |s: u64| events.partition_point(|e| e.0 + e.1 + 1_000 <= s);
            let free = |s: &(u64, u64)| events.get(next(s.0)).is_none_or(|e| s.0 + 1_200 < e.0);
            let stalls: Vec<(u64, u64)> = stalls.filter(free).collect();
            let of_stalls = stalls.iter().map(|e| e.1).sum::<u64>() as f64 / 2e9;
            plan.stolen = [events, stalls].concat();
            plan.stolen.sort_unstable();
            let samples = plan.samples();
            let place = format!("{hz} Hz x {length}, {kind}, a stall every {every}");
            let (sources, stolen) = balance(&samples);
            assert!((sources / stolen - 1.0).abs() < 0.01, "{place}: {sources} of {stolen}");
            let off = stolen / (truth + of_stalls) - 1.0;
            assert!(off.abs() < 0.02, "{place}: {stolen} for {truth} and {of_stalls}");
            let metrics = analyze(&samples, 1).metrics;
            let of = |id: &str| metrics.iter().find(|m| m.id == id && m.params["cpu"].to_string() == "0");
            let rate = of("noise.detour_rate").unwrap();
            assert!(
                (rate.value.unwrap() / (count / 2.0) - 1.0).abs() < 0.02,
                "{place}: {rate:?} for {count}"
            );
            if let (Some(ci), true) = (&rate.ci, kind != "bursts") {
                held[usize::from(ci.low <= hz && hz <= ci.high)] += 1;
            }
            let gaps = &samples.cpus[0].gaps;
            let soon = gaps.windows(2).filter(|w| w[1].start_ticks - w[0].end_ticks < 60).count();
            assert!(soon * 100 <= gaps.len(), "{place}: {soon} of {} follow one directly", gaps.len());
        }
    }
    assert!(held[1] >= 5 && held[0] <= 1, "{held:?} intervals of rates without and with the truth");
}

#[test]
fn a_stop_beyond_the_end_is_clipped() {
    let mut plan = Planted::new(100_000, 10_000);
    plan.stolen = vec![(100_000_000, 5_000), (600_000_000, 2_500_000_000)];
    let mut samples = plan.samples();
    samples.cpus[0].thread = Some(ThreadFacts { stops: 1, ..ThreadFacts::default() });
    let (sources, stolen) = balance(&samples);
    assert!((stolen - 0.401).abs() < 0.001 && (sources - stolen).abs() < 1e-3, "{sources}, {stolen}");
    let a = analyze(&samples, 1);
    assert!(a.warnings.iter().any(|w| w.code == "W320" && w.text.contains("2.50 s")), "{:?}", a.warnings);
    assert!(
        a.metrics.iter().filter(|m| m.unit == Unit::One).flat_map(|m| &m.blocks).all(|b| *b <= 1.0 + 1e-9)
    );
}

#[test]
fn too_little_gets_neither_praise_nor_an_interval() {
    for windows in [1, 10, 100, 3_000] {
        let a = analyze(&Planted::new(100_000, windows).samples(), 1);
        let fitness = &a.summary.fitness;
        assert!(fitness.len() == 3 && fitness.iter().all(|f| f.fit != Fit::Yes), "{fitness:?}");
        for m in &a.metrics {
            assert!(m.ci.as_ref().is_none_or(|c| c.high > c.low), "{m:?}");
        }
    }
}

#[test]
fn samples_survive_their_tables_and_so_does_the_analysis() {
    let mut plan = Planted::new(100_000, 2_000);
    plan.stall_ticks = 500;
    plan.capacity = 64;
    plan.stolen = (0..200).map(|i| (500_000 + i * 900_000, 20_000 + i)).collect();
    plan.stolen.extend((0..1_000).map(|i| (560_000 + i * 150_000, if i % 3 == 0 { 700 } else { 100 })));
    plan.stolen.sort_unstable();
    plan.stolen.dedup_by(|b, a| b.0 < a.0 + a.1 + 100);
    let mut samples = plan.samples();
    samples.activity_log = ActivityLog {
        witness: "kernel trace".to_owned(),
        sight: Sight::Everything,
        spans: vec![vec![
            Span { start_ticks: 500_000, end_ticks: 501_000, source: 1, depth: 1 },
            Span { start_ticks: 501_000, end_ticks: 520_000, source: 0, depth: 0 },
        ]],
        stolen: vec![vec![Stolen { start_ticks: 499_000, end_ticks: 521_000, ticks: 15_000 }]],
        lost: vec![3],
        steal_ns: vec![Some(1_234)],
        counters: vec![(0, "LOC".to_owned(), 9)],
        notes: vec!["a remark".to_owned()],
        sources: vec![Source::thread("gcc", "cc1", 7), Source::new("timer tick", SourceKind::Tick)],
    };
    samples.cpus[0].attributed = attribute(&mut samples.activity_log, 0, &samples.cpus[0].gaps);
    samples.activity_log.spans.clear();
    samples.activity_log.stolen.clear();
    samples.cpus[0].thread = Some(ThreadFacts {
        run_delay_ns: Some(5),
        preemptions: 2,
        ended_on_cpu: Some(0),
        ..ThreadFacts::default()
    });
    samples.speed = vec![SpeedSample {
        cpu: 0,
        phase: SpeedPhase::Alone,
        best_ns: 0.1 + 0.2,
        median_ns: 1.0 / 3.0,
        n: 4,
    }];
    samples.references.best_ever_add_ns = Some(0.3);
    samples.setup.tick_hz = 2_595_123_456.789_012_3;
    assert!(samples.cpus[0].attributed.iter().any(|a| a.parts.len() == 3));
    assert!(samples.cpus[0].raises.iter().all(|r: &Raise| r.listing_ticks > 500));
    let again = from_tables(&to_tables(&samples)).unwrap();
    assert_eq!(again, samples);
    let json = |s: &Samples| {
        let a = analyze(s, 1);
        serde_json::to_string(&(&a.metrics, &a.datasets, &a.findings, &a.warnings, &a.summary)).unwrap()
    };
    assert_eq!(json(&again), json(&samples));
    // What does not belong together is refused.
    let mut tables = to_tables(&samples);
    tables.retain(|t| t.name != "noise_histogram");
    assert!(from_tables(&tables).is_err());
}

#[test]
fn a_source_that_hops_is_one_row_over_all_cpus() {
    let mut plan = Planted::new(100_000, 2_000);
    plan.stolen = (0..100).map(|i| (500_000 + i * 1_800_000, 20_000)).collect();
    let mut samples = plan.samples();
    plan.stolen = (0..50).map(|i| (700_000 + i * 3_600_000, 10_000)).collect();
    let mut second = plan.samples().cpus.remove(0);
    second.cpu = 1;
    samples.cpus.push(second);
    let spans = |gaps: &[Gap]| {
        gaps.iter()
            .map(|g| Span { start_ticks: g.start_ticks, end_ticks: g.end_ticks, source: 0, depth: 0 })
            .collect()
    };
    samples.activity_log = ActivityLog {
        sight: Sight::Everything,
        spans: samples.cpus.iter().map(|c| spans(&c.gaps)).collect(),
        lost: vec![0; 2],
        sources: vec![Source::thread("thief", "thief", 7)],
        ..ActivityLog::none()
    };
    for i in 0..2 {
        samples.cpus[i].attributed = attribute(&mut samples.activity_log, i, &samples.cpus[i].gaps.clone());
    }
    let metrics = analyze(&samples, 1).metrics;
    let of = |cpu: &str| {
        let is_it = |m: &&Metric| {
            m.id == "noise.source_fraction"
                && m.params["cpu"].to_string() == cpu
                && m.params["source"] == "thief".into()
        };
        metrics.iter().find(is_it).and_then(|m| m.value).unwrap()
    };
    assert!(of("0") > 3.0 * of("1") && of("1") > 0.0);
    assert!((of("all") - f64::midpoint(of("0"), of("1"))).abs() < 1e-12);
}
