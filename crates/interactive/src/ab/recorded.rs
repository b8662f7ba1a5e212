//! A/B recordings made up job by job: from segments to figures, from figures to words.

use machmeter_data::Shape;
use machmeter_engine::stream::{Fate, Job};
use machmeter_stats::random::Random;

use super::*;
use crate::samples::{Cell, Samples, Segment, Setup};
use crate::tasks::periodic;

const MS: u64 = 1_000_000;

/// A segment whose jobs wait `wait_ns` on average; every `missing`-th is dropped.
fn segment(start_ns: u64, jobs: u64, wait_ns: f64, missing: u64, random: &mut Random) -> Segment {
    let job = |k: u64, wake_ns: u64| {
        let dropped = missing > 0 && k.is_multiple_of(missing);
        Job {
            number: k,
            release_ns: k * 16 * MS,
            wake_ns,
            response_ns: wake_ns + if dropped { 0 } else { 6 * MS },
            cpu_ns: if dropped { 0 } else { 6 * MS },
            fate: if dropped { Fate::Dropped } else { Fate::Ran },
        }
    };
    Segment {
        start_ns,
        length_ns: jobs * 16 * MS,
        jobs: (0..jobs).map(|k| job(k, (wait_ns * random.exponential()) as u64)).collect(),
        scheduled: jobs,
        ..Segment::default()
    }
}

/// A recording of one cell: B waits `factor` times as long, and drops every `missing_b`-th frame.
fn recording(rounds: usize, jobs: u64, factor: f64, missing_b: u64) -> Samples {
    let mut random = Random::new(11);
    let mut cells = [0, 1].map(|setting| Cell {
        task: "video".to_owned(),
        load: "burn".to_owned(),
        setting,
        stream: periodic(16 * MS, 6 * MS),
        segments: Vec::new(),
    });
    for (i, setting) in (0..rounds).flat_map(|r| order(r, 5)).enumerate() {
        let (wait_ns, missing) = if setting == 0 { (5e4, 0) } else { (5e4 * factor, missing_b) };
        let segment = segment(i as u64 * 3_000 * MS, jobs, wait_ns, missing, &mut random);
        cells[setting].segments.push(segment);
    }
    let setup = Setup {
        settings: vec!["true".to_owned(), "sysctl x=1".to_owned()],
        ab_delta: 0.1,
        ab_rounds: rounds,
        ..Setup::default()
    };
    Samples { setup, cells: cells.into(), loads: Vec::new() }
}

#[test]
fn segments_become_rounds_and_rounds_figures() {
    let samples = recording(8, 187, 2.0, 10);
    let (all, lost) = series(&samples);
    assert_eq!(lost, 0);
    let figures: Vec<Figure> = all.iter().map(|s| s.figure).collect();
    assert_eq!(figures, [Figure::Mean, Figure::P99, Figure::Misses, Figure::DesiredCpu]);
    assert!(all.iter().all(|s| s.rounds.len() == 8 && s.rounds.iter().all(|r| r.jobs == [374; 2])));
    let mean = |s: &Series, pick: fn(&Round) -> f64| s.rounds.iter().map(pick).sum::<f64>() / 8.0;
    assert!((mean(&all[0], |r| r.a).exp() / 5e4 - 1.0).abs() < 0.05);
    assert!((mean(&all[0], |r| r.b - r.a).exp() / 2.0 - 1.0).abs() < 0.08);
    // Exponential: p99 is ln 100 means.
    assert!((mean(&all[1], |r| r.a).exp() / (5e4 * 100.0_f64.ln()) - 1.0).abs() < 0.15);
    // 19 of 187 are multiples of 10.
    let share = 19.0 / 187.0;
    assert!(all[2].rounds.iter().all(|r| r.a == 0.0 && (r.b - share).abs() < 1e-12));
    assert!(all[3].rounds.iter().all(|r| r.a == 1.0 && (r.b - (1.0 - share)).abs() < 1e-12));
}

#[test]
fn short_segments_have_p95_or_no_tail() {
    let figures = |jobs| {
        let (all, _) = series(&recording(4, jobs, 1.0, 0));
        all.iter().map(|s| s.figure).collect::<Vec<_>>()
    };
    assert!(figures(60).contains(&Figure::P95) && !figures(60).contains(&Figure::P99));
    assert_eq!(figures(10), [Figure::Mean, Figure::Misses, Figure::DesiredCpu]);
}

#[test]
fn a_round_with_a_broken_segment_is_left_out_and_the_others_stay_paired() {
    let mut samples = recording(8, 187, 2.0, 0);
    samples.cells[1].segments[3].trouble = Some("killed".to_owned());
    let (all, lost) = series(&samples);
    assert_eq!((lost, all[0].rounds.len()), (1, 7));
    let outcome = analyze(&samples);
    assert_eq!(outcome.warnings[0].code, "W311");
    // A run that ended within a round: its rest is no lost round.
    samples.cells[1].segments[3].trouble = None;
    samples.cells[0].segments.pop();
    assert_eq!(series(&samples).1, 0);
}

#[test]
fn a_worse_setting_is_called_worse_with_figures() {
    let outcome = analyze(&recording(12, 187, 2.0, 10));
    assert_eq!(outcome.findings.len(), 2);
    assert_eq!(outcome.findings[0].verdict, "worse");
    assert_eq!(outcome.findings[1].verdict, "worse");
    assert_eq!(outcome.findings[1].text, "video under burn: B is worse than A.");
    let keys: Vec<String> = outcome.metrics.iter().map(machmeter_data::Metric::key).collect();
    assert_eq!(keys[0], "interactive.ab_change{figure=mean,load=burn,task=video}");
    let mean = &outcome.metrics[0];
    let ci = mean.ci.as_ref().unwrap();
    assert!(ci.low < 1.0 && 1.0 < ci.high && ci.low > 0.7, "{ci:?}");
    assert_eq!((mean.n, mean.blocks.len()), (12, 12));
    let cpu = outcome.metrics.last().unwrap();
    assert!(cpu.value.unwrap() < -0.09, "a change may be negative: {cpu:?}");
    let Some(Shape::CostTable(t)) = outcome.table.map(|d| d.shape) else { panic!("no table") };
    assert!(t.rows.len() == 4 && t.rows.iter().all(|r| r.cells.len() == t.columns.len()));
    println!("{}\n{:#?}", outcome.lines.join("\n"), outcome.findings);
    assert_eq!(outcome.lines[..2], ["A: true", "B: sysctl x=1"]);
    assert!(outcome.lines[3].starts_with("video under burn: worse: mean lateness x"), "{:?}", outcome.lines);
    assert!(outcome.lines[3].contains("misses +10.2 points"), "{:?}", outcome.lines);
}

#[test]
fn a_short_run_says_what_it_would_have_needed() {
    let outcome = analyze(&recording(4, 30, 1.0, 0));
    assert_eq!(outcome.findings[0].verdict, "undecided");
    assert!(outcome.lines[3].contains("would need x"), "{:?}", outcome.lines);
    let shorter = analyze(&recording(2, 30, 1.0, 0));
    assert!(shorter.metrics.iter().all(|m| m.value.is_none()));
    let why = shorter.metrics[0].why.clone().unwrap();
    assert_eq!(why, "2 whole rounds; a verdict needs 4");
}

#[test]
fn other_recordings_have_no_verdicts() {
    let mut samples = recording(4, 30, 1.0, 0);
    samples.setup.settings.clear();
    let outcome = analyze(&samples);
    assert!(outcome.metrics.is_empty() && outcome.lines.is_empty() && outcome.table.is_none());
    samples.setup.settings = vec!["a".to_owned(), "b".to_owned()];
    samples.cells.clear();
    let empty = analyze(&samples);
    assert!(empty.metrics.is_empty() && empty.findings[0].verdict == "undecided");
}
