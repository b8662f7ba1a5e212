//! Laws of the locks and of their rows.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::{Cost, Rows};
use machmeter_engine::team::sampler::{SLEEPS, TURNS_SEEN, TeamVisit};
use machmeter_engine::team::simulated::SimulatedTeam;
use machmeter_engine::team::threads::Threads;
use machmeter_engine::team::{Member, Team};
use machmeter_loops::sync::locks::{Kind, PROOF, barriers};
use machmeter_sys::sync::Sharing;
use machmeter_sys::{affinity, thread};

use super::measure::{LockVisit, perform};
use super::plan::{Job, Together, jobs};
use super::*;
use crate::sync::tests::visit;
use crate::testing::{params, seats};

/// CPUs of as many members as `members` says for so many CPUs, several on one where there are too few.
fn cpus(members: impl Fn(usize) -> usize) -> Vec<usize> {
    let cpus = affinity::mask().unwrap().to_vec();
    cpus.iter().copied().cycle().take(members(cpus.len())).collect()
}

/// The first job that does this.
fn job(cpus: &[usize], what: Together) -> Job {
    jobs(cpus, "threads", true).into_iter().find(|j| j.what == what).unwrap()
}

/// Writers change two words; readers must never see them differ.
#[test]
fn readers_see_no_half_written_pair() {
    let _cpus = crate::testing::lock_cpus();
    let lock = machmeter_sys::sync::RwLock::new(Sharing::Threads).unwrap();
    let words = [AtomicU64::new(0), AtomicU64::new(0)];
    let torn = AtomicU64::new(0);
    let work = |member: &Member<'_>| {
        for turn in 0..2_000 {
            if member.rank == 0 && turn % 2 == 0 {
                let _held = lock.write();
                for word in &words {
                    word.store(turn, Ordering::Relaxed);
                }
            } else {
                let _held = lock.read();
                let differ = words[0].load(Ordering::Relaxed) != words[1].load(Ordering::Relaxed);
                torn.fetch_add(u64::from(differ), Ordering::Relaxed);
            }
        }
    };
    Threads.run(&seats(&cpus(|_| 3)), 30_000_000_000, &work).unwrap();
    assert_eq!(torn.into_inner(), 0);
}

fn take(job: &mut Job, limit_ns: u64, batch_ns: f64, seed: u64) {
    let seats = seats(&job.cpus);
    let visit = LockVisit::of(visit(&seats, limit_ns, seed), job.what, batch_ns, 0.0);
    perform(&visit, Sharing::Threads, job).unwrap();
}

/// On a busy machine most pairs may be disturbed: visits go on until there are enough, in bounded number.
fn take_until(job: &mut Job, pairs: usize) {
    for seed in 0..25 {
        take(job, 500_000_000, 50_000.0, seed);
        if job.row.pairs.len() >= pairs {
            break;
        }
    }
}

#[test]
fn rows_of_two_members_have_costs_with_proof() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let mut rows = Rows::in_nanoseconds(Vec::new());
    for mut job in jobs(&cpus[..2], "threads", true) {
        take_until(&mut job, 8);
        let proof = job.row.proof.clone().expect("a proof");
        assert!(proof.seen == proof.expected && proof.seen > 0, "{:?}: {proof:?}", job.row);
        rows.rows.push(job.row);
    }
    let known = rows.rows.iter().filter(|r| matches!(rows.cost(r), Cost::Known(_))).count();
    assert!(known * 3 >= rows.rows.len() * 2, "{known} of {}", rows.rows.len());
    let a = analyze::analyze(&params(&[]), &rows, 1);
    assert!(a.metrics.iter().all(|m| m.value.is_none_or(|v| v.is_finite() && v >= 0.0)));
    assert!(a.metrics.iter().any(|m| m.id == "sync.lock_fairness"));
    assert!(a.metrics.iter().any(|m| m.id == "sync.handoff" && m.value.is_some()));
    assert!(!a.warnings.iter().any(|w| w.code == BROKEN.id));
    let told = crate::testing::row_texts(&crate::sync::info::INFO, &a);
    assert!(told.iter().any(|t| t.starts_with("lock handed on, spinning")), "{told:?}");
}

#[test]
fn more_members_than_cpus_end_in_time() {
    let _cpus = crate::testing::lock_cpus();
    for kind in Kind::ALL.iter().copied() {
        let mut job = Job { cpus: cpus(|n| n + 2), ..job(&[0, 1], Together::Contend(kind)) };
        let start_ns = thread::monotonic_ns();
        take(&mut job, 150_000_000, 50_000.0, 0);
        let took_ns = thread::monotonic_ns() - start_ns;
        assert!(took_ns < 5_000_000_000, "{kind:?}: {took_ns} ns");
        let proof = job.row.proof.expect("a proof");
        assert_eq!(proof.seen, proof.expected, "{kind:?}");
    }
}

#[test]
fn a_batch_that_the_deadline_breaks_off_does_not_accuse_the_lock() {
    let Some((_lock, two)) = crate::testing::lock_several() else { return };
    let mut job = job(&two[..2], Together::HandOff(Kind::Spin));
    // Batches would take a second: none ends.
    take(&mut job, 30_000_000, 1e9, 0);
    let proof = job.row.proof.expect("a proof");
    assert!(proof.seen == proof.expected && proof.seen > 0, "{proof:?}");
    assert!(job.row.pairs.is_empty());
}

#[test]
fn a_lock_that_does_not_exclude_has_no_figure() {
    let Some((_lock, cpus)) = crate::testing::lock_several() else { return };
    let row = selftest::row_of_an_open_lock(&cpus[..2]).unwrap();
    let rows = Rows::in_nanoseconds(vec![row]);
    let cost = rows.cost(&rows.rows[0]);
    assert!(matches!(&cost, Cost::Unknown { why } if why.contains("additions under the lock")), "{cost:?}");
    let a = analyze::analyze(&params(&[]), &rows, 1);
    assert!(a.warnings.iter().any(|w| w.code == BROKEN.id));
    assert!(a.metrics.iter().all(|m| m.value.is_none()), "{:?}", a.metrics);
}

/// Barriers and hand-offs of locks that spin, with clocks that only waiting moves: whole visits, exact proofs, the same each time.
#[test]
fn visits_run_unchanged_on_a_simulated_team() {
    let simulated = |what| {
        let team = SimulatedTeam::default();
        let (mut job, seats) = (job(&[0, 1], what), seats(&[0, 1]));
        let visit = TeamVisit::new(&team, &seats, &team, 0, 1_000_000_000, 5);
        perform(&LockVisit::of(visit, what, 5_000.0, 24.0), Sharing::Threads, &mut job).unwrap();
        job.row
    };
    for what in [Together::HandOff(Kind::Spin), Together::Barrier(barriers::Kind::Spin)] {
        let row = simulated(what);
        let proof = row.proof.as_ref().expect("a proof");
        assert!(proof.seen == proof.expected && proof.seen > 0, "{what:?}: {proof:?}");
        assert!(row.pairs.len() == 8 && row.rejected.total() == 0, "{what:?}: {:?}", row.rejected);
        assert!(row.pairs.iter().all(|p| p.long_ticks > p.short_ticks && p.regime_ns == 24.0), "{what:?}");
        assert_eq!(row, simulated(what));
    }
}

/// On the real machine: members of a barrier that sleeps take turns in sleeping, as in a program's loop.
#[test]
fn a_barrier_that_sleeps_has_one_sleeper_each_time() {
    let Some((_lock, two)) = crate::testing::lock_several() else { return };
    let mut job = job(&two[..2], Together::Barrier(barriers::Kind::Posix));
    take_until(&mut job, 256);
    let sleeps = job.row.extras[SLEEPS] / job.row.extras[TURNS_SEEN] / job.row.per_turn;
    assert!((0.85..1.2).contains(&sleeps), "{sleeps} sleeps a barrier, {:?}", job.row.rejected);
    let cost = Cost::of(&job.row, 1.0, 1);
    // A line from CPU to CPU takes some 0.1 us, a wake-up microseconds.
    assert!(cost.value_ns().is_some_and(|ns| ns > 1_000.0), "{cost:?}");
}

#[test]
fn planted_unfair_shares_are_told() {
    let mut job = jobs(&[0, 1], "threads", false).remove(0);
    for i in 0..12 {
        job.row.extras.insert(format!("{}{i:02}", contended::JAIN), 0.55 + 0.001 * f64::from(i));
    }
    job.row.proof = Some(machmeter_engine::cost::Proof::new(PROOF, 9, 9));
    let rows = Rows::in_nanoseconds(vec![job.row]);
    let a = analyze::analyze(&params(&[]), &rows, 1);
    let m = a.metrics.iter().find(|m| m.id == "sync.lock_fairness").unwrap();
    let ci = m.ci.as_ref().unwrap();
    assert!((m.value.unwrap() - 0.5555).abs() < 1e-3 && ci.low < 0.5555 && ci.high > 0.5555 && m.n == 12);
    assert!(a.warnings.iter().any(|w| w.code == UNFAIR.id));
    assert_eq!(a.findings[0].verdict, "uneven");
}
