//! Tests of alternating settings: false verdicts, power by number of rounds, and rows under one setting only.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

mod machines;

use machines::{Machine, QUIET, record, share};
use machmeter_compare::Options;
use machmeter_compare::paired::{self, LEAST_ROUNDS, Round, order};
use machmeter_data::Record;
use machmeter_data::summary::{Row, RowFigure, Shows};
use machmeter_stats::random::Random;

const BOOSTS: Machine = Machine { clock_sd: 0.012, ..QUIET };

/// Rounds on a machine with drifting runs, with a change of `factor` under B.
fn rounds(count: usize, factor: f64, seed: u64) -> Vec<Round> {
    rounds_of(QUIET, count, factor, seed)
}

fn rounds_of(machine: Machine, count: usize, factor: f64, seed: u64) -> Vec<Round> {
    let mut r = Random::new(seed);
    let mut at = 0;
    let mut one = |setting: usize| {
        at += 1;
        let drift = 1.0 + 0.002 * at as f64;
        machine.run(at, 5, 5, drift * if setting == 1 { factor } else { 1.0 }, &mut r)
    };
    let mut round = |i: usize| -> Round {
        let mut out: Round = Default::default();
        for s in order(i, seed) {
            out[s].push(one(s));
        }
        out
    };
    (0..count).map(&mut round).collect()
}

#[test]
fn settings_in_turns_are_judged_beside_a_drift_of_forty_percent() {
    let options = Options { at_least: 0.02, metric_glob: Some("*".to_owned()), ..Options::default() };
    let (mut wrong, mut found, mut same, mut looks) = (0, 0, 0, 0);
    for seed in 0..60 {
        let nothing = paired::compare(&rounds(12, 1.0, seed), 12, &options);
        wrong += usize::from(nothing.rows.iter().any(|r| r.verdict.is_change()));
        same += nothing.counts.same;
        let all = rounds(50, 1.05, seed);
        let ended = (LEAST_ROUNDS..=50).find(|n| paired::may_stop(&all[..*n], 50, &options)).unwrap();
        looks += ended;
        found += paired::compare(&all[..ended], 50, &options).counts.worse;
    }
    println!("false {wrong} of 60, found {found} of 300, same {same} of 300, rounds {}", looks / 60);
    assert!(wrong <= 6 && found >= 290 && same >= 270 && looks / 60 <= 20);
}

#[test]
fn few_rounds_say_what_a_verdict_needs() {
    let options = Options { metric_glob: Some("ops.*".to_owned()), ..Options::default() };
    let c = paired::compare(&rounds(1, 2.0, 1), 8, &options);
    assert_eq!(c.counts.unclear, 5);
    assert!(c.rows[0].verdict.why().unwrap().contains("1 rounds with both settings; a verdict needs 2"));
    let none = paired::compare(&[], 8, &options);
    assert_eq!(none.counts.rows, 0);
    let off_page = paired::compare(&rounds(5, 2.0, 1), 8, &Options::default());
    assert_eq!(off_page.counts.rows, 0, "without a pattern the rows of the page are judged");
}

#[test]
fn settings_in_turns_are_judged_as_they_are_and_nothing_else_is_said() {
    let options = Options { metric_glob: Some("*".to_owned()), ..Options::default() };
    let c = paired::compare(&rounds_of(BOOSTS, 6, 1.0, 2), 6, &options);
    assert!(c.rows.iter().all(|r| r.change.is_some() && r.by_clock.is_none()), "{:?}", c.rows);
    assert!(c.notes.iter().all(|n| !n.contains("clock")), "{:?}", c.notes);
}

/// A run of noise whose page names its sources.
fn noise(id: usize, hog: f64, r: &mut Random) -> Record {
    let mut near = |value: f64, sd: f64| (value + sd * r.normal()).max(0.0);
    let mut metrics = vec![share("timer tick", "tick", near(0.003, 0.0002), 0.0005)];
    if hog > 0.0 {
        metrics.push(share("hog", "thread", near(hog, 0.002), 0.002));
    }
    metrics.push(share("other thread", "thread", near(0.002, 0.001), 0.001));
    let mut record = record(&id.to_string(), metrics);
    let figure = |m: &machmeter_data::Metric| RowFigure {
        condition: String::new(),
        id: m.id.clone(),
        params: m.params.clone(),
        shows: Shows::default(),
        earlier: Vec::new(),
        usual: None,
    };
    let figures = record.metrics.iter().map(figure).collect();
    record.summary.rows =
        vec![Row { section: "NOISE".to_owned(), name: "taken".to_owned(), figures, detail: false }];
    record
}

#[test]
fn a_source_that_exists_only_under_b_is_found_in_two_rounds() {
    let mut found = 0;
    for seed in 0..20 {
        let mut r = Random::new(seed);
        let mut round = |_| -> Round {
            let mut of = |hog: f64| (0..2).map(|i| noise(i, hog, &mut r)).collect();
            [of(0.0), of(0.05)]
        };
        let rounds: Vec<Round> = (0..2).map(&mut round).collect();
        for glob in [None, Some("noise.source_fraction{*hog*".to_owned())] {
            let options = Options { metric_glob: glob, at_least: 0.05, ..Options::default() };
            let c = paired::compare(&rounds, 8, &options);
            let hog = c.rows.iter().find(|r| r.key.contains("hog")).unwrap();
            assert_eq!((hog.a.value, hog.b.runs), (Some(0.0), 4), "{:?}", c.only_b);
            assert!(c.rows.iter().all(|r| r.key.contains("hog") || !r.verdict.is_change()), "{:?}", c.rows);
            found += usize::from(hog.verdict.name() == "worse");
        }
    }
    println!("found {found} of 40");
    assert!(found >= 36, "{found}");
}

#[test]
fn a_pattern_that_matches_nothing_is_known_after_a_run_of_each_setting() {
    let mut r = Random::new(1);
    let round: Round = [vec![noise(1, 0.0, &mut r)], vec![noise(2, 0.05, &mut r)]];
    let has = |glob: Option<&str>| {
        let options = Options { metric_glob: glob.map(str::to_owned), ..Options::default() };
        paired::has_rows(&round, &options)
    };
    assert!(has(None) && has(Some("*hog*")) && has(Some("noise.*")));
    assert!(!has(Some("*hug*")) && !has(Some("ops.*")));
    let mut bare = round.clone();
    bare.iter_mut().flatten().for_each(|r| r.metrics.clear());
    assert!(!paired::has_rows(&bare, &Options::default()));
}
