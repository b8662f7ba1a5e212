//! The analysis on rows with known truth: what did not happen has no figure.

use machmeter_engine::cost::{Kind, Proof, Row, Rows};

use super::{PART_NAME, analyze, used_by_others};
use crate::testing::params;

fn row(operation: &str, each_ns: u64) -> Row {
    let pairs = (0..30).map(|i| (4 * each_ns + i % 3, 8 * each_ns + i % 5));
    let mut row = Row::new(PART_NAME, operation, Kind::Latency).planted(4, pairs);
    row.proof = Some(Proof::new("children that exited with 0", 90, 90));
    row
}

#[test]
fn what_happened_stands_on_the_page() {
    let rows = [
        row("thread_create_join", 22_000),
        row("fork_exit_wait", 139_000),
        row("spawn", 515_000).with("program", "true"),
    ];
    let a = analyze(&params(&[]), &Rows::in_nanoseconds(rows.into()), 1);
    let told = crate::testing::row_texts(&crate::ops::info::INFO, &a);
    assert!(told.contains(&"start a program, true: 515 us".to_owned()), "{told:?}");
    assert!(a.warnings.is_empty());
    assert!(a.metrics.iter().all(|m| m.ci.is_some() && m.n == 30));
}

#[test]
fn children_that_were_not_seen_to_end_well_have_no_price() {
    let mut unseen = row("fork_exec", 150_000);
    unseen.proof = Some(Proof::new("children that exited with 0", 90, 0));
    let mut refused = row("spawn", 1);
    (refused.refused, refused.pairs) = (Some("/x: No such file or directory".to_owned()), Vec::new());
    let rows = vec![unseen, refused];
    let a = analyze(&params(&[]), &Rows::in_nanoseconds(rows), 1);
    assert!(a.metrics.iter().all(|m| m.value.is_none() && m.why.is_some()), "{:?}", a.metrics);
    assert!(crate::testing::row_texts(&crate::ops::info::INFO, &a).is_empty());
    assert_eq!(a.warnings.len(), 1);
    let text = &a.warnings[0].text;
    assert!(
        a.warnings[0].code == "W445" && text.contains("0 seen, 90 expected") && text.contains("No such file")
    );
    let serde = serde_json::to_string(&a.datasets).unwrap();
    assert!(!serde.contains("150000"), "the time of what failed is shown nowhere");
}

#[test]
fn a_pair_in_which_others_had_the_cpu_is_told_by_its_cpu_time() {
    // A fork of 139 us thrice, with an interrupt; the same with a stranger's slice of 3 ms; a spawn of 515 us thrice.
    assert!(!used_by_others(417_000, 395_000));
    assert!(used_by_others(3_417_000, 400_000));
    assert!(!used_by_others(1_545_000, 1_480_000));
    assert!(!used_by_others(0, 10), "clocks of different steps");
}
