//! Tests of comparisons on simulated machines, unchanged and with a planted change: the rate of false changes, and the power.
//!
//! `cargo test -p machmeter-compare --test honesty -- --nocapture` prints the table of `docs/compare.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their tables")]

mod machines;

use machines::{Machine, QUIET};
use machmeter_compare::{Options, Verdict, compare};
use machmeter_data::Record;
use machmeter_stats::random::Random;

/// Figures per run.
const ROWS: usize = 60;
/// Comparisons per line of the table.
const COMPARISONS: usize = 100;

const RESTLESS: Machine = Machine { between_sd: 0.02, ..QUIET };
/// The clock varies by three times the other variation of costs.
const BOOSTS: Machine = Machine { clock_sd: 0.012, ..QUIET };
const STATES: Machine = Machine { other_state: 0.1, ..QUIET };

/// Number of comparisons with a false change, and the percentage of planted changes that were found: `changed` rows differ by `factor`.
fn observe(m: Machine, runs: usize, earlier: usize, changed: usize, factor: f64) -> (usize, f64) {
    let mut r = Random::new(7 + runs as u64 + 100 * earlier as u64);
    let (mut wrong, mut found) = (0, 0);
    for _ in 0..COMPARISONS {
        let mut at = 0;
        let mut group = |n: usize, changed: usize| -> Vec<Record> {
            let mut one = || {
                at += 1;
                m.run(at, ROWS, changed, factor, &mut r)
            };
            (0..n).map(|_| one()).collect()
        };
        let (mut history, a, b) = (group(earlier, 0), group(runs, 0), group(runs, changed));
        // The history also contains later runs of the changed machine.
        history.extend(group(earlier, changed));
        let c = compare(&a, &b, &Options { history: &history, ..Options::default() });
        let is_planted = |key: &str| (0..changed).any(|i| key.contains(&format!("made_{i}}}")));
        let told = |planted: bool| {
            c.rows.iter().filter(|r| r.verdict.is_change() && is_planted(&r.key) == planted).count()
        };
        wrong += usize::from(told(false) > 0);
        found += told(true);
    }
    (wrong, 100.0 * found as f64 / (COMPARISONS * changed).max(1) as f64)
}

#[test]
fn false_changes_are_rare_and_planted_ones_are_found() {
    let mut failed = Vec::new();
    // Machine, runs per side, earlier runs, changed rows, factor, most false comparisons, least percentage found.
    for (name, m, runs, earlier, changed, factor, most, least) in [
        ("quiet", QUIET, 1, 0, 0, 1.0, 4, 0.0),
        ("quiet", QUIET, 1, 0, ROWS, 1.15, 0, 90.0),
        ("quiet", QUIET, 1, 8, 0, 1.0, 4, 0.0),
        ("quiet", QUIET, 1, 8, ROWS, 1.06, 0, 90.0),
        ("quiet", QUIET, 6, 0, 0, 1.0, 4, 0.0),
        ("quiet", QUIET, 6, 0, 1, 1.03, 4, 90.0),
        ("quiet", QUIET, 6, 8, 1, 1.03, 4, 90.0),
        ("restless", RESTLESS, 1, 8, 0, 1.0, 4, 0.0),
        ("restless", RESTLESS, 6, 0, 0, 1.0, 4, 0.0),
        ("restless", RESTLESS, 6, 0, 1, 1.1, 4, 90.0),
        ("boosts", BOOSTS, 1, 0, 0, 1.0, 4, 0.0),
        ("boosts", BOOSTS, 1, 8, 0, 1.0, 4, 0.0),
        ("boosts", BOOSTS, 1, 8, ROWS, 1.06, 0, 90.0),
        ("boosts", BOOSTS, 6, 0, 0, 1.0, 4, 0.0),
        ("boosts", BOOSTS, 6, 0, 1, 1.03, 4, 90.0),
        ("two states", STATES, 6, 0, 0, 1.0, 4, 0.0),
        ("two states", STATES, 1, 12, 0, 1.0, 8, 0.0),
        ("two states", STATES, 8, 8, 1, 1.1, 4, 50.0),
    ] {
        let (wrong, found) = observe(m, runs, earlier, changed, factor);
        println!(
            "| {name} | {runs} | {earlier} | {changed} x {factor} | {wrong} of {COMPARISONS} | {found:.0} % |"
        );
        if wrong > most || found < least {
            failed.push(format!("{name}, {runs} runs, {earlier} earlier, {changed} x {factor}"));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

#[test]
fn equivalence_is_stated_and_bounded() {
    let mut r = Random::new(3);
    let options = Options { at_least: 0.02, ..Options::default() };
    let (mut same, mut wrong) = (0, 0);
    for _ in 0..COMPARISONS {
        let mut group =
            |changed| -> Vec<Record> { (0..6).map(|i| QUIET.run(i, ROWS, changed, 1.02, &mut r)).collect() };
        let (a, b) = (group(0), group(30));
        let c = compare(&a, &b, &options);
        let is_same = |planted: bool| {
            let of = |key: &str| (0..30).any(|i| key.contains(&format!("made_{i}}}")));
            c.rows.iter().filter(|r| r.verdict == Verdict::Same && of(&r.key) == planted).count()
        };
        wrong += is_same(true);
        same += is_same(false);
    }
    // A change of exactly the size that matters is called the same in 5 %.
    assert!(wrong * 100 <= COMPARISONS * 30 * 6, "{wrong}");
    assert!(same * 10 >= COMPARISONS * 30 * 9, "{same}");
}

/// Numbers of runs per side; each must find at least as much as the previous one.
const SIDES: [usize; 7] = [1, 2, 3, 4, 5, 6, 8];
/// Comparisons without a change per number of runs per side, and the most with a false change. At a rate of 1 %, all of 100 such tests have 8 or fewer; at
/// 3 %, 4 of 100.
const UNCHANGED: usize = 500;
const MOST_FALSE: usize = 8;
/// Comparisons repeated with a change of each size in a tenth of the rows.
const WITH_CHANGE: usize = 100;
const CHANGED: usize = ROWS / 10;
const SIZES: [f64; 2] = [1.03, 1.1];

/// A run whose first [`CHANGED`] costs are multiplied by `factor`.
fn dearer(run: &Record, factor: f64) -> Record {
    let mut run = run.clone();
    for m in &mut run.metrics[..CHANGED] {
        m.value = m.value.map(|v| v * factor);
        if let Some(ci) = &mut m.ci {
            (ci.low, ci.high) = (ci.low * factor, ci.high * factor);
        }
    }
    run
}

/// Numbers of changed rows: planted ones, and the rest.
fn changes(a: &[Record], b: &[Record]) -> [usize; 2] {
    let c = compare(a, b, &Options::default());
    let is_planted = |key: &str| (0..CHANGED).any(|i| key.contains(&format!("made_{i}}}")));
    let of =
        |planted| c.rows.iter().filter(|r| r.verdict.is_change() && is_planted(&r.key) == planted).count();
    [true, false].map(of)
}

/// Number of [`UNCHANGED`] comparisons with a false change, and shares of the rows in which changes of [`SIZES`] are found.
fn power(m: Machine, runs: usize, seed: u64) -> (usize, [f64; 2]) {
    let mut r = Random::new(seed);
    let (mut wrong, mut found) = (0, [0; 2]);
    for draw in 0..UNCHANGED {
        let mut group = || -> Vec<Record> { (0..runs).map(|i| m.run(i, ROWS, 0, 1.0, &mut r)).collect() };
        let (a, b) = (group(), group());
        wrong += usize::from(changes(&a, &b) != [0, 0]);
        for (found, factor) in found.iter_mut().zip(SIZES).filter(|_| draw < WITH_CHANGE) {
            let b: Vec<Record> = b.iter().map(|run| dearer(run, factor)).collect();
            *found += changes(&a, &b)[0];
        }
    }
    (wrong, found.map(|found| found as f64 / (WITH_CHANGE * CHANGED) as f64))
}

fn never_finds_less(name: &str, m: Machine) {
    let found = SIDES.map(|runs| power(m, runs, runs as u64));
    let wrong = found.map(|(wrong, _)| wrong);
    println!("| {name} | {wrong:?} of {UNCHANGED}");
    for (i, size) in SIZES.iter().enumerate() {
        let power = found.map(|(_, power)| power[i]);
        println!("| {name} | x {size} | {} |", power.map(|p| format!("{:.0}", 100.0 * p)).join(" | "));
        for w in power.windows(2) {
            // Three standard errors of the difference. Rows of a comparison share their spreads, so each comparison counts as one draw.
            let error = 3.0 * ((w[0] * (1.0 - w[0]) + w[1] * (1.0 - w[1])) / WITH_CHANGE as f64).sqrt();
            assert!(w[1] >= w[0] - error.max(0.01), "{name}, x {size}: {power:?}");
        }
    }
    assert!(wrong.iter().all(|w| *w <= MOST_FALSE), "{name}: {wrong:?} of {UNCHANGED} have a false change");
}

#[test]
fn more_runs_never_find_less_and_invent_nothing() {
    never_finds_less("normal", QUIET);
    never_finds_less("restless", RESTLESS);
}

#[test]
fn more_runs_never_find_less_where_runs_have_heavy_tails() {
    never_finds_less("heavy tails", Machine { is_heavy: true, ..QUIET });
}

#[test]
fn more_runs_never_find_less_where_a_third_is_in_another_state() {
    never_finds_less("a third in another state", Machine { other_state: 1.0 / 3.0, ..QUIET });
}

#[test]
fn more_runs_never_find_less_where_a_third_is_marked() {
    never_finds_less("a third marked", Machine { marked: 1.0 / 3.0, ..QUIET });
}
