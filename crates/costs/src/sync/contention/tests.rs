//! Planted costs and lines are found; batches without a partner are thrown away; the machine's own figures are plausible.

use machmeter_engine::cost::{Kind, Pair, Row, Rows};
use machmeter_engine::team::sampler::TeamSample;
use machmeter_loops::sync::words::Operation;
use machmeter_stats::random::Random;

use super::analyze::analyze;
use super::measure::{fairness, take};
use super::{PART, UNFAIR};
use crate::sync::tests::{value, visit};
use crate::testing::{codes, params, seats};

/// Rows of a machine with lines of `line_bytes`: an add costs 2 ns alone and 8 at 24 ns of transfer.
fn recorded(line_bytes: i64, fairness: f64) -> Rows {
    let mut random = Random::new(4);
    let mut rows = Rows::in_nanoseconds(Vec::new());
    for (cpus, distance) in [(1_i64, 0), (2, 0), (2, 8), (2, 32), (2, 64), (2, 128), (2, 4_096)] {
        let mut row = Row::new(PART.name, "fetch_add", Kind::Throughput)
            .with("cpus", cpus)
            .with("distance_bytes", distance)
            .with("model", "threads");
        (row.long_turns, row.per_turn) = (64, 256.0);
        row.pairs = (0..120)
            .map(|i| {
                let regime = 24.0 * (1.0 + 0.02 * random.normal());
                let shared = cpus > 1 && distance < line_bytes;
                let each = if shared { regime / 3.0 } else { 2.0 };
                let ticks = each * 64.0 * 256.0 * (1.0 + 0.02 * random.normal());
                let (at_ns, long_ticks) = (f64::from(i) * 1e7, ticks as u64);
                Pair { at_ns, long_ticks, regime_ns: regime, ..Pair::default() }
            })
            .collect();
        row.extras.insert("fairness".to_owned(), fairness);
        rows.rows.push(row);
    }
    rows
}

fn add(cpus: i64, distance: i64) -> String {
    let rest = "kind=throughput,model=threads,operation=fetch_add";
    format!("sync.cost{{cpus={cpus},distance_bytes={distance},{rest}}}")
}

#[test]
fn the_reach_of_false_sharing_is_the_planted_line() {
    for line in [8_i32, 32, 64, 128] {
        let a = analyze(&params(&[]), &recorded(i64::from(line), 0.9), 1);
        let found = value(&a, "sync.false_sharing{operation=fetch_add}");
        assert!((found - f64::from(line)).abs() < 1e-9, "lines of {line} bytes: {found}");
        assert!((value(&a, &add(2, 0)) / 8.0 - 1.0).abs() < 0.03);
        assert!((value(&a, &add(1, 0)) / 2.0 - 1.0).abs() < 0.03);
        assert!(a.warnings.is_empty(), "{:?}", a.warnings);
        let told = crate::testing::row_texts(&crate::sync::info::INFO, &a);
        assert!(told[0].starts_with("add to a word, alone | 2 CPUs: 1.9"), "{told:?}");
        assert!(serde_json::to_vec(&a.datasets).unwrap().len() < 10_000);
    }
}

#[test]
fn unfairness_is_told() {
    let a = analyze(&params(&[]), &recorded(64, 0.3), 1);
    assert_eq!(codes(&a), [UNFAIR.id]);
}

#[test]
fn fairness_is_that_of_the_slowest_over_the_fastest() {
    for (turns, least_turns, most_turns, truth) in
        [(50, 45, 52, 45.0 / 52.0), (40, 45, 52, 40.0 / 52.0), (60, 60, 60, 1.0)]
    {
        let sample = TeamSample { turns, least_turns, most_turns, ..TeamSample::default() };
        assert!((fairness(&sample) - truth).abs() < 1e-12);
    }
}

/// On this machine: an add to a word that two CPUs share costs more than to words far apart.
#[test]
fn sharing_costs_more_than_not_sharing() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let seats = seats(&cpus[..2]);
    let best_ns = |operation, distance_bytes| {
        let team = visit(&seats, 200_000_000, 1);
        let mut each: Vec<f64> = Vec::new();
        // On a busy machine the two are rarely on their CPUs at once.
        for _ in 0..20 {
            let found = take(&team, operation, distance_bytes, 40).unwrap();
            let kept = found.samples.iter().filter(|s| s.disturbance.is_none());
            each.extend(kept.map(|s| s.long_ticks as f64 / (s.turns as f64 * 256.0)));
            if each.len() >= 40 {
                break;
            }
        }
        each.sort_by(f64::total_cmp);
        assert!(!each.is_empty(), "the two never worked at once");
        each[each.len() / 2]
    };
    let (shared, apart) = (best_ns(Operation::FetchAdd, 0), best_ns(Operation::FetchAdd, 4_096));
    println!("fetch_add: {shared:.2} ns shared, {apart:.2} apart");
    assert!(shared > 1.3 * apart, "{shared} shared, {apart} apart");
    for operation in [Operation::Cas, Operation::Swap, Operation::StoreLoad, Operation::Load] {
        let ns = best_ns(operation, 0);
        println!("{}: {ns:.2} ns", operation.name());
        assert!(ns > 0.05 && ns < 10_000.0, "{}: {ns}", operation.name());
    }
}
