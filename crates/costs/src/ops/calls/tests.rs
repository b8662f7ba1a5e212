//! The analysis on rows with known truth: each reason for a missing figure under its own code.

use machmeter_engine::cost::{Kind, Proof, Row, Rows};

use super::{PART_NAME, analyze};
use crate::ops::Params;

fn row(operation: &str, each_ns: u64) -> Row {
    let pairs = (0..30).map(|i| (1_000 * each_ns + i % 7, 2_000 * each_ns + i % 3));
    Row::new(PART_NAME, operation, Kind::Latency).planted(1_000, pairs)
}

fn refused(operation: &str, why: &str) -> Row {
    Row::new(PART_NAME, operation, Kind::Latency).refused(why)
}

fn unproven(operation: &str, seen: u64) -> Row {
    let mut row = row(operation, 33);
    row.proof = Some(Proof::new("touches with one fault each", 16_384, seen));
    row
}

fn analysis(rows: Vec<Row>) -> machmeter_engine::Analysis {
    let params: Params = serde_json::from_str("{}").unwrap();
    analyze(&params, &Rows::in_nanoseconds(rows), 1)
}

#[test]
fn sound_rows_make_rows_of_the_page() {
    let call = row("getppid", 169).with("code", "libc");
    let a = analysis(vec![call, row("page_fault_4k", 2_100), row("clock_gettime", 23)]);
    let told = crate::testing::row_texts(&crate::ops::info::INFO, &a);
    assert_eq!(
        told,
        ["system call, getppid: 169 ns", "page fault, 4 KiB: 2.10 us", "time of day, clock_gettime: 23.0 ns"]
    );
    assert!(a.warnings.is_empty() && a.metrics.iter().all(|m| m.value.is_some() && m.ci.is_some()));
}

#[test]
fn every_reason_has_its_code() {
    let mut few = row("pread", 500);
    few.pairs.truncate(2);
    let a = analysis(vec![
        row("getppid", 169),
        refused("stat", "no files in /x: No space left on device"),
        refused("page_fault_file", "no files in /x: No space left on device"),
        unproven("page_fault_huge", 0),
        unproven("page_fault_4k", 421),
        unproven("signal_catch", 0),
        few,
    ]);
    let told: Vec<(&str, &str)> = a.warnings.iter().map(|w| (w.code.as_str(), w.text.as_str())).collect();
    assert_eq!(told.iter().map(|t| t.0).collect::<Vec<_>>(), ["W442", "W443", "W444", "W446"]);
    assert_eq!(told[0].1, "stat, page_fault_file: no files in /x: No space left on device");
    assert!(told[2].1.contains("421 seen, 16384 expected"));
    assert!(told[3].1.contains("signal_catch") && told[3].1.contains("pread: 2 undisturbed samples of 2"));
    let priced: Vec<&machmeter_data::Metric> = a.metrics.iter().filter(|m| m.value.is_some()).collect();
    assert_eq!(priced.len(), 1, "only what happened has a price: {priced:?}");
}
