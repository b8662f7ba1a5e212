//! Self-test: the models run the same instructions, so they cost the same; asked in turns, since virtual CPUs may be moved.

use std::sync::atomic::Ordering;

use machmeter_engine::cost::estimate::values_ns;
use machmeter_engine::sampling::Pace;
use machmeter_engine::team::processes::Processes;
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::{self, Arena, Member, Seats, Team};
use machmeter_loops::sync::models::Operation;
use machmeter_stats::quantile::median_of;
use machmeter_sys::process;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use machmeter_sys::sched::Policy;

use super::measure::{self, PROCESSES, THREADS, kind, row};
use crate::sync::cost::NEEDS_TWO;
use machmeter_engine::selftest::machine::{Machine, Steal};
use machmeter_engine::selftest::{Options, SelfCheck, State, check};

/// Most by which processes may differ from threads.
const APART: f64 = 0.10;
/// Time for the pairs of a visit, and for all of it, ns.
const VISIT_NS: u64 = 15_000_000;
const LIMIT_NS: u64 = 200_000_000;
/// Visits of both models that there must be.
const LEAST: usize = 5;

pub(super) fn side_by_sides(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let visits = if options.quick { 12 } else { 40 };
    let bar = "the median ratio of visits that follow each other within 10 % of 1";
    let side_by_side = |operation: Operation| {
        let name = operation.name();
        let what = format!("{name} between two CPUs, {visits} times by threads and by processes");
        let steal = Steal::watch();
        let pairs = visit_pairs(machine, operation, visits);
        let few = pairs.as_ref().ok().map(Vec::len).filter(|n| *n < LEAST);
        let few = few.map(|n| format!("only {n} of {visits} visits were undisturbed"));
        let shown = pairs.map(|pairs| {
            let n = pairs.len();
            let (threads_ns, ratios): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
            let [thread_ns, ratio] = [threads_ns, ratios].map(|all| median_of(&all).unwrap_or(f64::NAN));
            let found = format!("processes take {ratio:.3} times as long ({n} pairs of visits)");
            (format!("{thread_ns:.1} ns by threads"), found, State::of((ratio - 1.0).abs() <= APART))
        });
        check(&format!("models.{name}"), &what, bar, shown)
            .excused(few.as_deref())
            .excused(steal.told(&machine.allowed).as_deref())
    };
    let mut checks: Vec<SelfCheck> = [Operation::PingPong, Operation::HandOver].map(side_by_side).into();
    let steal = Steal::watch();
    let shown = beside_a_bare_loop(machine, options);
    let what = "two user threads in turns, beside a plain loop that resumes them";
    let bare = check("models.switch", what, "within 20 %", shown);
    checks.push(bare.excused(steal.told(&machine.allowed).as_deref()));
    checks
}

/// Most by which the run queue may make a switch costlier.
#[cfg(feature = "user-threads")]
const COSTLIER: f64 = 0.20;

/// Compares switches by the run queue with switches in a plain loop.
#[cfg(feature = "user-threads")]
fn beside_a_bare_loop(machine: &Machine, options: &Options) -> machmeter_engine::selftest::Shown {
    use machmeter_engine::cost::{Cost, Kind, Row};
    use machmeter_engine::experiment::{Enough, sample_benches};
    use machmeter_engine::sampling::Bench;
    use machmeter_loops::sync::models::user_threads::{Bare, Switch};

    let seconds = if options.quick { 1 } else { 3 };
    let rows = machine.sample(|sampler| {
        let row = |name: &str| Row::new("selftest", name, Kind::Latency).per_turn(2.0);
        let benches =
            vec![Bench::new(row("switch"), Switch::default()), Bench::new(row("bare"), Bare::default())];
        let (pace, until_ns) = (Pace::of(Pace::BATCH_NS, 4), monotonic_ns() + seconds * 1_000_000_000);
        sample_benches(sampler, benches, pace, Enough::visits(1_000), until_ns)
    })?;
    let (ns_per_tick, step) = machine.tick();
    let costs: Vec<Cost> = rows.iter().map(|row| Cost::of(row, ns_per_tick, step)).collect();
    let [Some(ours_ns), Some(bare_ns)] = [0, 1].map(|i| costs[i].value_ns()) else {
        return Err(format!("{costs:?}"));
    };
    let ratio = ours_ns / bare_ns;
    let found = format!("{ours_ns:.2} ns with the run queue, {ratio:.3} times as much");
    let state = State::of((ratio - 1.0).abs() <= COSTLIER);
    Ok((format!("{bare_ns:.2} ns a switch in a plain loop"), found, state))
}

#[cfg(not(feature = "user-threads"))]
fn beside_a_bare_loop(_: &Machine, _: &Options) -> machmeter_engine::selftest::Shown {
    Err(super::measure::WITHOUT.to_owned())
}

pub(super) fn killed(machine: &Machine, _: &Options) -> Vec<SelfCheck> {
    const LIMIT_NS: u64 = 500_000_000;
    let what = "one of three member processes is killed, another one sleeps on";
    let bar = "the member and the signal named, in time, and no process left";
    let shown = Arena::new(3, 0).map_err(|e| e.to_string()).map(|pids| {
        let seats = Seats { cpus: vec![machine.cpu; 3], policy: Policy::ordinary() };
        let begin_ns = monotonic_ns();
        let run = Processes.run(&seats, LIMIT_NS, &|m: &Member<'_>| {
            let me = std::process::id();
            pids.cell(m.rank).store(u64::from(me), Ordering::Release);
            match m.rank {
                1 => drop(process::kill_process(me as i32)),
                2 => nanosleep_until(monotonic_ns() + 60_000_000_000),
                _ => {}
            }
        });
        let took_ns = monotonic_ns() - begin_ns;
        let pid = |rank: usize| pids.cell(rank).load(Ordering::Acquire) as i32;
        let left = (0..3).filter(|rank| pid(*rank) > 0 && process::state_of(pid(*rank)).is_some()).count();
        let said = run.map_or_else(|e| e.to_string(), |()| "nothing".to_owned());
        let named = said.contains("member 1 was killed by SIGKILL");
        let found = format!("'{said}' after {:.2} s, {left} processes left", took_ns as f64 / 1e9);
        let state = State::of(named && left == 0 && took_ns < LIMIT_NS + 1_000_000_000);
        ("member 1 gets SIGKILL".to_owned(), found, state)
    });
    vec![check("killed.member", what, bar, shown)]
}

/// Visits by threads, ns, each with how many times as long processes took in the visit beside it.
fn visit_pairs(machine: &Machine, operation: Operation, visits: usize) -> Result<Vec<(f64, f64)>, String> {
    let cpus: Vec<usize> = machine.allowed.iter().take(2).collect();
    if cpus.len() < 2 {
        return Err(NEEDS_TWO.to_owned());
    }
    let seats = Seats { cpus, policy: Policy::ordinary() };
    let (mut pairs, mut lost) = (Vec::new(), "no visit was made".to_owned());
    for i in 0..visits {
        let of = |model| visit(machine, operation, model, &seats, i as u64);
        // Who comes first changes, so that a drift helps nobody.
        let pair = if i % 2 == 0 {
            of(THREADS).and_then(|t| Ok((t, of(PROCESSES)?)))
        } else {
            of(PROCESSES).and_then(|p| Ok((of(THREADS)?, p)))
        };
        match pair {
            Ok((thread_ns, process_ns)) => pairs.push((thread_ns, process_ns / thread_ns)),
            Err(why) => lost = why,
        }
    }
    if pairs.is_empty() { Err(lost) } else { Ok(pairs) }
}

fn visit(
    machine: &Machine,
    operation: Operation,
    model: &str,
    seats: &Seats,
    seed: u64,
) -> Result<f64, String> {
    let team = team::named(model).ok_or("no such model")?;
    let clock = HostClock { source: machine.clock.source(), rate: machine.rate };
    let visit = TeamVisit::new(team, seats, &clock, 0, LIMIT_NS, seed);
    let mut row = row("selftest", kind(operation), model, seats.cpus.len()).per_turn(operation.per_turn());
    measure::visit(&visit, operation, Pace::SHARED_BATCH_NS, VISIT_NS, &mut row, 0.0)?;
    median_of(&values_ns(&row, &row.pairs, machine.tick().0))
        .filter(|ns| *ns > 0.0)
        .ok_or_else(|| format!("a visit of {model} had no undisturbed pair"))
}
