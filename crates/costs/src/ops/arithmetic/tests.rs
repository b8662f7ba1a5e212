//! The analysis on rows with known truth.

use machmeter_engine::cost::{Kind, Row, Rows};

use super::{CHAINS, PART_NAME, PASS_TURNS, analyze};
use crate::testing::params;

/// Chains whose turns cost `turn_ns`, at 2.5 ticks per ns, with a constant of 60 ticks and some jitter.
fn rows(turn_ns: impl Fn(u64) -> f64) -> Rows {
    let row = |additions: u64| {
        let ticks = |turns: u64| (turns as f64 * PASS_TURNS as f64 * turn_ns(additions) * 2.5 + 60.0) as u64;
        let pairs = (0..40).map(|i| (ticks(100) + i * 7 % 5, ticks(200) + i * 11 % 13));
        let row = Row::new(PART_NAME, "add", Kind::Latency).with("chain", additions as i64);
        row.per_turn((additions * PASS_TURNS) as f64).planted(100, pairs)
    };
    Rows { tick_hz: 2.5e9, step_ticks: 1, rows: CHAINS.map(row).into(), ..Rows::default() }
}

#[test]
fn the_addition_is_found_and_the_ladder_holds() {
    let a = analyze(&params(&[]), &rows(|n| n as f64 * 0.2707), 1);
    let add = &a.metrics[0];
    assert_eq!(add.key(), "ops.cost{kind=latency,operation=add}");
    assert!((add.value.unwrap() / 0.2707 - 1.0).abs() < 0.001, "{add:?}");
    assert_eq!(a.findings[0].verdict, "holds");
    assert!(a.warnings.is_empty(), "{:?}", a.warnings);
    assert_eq!(crate::testing::row_texts(&crate::ops::info::INFO, &a), ["addition: 0.271 ns"]);
    assert_eq!(a.metrics.len(), CHAINS.len() + 1);
    // The addition is the slope, not the turn of the loop around the shortest chain.
    let loops = rows(|n| 0.2707 * (n as f64).max(2.0));
    let add = super::addition(&loops);
    assert_eq!(add.key(), "ops.cost{kind=latency,operation=add}");
    assert!((add.value.unwrap() / 0.2707 - 1.0).abs() < 0.001 && add.ci.unwrap().method == "t");
}

#[test]
fn a_ladder_of_overlapping_turns_is_told() {
    let a = analyze(&params(&[]), &rows(|n| (n as f64 * 0.2707).min(1.5)), 1);
    assert_eq!(a.findings[0].verdict, "fails");
    assert_eq!(a.warnings[0].code, "W441");
}

#[test]
fn without_chains_there_is_no_addition_but_a_reason() {
    let mut few = rows(|n| n as f64);
    few.rows.truncate(4);
    let a = analyze(&params(&[]), &few, 1);
    let add = &a.metrics[0];
    assert!(add.value.is_none() && add.why.as_ref().unwrap().contains("2 of at least 4"));
    assert_eq!(a.findings[0].verdict, "unknown");
    assert!(analyze(&params(&[]), &Rows::default(), 1).metrics.is_empty());
}
