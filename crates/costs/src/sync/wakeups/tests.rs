//! Laws of wake-ups: events arrive, sleepers are proven, rows without sleep are refused.

use machmeter_engine::cost::{Cost, Pair, Rows};
use machmeter_engine::team::sampler::{SLEEPS, TURNS_SEEN};
use machmeter_sys::{affinity, thread};

use super::measure::{Wake, What, jobs};
use super::*;
use crate::sync::jobs::Work;
use crate::sync::tests::visit;
use crate::testing::{params, seats};

#[test]
fn every_way_wakes_and_sleep_is_proven() {
    let _cpus = crate::testing::lock_cpus();
    let cpus: Vec<usize> = affinity::mask().unwrap().iter().collect();
    let mut rows = Rows::in_nanoseconds(Vec::new());
    for mut job in jobs(&cpus, "threads", true) {
        for _ in 0..20 {
            if job.row.refused.is_some() || job.row.pairs.len() >= 8 {
                break;
            }
            let start_ns = thread::monotonic_ns();
            let seats = seats(&job.cpus);
            What::perform(&mut job, &visit(&seats, 300_000_000, 0x55), 0.0).unwrap();
            let took_ns = thread::monotonic_ns() - start_ns;
            assert!(took_ns < 10_000_000_000, "{:?} took {took_ns} ns", job.what);
        }
        rows.rows.push(What::conclude(job));
    }
    let a = analyze::analyze(&params(&[]), &rows, 1);
    assert!(a.metrics.iter().all(|m| m.value.is_none_or(|v| v > 0.0 && v.is_finite())));
    // The tests beside this one may disturb all others on a busy machine, but not all switches on one CPU.
    let same = rows.rows.iter().filter(|r| r.text("wake") == Wake::SameCpu.name());
    let known = same.filter(|r| matches!(rows.cost(r), Cost::Known(_))).count();
    assert!(known >= 1, "{known}");
    for row in rows.rows.iter().filter(|r| r.text("wake") == Wake::Idle.name() && !r.pairs.is_empty()) {
        let operations = row.per_turn * row.extras[TURNS_SEEN];
        assert!(row.extras[SLEEPS] >= 0.85 * operations, "{:?}", row.extras);
    }
}

fn planted(slept_of_100: u64, awake: f64, pairs: usize) -> Rows {
    let mut job = jobs(&[0, 1], "threads", false)
        .into_iter()
        .find(|j| matches!(j.what, What::Trip(_, Wake::Idle)))
        .unwrap();
    job.row.long_turns = 1;
    job.row.pairs = vec![Pair { at_ns: 0.0, long_ticks: 20_000, ..Pair::default() }; pairs];
    job.row.rejected.partner = awake as u64;
    job.row.extras.insert(TURNS_SEEN.to_owned(), 50.0);
    job.row.extras.insert(SLEEPS.to_owned(), slept_of_100 as f64);
    Rows::in_nanoseconds(vec![What::conclude(job)])
}

#[test]
fn a_row_whose_partner_did_not_sleep_is_refused() {
    let analyzed = |rows: &Rows| analyze::analyze(&params(&[]), rows, 1);
    let sound = planted(96, 0.0, 20);
    let a = analyzed(&sound);
    assert_eq!(a.metrics[0].value, Some(10_000.0));
    assert!(a.warnings.is_empty());
    assert_eq!(
        crate::testing::row_texts(&crate::sync::info::INFO, &a),
        ["wake-up by futex, idle CPU: 10.0 us"]
    );
    let none = analyzed(&planted(0, 9.0, 0));
    assert!(none.metrics[0].why.as_deref().is_some_and(|w| w.contains("did not go to sleep")));
    assert!(none.warnings.iter().any(|w| w.code == AWAKE.id));
    assert!(none.metrics[0].value.is_none());
}
