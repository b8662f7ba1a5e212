//! The sampler on a simulated team: planted costs come back, and what was disturbed is rejected for the right reason.

use machmeter_sys::sched::Policy;

use super::*;
use crate::cost::{Cost, Kind, Row};
use crate::team::simulated::{Event, SimulatedOperation, SimulatedTeam};
use Disturbance::{Awake, Migrated, Partner, Preempted};

const LIMIT_NS: u64 = 100_000_000;
const TURNS: Turns = Turns::of(50_000.0);

fn take(team: &SimulatedTeam, members: usize, laps: usize, cells: &[TeamCell<'_>]) -> Found {
    let seats = Seats { cpus: (0..members).collect(), policy: Policy::Other { nice: 0 } };
    let visit = TeamVisit { laps, ..TeamVisit::new(team, &seats, team, 0, LIMIT_NS, 7) };
    visit.take(cells).unwrap()
}

fn row(found: &Found, cell: usize, member: usize) -> Row {
    let mut row = Row::new("test", "planted", Kind::Latency);
    found.record(cell, member, &mut row, 0.0);
    row
}

/// That the row says so, whatever happened in the samples that were not kept.
fn assert_says(row: &Row, truth_ns: f64) {
    let cost = Cost::of(row, 1.0, 1);
    let k = cost.known().unwrap_or_else(|| panic!("{cost:?} {:?}", row.rejected));
    assert!((k.value_ns / truth_ns - 1.0).abs() < 0.002, "{truth_ns}: {k:?}");
    assert!(k.max_ns < truth_ns * 1.02, "{truth_ns}: {k:?}");
}

fn reasons(found: &Found, member: usize) -> Vec<Disturbance> {
    let mut reasons: Vec<Disturbance> = found.of(0, member).filter_map(|s| s.disturbance).collect();
    reasons.dedup();
    reasons
}

#[test]
fn planted_costs_come_back_and_the_same_way_each_time() {
    let found = || {
        let team = SimulatedTeam::default();
        [0.8, 25.0, 7_000.0].map(|turn_ns| {
            let operation = SimulatedOperation::new(&team, turn_ns, 40);
            let found = take(&team, 3, 1, &[TeamCell::new(&operation, 3, TURNS, 12)]);
            assert_says(&row(&found, 0, 0), turn_ns);
            let turns = found.samples[0].turns;
            assert!((25_000.0..100_000.0).contains(&(turns as f64 * turn_ns)), "{turn_ns}: {turns}");
            found
        })
    };
    assert_eq!(found(), found());
}

#[test]
fn visits_of_a_row_go_on_with_its_turns() {
    let team = SimulatedTeam::default();
    let operation = SimulatedOperation::new(&team, 70.0, 0);
    let seats = Seats { cpus: vec![0, 1], policy: Policy::Other { nice: 0 } };
    let mut row = Row::new("test", "visited", Kind::Latency);
    for seed in 0..6 {
        let visit = TeamVisit::new(&team, &seats, &team, 0, LIMIT_NS, seed);
        visit.take_row(TeamCell::new(&operation, 2, Turns::of(10_000.0), 4), &mut row, 0.0).unwrap();
        assert_eq!((row.pairs.len() as u64, u64::from(row.next_visit())), (4 * (seed + 1), seed + 2));
    }
    let cost = Cost::of(&row, 1.0, 1);
    assert!(cost.value_ns().is_some_and(|ns| (ns / 70.0 - 1.0).abs() < 0.05), "{cost:?}");
}

/// What happens to member 1 in every seventh batch decides why a sample does not count; in all rules the rest says the truth.
#[test]
fn disturbed_samples_are_rejected_for_their_reason() {
    let each = |event| move |rank: usize, batch: u64| (rank == 1 && batch % 7 == 6).then_some(event);
    for (rule, event, reason) in [
        (Rule::Undisturbed, Event::SwitchedOut(300_000), Preempted),
        (Rule::Undisturbed, Event::Moved, Migrated),
        (Rule::Together, Event::Late(40_000), Partner),
        (Rule::Awake, Event::SwitchedOut(10), Preempted),
    ] {
        let team = SimulatedTeam::default();
        let events = each(event);
        let operation = SimulatedOperation { events: &events, ..SimulatedOperation::new(&team, 40.0, 40) };
        let cell =
            TeamCell { rule, clocked: Clocked::FirstToLast, ..TeamCell::new(&operation, 2, TURNS, 30) };
        let found = take(&team, 2, 1, &[cell]);
        assert_eq!(reasons(&found, 0), [reason], "{rule:?} {event:?}");
        let row = row(&found, 0, 0);
        assert!(row.pairs.len() >= 15 && row.rejected.total() >= 5, "{rule:?}: {:?}", row.rejected);
        assert_says(&row, 40.0);
    }
}

#[test]
fn partners_that_do_not_sleep_as_often_as_they_must_are_awake() {
    for (sleeps, rule, reason) in [
        (1, Rule::Sleeps(2), None),
        (0, Rule::Sleeps(2), Some(Awake)),
        (1, Rule::Sleeps(3), Some(Awake)),
        (2, Rule::Switches, Some(Preempted)),
    ] {
        let team = SimulatedTeam::default();
        let operation = SimulatedOperation { sleeps, ..SimulatedOperation::new(&team, 9_000.0, 300) };
        let cell = TeamCell { rule, ..TeamCell::new(&operation, 2, Turns { least: 4, ..TURNS }, 10) };
        let found = take(&team, 2, 1, &[cell]);
        assert!(found.of(0, 0).all(|s| s.disturbance == reason), "{sleeps} {rule:?}: {found:?}");
        assert_eq!(found.samples.len(), 10);
    }
}

#[test]
fn each_member_has_its_own_time_and_is_never_timed_alone() {
    let team = SimulatedTeam::default();
    let events =
        |rank: usize, batch: u64| (rank == 1 && batch % 9 == 8).then_some(Event::SwitchedOut(70_000));
    let operation = SimulatedOperation { events: &events, ..SimulatedOperation::new(&team, 30.0, 40) };
    let cell = TeamCell {
        clocked: Clocked::EachMember,
        others: Others::UntilLast,
        rule: Rule::Together,
        ..TeamCell::new(&operation, 3, TURNS, 30)
    };
    let found = take(&team, 3, 1, &[cell]);
    for (member, reason) in [(0, Partner), (1, Preempted), (2, Partner)] {
        assert_says(&row(&found, 0, member), 30.0);
        assert_eq!(reasons(&found, member), [reason], "{member}");
    }
}

#[test]
fn what_works_throughout_is_counted_beside_the_first() {
    let team = SimulatedTeam::default();
    // A turn of the first takes as long as one of the others, so that each makes as many.
    let operation = SimulatedOperation::new(&team, 250.0, 0);
    let beside = |batches, rule| TeamCell {
        batches,
        rule,
        others: Others::Throughout,
        ..TeamCell::new(&operation, 3, TURNS, 10)
    };
    let alongside = TeamCell { judged: 1, ..beside(Batches::Timed(100_000.0), Rule::Alongside) };
    let found = take(&team, 3, 1, &[alongside, beside(Batches::Pairs(TURNS), Rule::Together)]);
    let mut timed = Row::new("test", "timed", Kind::Throughput);
    timed.long_turns = 64;
    found.record(0, 0, &mut timed, 0.0);
    assert_eq!(timed.pairs.len(), 10, "{:?}", timed.rejected);
    assert!(timed.pairs.iter().all(|p| (p.long_ticks as f64 / (64.0 * 250.0) - 1.0).abs() < 0.01));
    assert_says(&row(&found, 1, 0), 250.0);
    for s in &found.samples {
        let (own, both) = (s.window_ticks as f64 / 250.0, s.others_turns as f64 / 2.0);
        assert!((both / own - 1.0).abs() < 0.1 && s.most_turns - s.least_turns < 8, "{s:?}");
    }
}

#[test]
fn a_partner_that_is_gone_ends_the_visit_in_time() {
    for batch in [0, 20] {
        let team = SimulatedTeam::default();
        let events = move |rank: usize, n: u64| (rank == 1 && n == batch).then_some(Event::Silent);
        let operation = SimulatedOperation { events: &events, ..SimulatedOperation::new(&team, 40.0, 40) };
        let cells = [TeamCell::new(&operation, 2, TURNS, 30), TeamCell::new(&operation, 2, TURNS, 30)];
        let found = take(&team, 2, 1, &cells);
        assert!(found.samples.len() < 30 && found.of(1, 0).next().is_none(), "the next was not reached");
        let kept: Vec<_> = found.samples.iter().filter(|s| s.disturbance.is_none()).collect();
        assert_eq!(kept.is_empty(), batch == 0, "what came before stands");
        assert!(kept.iter().all(|s| s.at_ns < LIMIT_NS));
    }
}

#[test]
fn an_operation_that_fails_has_no_samples_and_the_next_has() {
    let team = SimulatedTeam::default();
    let broken = |_: usize, _: u64| Some(Event::Fails);
    let bad = SimulatedOperation { events: &broken, ..SimulatedOperation::new(&team, 40.0, 300) };
    let good = SimulatedOperation::new(&team, 12.0, 300);
    let cells = [TeamCell::new(&bad, 2, TURNS, 5), TeamCell::new(&good, 2, TURNS, 5)];
    let found = take(&team, 2, 3, &cells);
    let failed: Vec<_> = found.of(0, 0).map(|s| s.disturbance).collect();
    assert_eq!(failed, [Some(Disturbance::Failed); 3], "once in each lap");
    assert_says(&row(&found, 1, 0), 12.0);
    let laps: Vec<usize> = found.of(1, 0).map(|s| s.lap).collect();
    assert_eq!(laps, [[0; 5], [1; 5], [2; 5]].concat());
}

fn take_trips(operation: &SimulatedOperation<'_>, team: &SimulatedTeam, rule: Rule, visits: usize) -> Row {
    let seats = Seats { cpus: vec![0, 1], policy: Policy::Other { nice: 0 } };
    let mut row = Row::new("test", "trips", Kind::Latency);
    for _ in 0..visits {
        let visit = TeamVisit::new(team, &seats, team, 0, LIMIT_NS, 7);
        let cell = TeamCell { rule, batches: Batches::Trips(64), ..TeamCell::new(operation, 2, TURNS, 1) };
        visit.take_trips(cell, &mut row, 24.0).unwrap();
    }
    row
}

#[test]
fn trips_of_two_modes_come_back_each_by_itself() {
    let team = SimulatedTeam::default();
    // The first turns, which do not count, take far longer; of the rest each fourth is quick.
    let planted = |turn| match turn {
        0..8 => 900_000,
        _ if turn % 4 == 0 => 400,
        _ => 17_000,
    };
    let trip_ns: Option<&(dyn Fn(u64) -> u64 + Sync)> = Some(&planted);
    let operation = SimulatedOperation { trip_ns, sleeps: 1, ..SimulatedOperation::new(&team, 0.0, 0) };
    let row = take_trips(&operation, &team, Rule::Sleeps(2), 10);
    let of = |ticks| row.pairs.iter().filter(|p| p.long_ticks == ticks).count();
    assert_eq!((row.pairs.len(), of(400), of(17_000)), (640, 160, 480));
    assert_eq!((row.short_turns, row.long_turns, row.rejected.total()), (0, 1, 0));
    assert!(row.pairs.windows(2).all(|w| w[0].at_ns < w[1].at_ns), "each has its own moment");
    assert!(row.pairs.iter().all(|p| p.regime_ns == 24.0));
    let visits: Vec<u32> = row.pairs.chunks(64).map(|c| c[0].visit).collect();
    assert!(visits.windows(2).all(|w| w[0] < w[1]) && row.pairs[63].visit == visits[0], "{visits:?}");
    assert_eq!((row.extras[SLEEPS], row.extras[TURNS_SEEN]), (2.0 * 720.0, 720.0));
    assert_says(&row, 17_000.0);
}

#[test]
fn trips_of_a_visit_that_does_not_count_are_rejected_together() {
    let team = SimulatedTeam::default();
    let gone = |rank: usize, batch: u64| (rank == 1 && batch == 3).then_some(Event::Silent);
    let fails = |rank: usize, batch: u64| (rank == 1 && batch == 1).then_some(Event::Fails);
    let rejected = |row: &Row| (row.rejected.partner, row.rejected.failed);
    let new = || SimulatedOperation::new(&team, 9_000.0, 0);
    let awake = take_trips(&new(), &team, Rule::Sleeps(1), 2);
    assert!(awake.pairs.is_empty() && rejected(&awake) == (128, 0), "{:?}", awake.rejected);
    let failed = take_trips(&SimulatedOperation { events: &fails, ..new() }, &team, Rule::Any, 2);
    assert!(failed.pairs.len() == 64 && rejected(&failed) == (0, 64), "{:?}", failed.rejected);
    let lost = take_trips(&SimulatedOperation { events: &gone, ..new() }, &team, Rule::Any, 4);
    assert_eq!((lost.pairs.len(), lost.rejected.total()), (192, 0), "what came before stands");
}
