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

/// Rows of a family.
const FAMILY: usize = 80;
/// Numbers of runs a side of which each must see at least what the one before does.
const SIDES: [usize; 7] = [1, 2, 3, 4, 5, 6, 8];
/// Comparisons of each number of runs.
const EACH: usize = 8;

/// Share of rows that are found at 3 % more on every row, and comparisons of a machine with itself that have a false change, of `EACH`.
fn power(m: Machine, runs: usize, seed: u64) -> (f64, usize) {
    let mut r = Random::new(seed);
    let (mut found, mut wrong) = (0, 0);
    for _ in 0..EACH {
        let mut group = |changed: usize| -> Vec<Record> {
            (0..runs).map(|i| m.run(i, FAMILY, changed, 1.03, &mut r)).collect()
        };
        let (a, same, dearer) = (group(0), group(0), group(FAMILY));
        wrong +=
            usize::from(compare(&a, &same, &Options::default()).rows.iter().any(|r| r.verdict.is_change()));
        let c = compare(&a, &dearer, &Options::default());
        found += c.rows.iter().filter(|r| r.verdict.is_change()).count();
    }
    (100.0 * found as f64 / (EACH * FAMILY) as f64, wrong)
}

#[test]
fn more_runs_never_see_less_and_invent_nothing() {
    let sampled = Machine { sample_sd: 0.01, own_sd: 0.01, ..QUIET };
    let machines = [
        ("normal, 0.3 %", Machine { between_sd: 0.003, ..sampled }),
        ("normal, 1 %", Machine { between_sd: 0.01, ..sampled }),
        ("heavy tails, 0.5 %", Machine { between_sd: 0.005, heavy: true, ..sampled }),
        ("heavy tails, a third marked", Machine { between_sd: 0.005, heavy: true, marked: 0.33, ..sampled }),
        ("a tenth in another state", Machine { between_sd: 0.005, other_state: 0.1, ..sampled }),
        ("without samples, normal", Machine { between_sd: 0.005, own_sd: 0.005, ..QUIET }),
        ("without samples, heavy tails", Machine { between_sd: 0.005, own_sd: 0.005, heavy: true, ..QUIET }),
        ("without samples, a third marked", Machine { own_sd: 0.005, marked: 0.33, ..QUIET }),
    ];
    let mut all_wrong = 0;
    for (at, (name, m)) in machines.into_iter().enumerate() {
        let seen = SIDES.map(|runs| power(m, runs, 100 * at as u64 + runs as u64));
        let wrong: usize = seen.iter().map(|(_, wrong)| wrong).sum();
        let found = seen.map(|(found, _)| found);
        println!(
            "| {name} | {} | {wrong} of {} |",
            found.map(|f| format!("{f:.0}")).join(" | "),
            EACH * SIDES.len()
        );
        all_wrong += wrong;
        // Of 4,000 rows in families that hang together a share is known to about 2 %.
        assert!(found.windows(2).all(|w| w[1] >= w[0] - 2.0), "{name}: {found:?}");
    }
    let comparisons = machines.len() * EACH * SIDES.len();
    assert!(all_wrong * 100 <= comparisons, "{all_wrong} of {comparisons}");
}
