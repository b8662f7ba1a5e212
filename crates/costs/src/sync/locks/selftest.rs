//! Self-test: locks are asked whether they exclude, and a lock that does not must be seen.

use machmeter_engine::cost::{Cost, Row};
use machmeter_engine::deadline;
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{Options, SelfCheck, State, check};
use machmeter_engine::team::sampler::{HostClock, TeamVisit};
use machmeter_engine::team::threads::Threads;
use machmeter_engine::team::{Seats, Team};
use machmeter_loops::sync::locks::exclusion::{Sum, additions};
use machmeter_loops::sync::locks::{Kind, LockMemory};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::Sharing;

use super::PART;
use super::contended::visit_open_lock;
use super::measure::LockVisit;
use super::plan::jobs;
use crate::sync::cost::NEEDS_TWO;

pub(super) fn exclusion(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let cpus = machine.allowed.to_vec();
    let turns = if options.quick { 5_000 } else { 50_000 };
    let members = cpus.len().min(4) + 1;
    let what = format!("{members} threads on {} CPUs add to a plain number under a lock", cpus.len());
    let bar = "the number is the sum of the additions, which are all made";
    let mut checks = Vec::new();
    for kind in Kind::ALL.iter().copied().filter(|k| !k.is_shared()) {
        if deadline::stop_requested() {
            break;
        }
        // One more than there are CPUs: those that spin get fewer turns, since holders are switched out.
        let turns = if kind.sleeps() { turns } else { turns / 10 };
        let id = format!("exclusion.{}", kind.name());
        let truth = members as u64 * turns;
        let shown = sums(kind, &cpus, members, turns).map(|(number, counted)| {
            let found = format!("{counted} counted, the number says {number}");
            (format!("{truth} additions"), found, State::of((counted, number) == (truth, truth)))
        });
        checks.push(check(&id, &what, bar, shown));
    }
    checks
}

pub(super) fn open_lock(machine: &Machine, _: &Options) -> Vec<SelfCheck> {
    let what = "a lock that lets everybody in, measured like the others";
    let cpus = machine.allowed.to_vec();
    let row = cpus.get(..2).ok_or_else(|| NEEDS_TWO.to_owned()).and_then(row_of_an_open_lock);
    let shown = row.map(|row| {
        let (found, refused) = match Cost::of(&row, 1.0, 1) {
            Cost::Unknown { why } => (format!("no figure: {why}"), true),
            known => (format!("{known:?}"), false),
        };
        let (made, seen) = row.proof.map_or((0, 0), |p| (p.expected, p.seen));
        let lost = made.saturating_sub(seen);
        // Members that never met lost nothing: then nothing was injected.
        let state = if lost == 0 { State::NotShown } else { State::of(refused) };
        (format!("{lost} additions of {made} lost ({})", PART.name), found, state)
    });
    vec![check("open.noticed", what, "no figure, and the reason", shown)]
}

/// Longest trial, ns.
const LIMIT_NS: u64 = 30_000_000_000;
/// Longest visit of the lock that does not exclude, ns.
const OPEN_LOCK_NS: u64 = 500_000_000;

/// `members` on these CPUs (in turn) add `turns` times each under a lock of this kind. Returns the sum, and the additions that
/// they counted.
fn sums(kind: Kind, cpus: &[usize], members: usize, turns: u64) -> Result<(u64, u64), String> {
    let memory = LockMemory::new(Sharing::Threads)?;
    let seats =
        Seats { cpus: cpus.iter().copied().cycle().take(members).collect(), policy: Policy::ordinary() };
    let sum = Sum::default();
    let work = additions(kind, &memory, turns, &sum)?;
    Threads.run(&seats, LIMIT_NS, &*work).map_err(|e| e.to_string())?;
    Ok((sum.number(), sum.counted()))
}

/// The row of a lock that does not exclude, as the probe takes it, on two CPUs; visits go on (at most 20) until its proof fails.
pub(super) fn row_of_an_open_lock(cpus: &[usize]) -> Result<Row, String> {
    let mut job = jobs(cpus, "threads", false).remove(0);
    let seats = Seats { cpus: job.cpus.clone(), policy: Policy::ordinary() };
    for seed in 0..20 {
        let team = TeamVisit::new(&Threads, &seats, &HostClock::MONOTONIC, 0, OPEN_LOCK_NS, seed);
        let visit = LockVisit::of(team, job.what, 200_000.0, 0.0);
        visit_open_lock(&visit, &mut job.row)?;
        if job.row.proof.as_ref().is_some_and(|p| p.seen < p.expected) {
            break;
        }
    }
    Ok(job.row)
}
