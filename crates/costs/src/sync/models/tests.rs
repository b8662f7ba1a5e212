//! Members made are counted, the operations really happen in every model, and what is planted is found.

use machmeter_engine::cost::{Kind, Pair, Row, Rows};
use machmeter_engine::experiment::{Enough, sample_benches};
use machmeter_engine::sampling::{Bench, HostTiming, Pace, Sampler};
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{self, Seats};
use machmeter_loops::sync::models::Operation;
use machmeter_sys::affinity;
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::thread::monotonic_ns;

use super::analyze;
use super::measure::{self, OF_TWO, PROCESSES, THREADS, USER_THREADS, kind, row};
use crate::testing::{params, seats};

/// Two members on one CPU, or on two.
fn two(cpus: usize) -> Option<Seats> {
    match (cpus, &affinity::mask().unwrap().to_vec()[..]) {
        (1, [one, ..]) => Some(seats(&[*one; 2])),
        (_, [one, two, ..]) => Some(seats(&[*one, *two])),
        _ => None,
    }
}

fn visit(operation: Operation, model: &str, seats: &Seats, limit_ns: u64) -> Result<Vec<(u64, u64)>, String> {
    let team = team::named(model).expect("a model of this program");
    let visit = TeamVisit::new(team, seats, &HostClock::MONOTONIC, 0, limit_ns, 7);
    let mut row = row(&operation.name(), kind(operation), model, seats.cpus.len());
    measure::visit(&visit, operation, 20_000.0, 20_000_000, &mut row, 0.0)?;
    // Of trips there is one batch.
    let short = |p: &Pair| if row.short_turns > 0 { p.short_ticks } else { 1 };
    Ok(row.pairs.iter().map(|p| (short(p), p.long_ticks)).collect())
}

#[test]
fn every_operation_of_two_happens_in_its_model() {
    let _cpus = crate::testing::lock_cpus();
    for (operation, model, cpus) in OF_TWO {
        let (Some(seats), Some(_)) = (two(cpus), team::named(model)) else {
            println!("skipped: {} {model} {cpus}", operation.name());
            continue;
        };
        // On a busy machine the two may hardly run at once; several tries make that improbable.
        let pairs =
            (0..20).map(|_| visit(operation, model, &seats, 2_000_000_000).unwrap()).find(|p| !p.is_empty());
        let pairs = pairs.unwrap_or_else(|| panic!("{} {model} {cpus}", operation.name()));
        assert!(pairs.iter().all(|(short, long)| *short > 0 && *long > 0), "{}", operation.name());
    }
}

#[test]
fn a_visit_ends_soon_after_its_limit() {
    let _cpus = crate::testing::lock_cpus();
    let Some(seats) = two(2) else { return };
    for model in [THREADS, PROCESSES] {
        let begin_ns = monotonic_ns();
        // Too short for anything.
        let found = visit(Operation::Barrier, model, &seats, 1);
        match found {
            // The deadline is looked at now and then, so that a quick visit may have got through.
            Ok(pairs) => {
                assert!(pairs.iter().all(|(short, long)| *short > 0 && *long > 0), "{model}: {pairs:?}");
            }
            // A process that a busy machine lets in too late is killed.
            Err(why) => {
                let late = ["did not begin before the deadline", "did not end within its limit"];
                assert!(late.iter().any(|l| why.contains(l)), "{why}");
            }
        }
        assert!(monotonic_ns() - begin_ns < 5_000_000_000);
    }
}

#[cfg(feature = "user-threads")]
#[test]
fn what_is_created_is_counted() {
    use machmeter_loops::sync::models::user_threads::{Create, Switch};
    let _cpus = crate::testing::lock_cpus();
    let new_row = || row("create_join", Kind::Latency, USER_THREADS, 1);
    let benches = vec![
        Bench::new(new_row(), Create::new(false)),
        Bench::new(new_row(), Create::new(true)),
        Bench::new(new_row(), Switch::default()),
    ];
    // The system's own clock, whose tick is a nanosecond.
    let timing = HostTiming::new(SourceId::MonotonicRaw);
    let mut sampler = Sampler::new(timing, TickRate::NANOSECONDS, 7);
    let until_ns = monotonic_ns() + 20_000_000_000;
    for row in sample_benches(&mut sampler, benches, Pace::of(200_000.0, 2), Enough::visits(2), until_ns) {
        let proof = row.proof.as_ref().expect("counted");
        assert!(proof.expected > 0 && proof.seen == proof.expected, "{proof:?}");
        assert_eq!(row.refused, None);
    }
}

/// A row whose pairs say `ns` per operation, in ticks of a nanosecond.
fn planted(operation: &str, model: &str, cpus: usize, ns: u64) -> Row {
    let pairs = (0..20).map(|i| (50 + 1_000 * ns + i % 3, 50 + 2_000 * ns + i % 2));
    row(operation, Kind::Latency, model, cpus).planted(1_000, pairs)
}

fn analysis(rows: Vec<Row>) -> machmeter_engine::Analysis {
    let rows = Rows::in_nanoseconds(rows);
    (analyze::analyze)(&params(&[]), &rows, 7)
}

#[test]
fn planted_costs_come_out() {
    let a = analysis(vec![
        planted("ping_pong", PROCESSES, 2, 25),
        planted("barrier", USER_THREADS, 2, 90),
        planted("barrier", PROCESSES, 2, 100),
    ]);
    let found: Vec<f64> = a.metrics.iter().filter_map(|m| m.value).collect();
    assert_eq!(found.len(), 3);
    for (value, truth) in found.iter().zip([25.0, 90.0, 100.0]) {
        assert!((value / truth - 1.0).abs() < 0.01, "{value} {truth}");
    }
    assert!(a.warnings.is_empty() && a.datasets.len() == 1, "{:?}", a.warnings);
    let told = crate::testing::row_texts(&crate::sync::info::INFO, &a);
    assert!(told.is_empty() || told[0].starts_with("switch to another"), "{told:?}");
}
