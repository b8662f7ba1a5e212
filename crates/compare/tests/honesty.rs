//! Machines compared with themselves and with a planted change: how often a comparison cries wolf, and what it finds.
//! `cargo test -p machmeter-compare --test honesty -- --nocapture` prints the table of `docs/compare.md`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their tables")]

mod machines;

use machines::{Machine, QUIET};
use machmeter_compare::{Options, Verdict, compare};
use machmeter_data::Record;
use machmeter_stats::random::Random;

/// Figures of a run.
const ROWS: usize = 60;
/// Comparisons of a line of the table.
const COMPARISONS: usize = 100;

const RESTLESS: Machine = Machine { between_sd: 0.02, ..QUIET };
/// The clock moves by three times as much as costs do otherwise.
const BOOSTS: Machine = Machine { clock_sd: 0.012, ..QUIET };
const STATES: Machine = Machine { other_state: 0.1, ..QUIET };

/// Comparisons with a false change, and the share of planted changes that were found, in percent: `changed` of the rows by `factor`.
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
        // Later runs of the changed machine stand in the history, too.
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
    // Machine, runs a side, earlier runs, rows that changed, factor, at most false comparisons, at least found of a hundred.
    for (name, m, runs, earlier, changed, factor, most, least) in [
        ("quiet", QUIET, 1, 0, 0, 1.0, 4, 0.0),
        ("quiet", QUIET, 1, 0, ROWS, 1.07, 0, 90.0),
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
        ("two states", STATES, 8, 8, 1, 1.05, 4, 50.0),
    ] {
        let (wrong, found) = observe(m, runs, earlier, changed, factor);
        println!(
            "| {name} | {runs} | {earlier} | {changed} x {factor} | {wrong} of {COMPARISONS} | {found:.0} % |"
        );
        assert!(
            wrong <= most && found >= least,
            "{name}, {runs} runs, {earlier} earlier, {changed} x {factor}"
        );
    }
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
    // A change of just what matters is called the same in 5 %.
    assert!(wrong * 100 <= COMPARISONS * 30 * 6, "{wrong}");
    assert!(same * 10 >= COMPARISONS * 30 * 9, "{same}");
}
