//! What the analyses of all parts have to say in the same way.

use machmeter_engine::Analysis;
use machmeter_engine::cost::{Kind, Pair, Row, Rows};
use machmeter_engine::disturbance::placement::MOVES;
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{Seats, threads::Threads};
use machmeter_sys::thread::monotonic_ns;

use super::cost::{NEEDS_TWO, ONE_CPU};
use super::jobs::Job;
use super::{contention, locks, models, transfer, wakeups};
use crate::testing::{codes, params};

/// A visit of threads that begins now, timed in ns.
pub(super) fn visit(seats: &Seats, limit_ns: u64, seed: u64) -> TeamVisit<'_> {
    TeamVisit::new(&Threads, seats, &HostClock::MONOTONIC, monotonic_ns(), limit_ns, seed)
}

/// The value of a metric with this key.
pub(super) fn value(a: &Analysis, key: &str) -> f64 {
    let found = a.metrics.iter().find(|m| m.key() == key);
    found.and_then(|m| m.value).unwrap_or_else(|| panic!("{key}: {found:?}"))
}

/// That no two rows have the same key.
pub(super) fn assert_unique<W>(jobs: &[Job<W>]) {
    let mut keys: Vec<String> =
        jobs.iter().map(|j| format!("{} {:?}", j.row.operation, j.row.params)).collect();
    keys.sort();
    keys.dedup();
    assert_eq!(keys.len(), jobs.len());
}

fn analyzed(rows: Vec<Row>) -> Analysis {
    let part = [transfer::PART, contention::PART, locks::PART, wakeups::PART, models::PART]
        .into_iter()
        .find(|p| p.name == rows[0].part);
    (part.expect("a part").analyze)(&params(&[]), &Rows::in_nanoseconds(rows), 1)
}

/// A row of two CPUs of each part whose rows stand beside looks at the placement, and of one CPU.
fn rows() -> [[Row; 2]; 4] {
    let row = |part: &str, operation: &str, [name, two, one]: [&str; 3]| {
        let row = |condition: &str, cpus: i64| {
            let row = Row::new(part, operation, Kind::Latency).with(name, condition).with("cpus", cpus);
            row.with("model", "threads")
        };
        [row(two, 2), row(one, 1)]
    };
    [
        row("contention", "fetch_add", ["distance_bytes", "0", "0"]).map(|r| r.with("distance_bytes", 0_i64)),
        row("locks", "spin_ttas", ["state", "contended", "alone"]),
        row("wakeups", "wake_futex", ["wake", "idle", "same_cpu"]),
        row("models", "hand_over", ["model", "threads", "threads"]),
    ]
}

/// Of every 20 pairs in a row the first 13 at 24 ns one way and at 25 ns, the rest at 105, where the operation costs four times as much.
fn moved(mut row: Row) -> Row {
    let pair = |i: u64| {
        let (each_ns, regime_ns) = if i % 20 < 13 { (25, 24.0) } else { (100, 105.0) };
        Pair {
            at_ns: i as f64 * 1e7,
            short_ticks: 50 + 100 * each_ns + i % 3,
            long_ticks: 50 + 200 * each_ns + i % 2,
            regime_ns: regime_ns * (1.0 + 0.002 * (i % 7) as f64),
            ..Pair::default()
        }
    };
    (row.short_turns, row.long_turns) = (100, 200);
    row.pairs = (0..120).map(pair).collect();
    row
}

#[test]
fn costs_are_those_at_the_main_placement() {
    for [two, one] in rows() {
        let one = one.planted(100, (0..20).map(|i| (50 + 100 * 25 + i % 3, 50 + 200 * 25 + i % 2)));
        let a = analyzed(vec![moved(two), one]);
        let costs: Vec<_> = a.metrics.iter().filter(|m| m.id == "sync.cost").collect();
        for (m, n) in costs.iter().zip([78, 20]) {
            assert!((m.value.unwrap() / 25.0 - 1.0).abs() < 0.02 && m.n == n && m.flags.is_empty(), "{m:?}");
        }
        assert!(costs[0].apart_ns.is_some_and(|ns| (23.0..25.0).contains(&ns)), "{:?}", costs[0]);
        assert_eq!((costs.len(), costs[1].apart_ns), (2, None), "one CPU has no placement: {:?}", costs[1]);
        assert_eq!(codes(&a), [MOVES.id]);
        assert!(a.warnings[0].text.contains(" ns one way "), "{}", a.warnings[0].text);
    }
}

#[test]
fn rows_that_need_two_cpus_are_told_in_one_warning() {
    let all = rows().into_iter().map(|[two, _]| two).chain([Row::new("transfer", "cas", Kind::Latency)]);
    let texts = [
        "contention was not",
        "2 rows of locks",
        "2 rows of wake-ups",
        "2 rows were not",
        "core to core was not",
    ];
    for (row, text) in all.zip(texts) {
        let row = row.refused(NEEDS_TWO);
        let a = analyzed(vec![row.clone(), row]);
        assert!(a.metrics.len() == 2 && a.findings.is_empty(), "{a:?}");
        assert!(a.metrics.iter().all(|m| m.value.is_none() && m.why.as_deref() == Some(NEEDS_TWO)));
        assert_eq!(codes(&a), [ONE_CPU.id]);
        assert!(a.warnings[0].text.contains(text), "{}", a.warnings[0].text);
    }
}
