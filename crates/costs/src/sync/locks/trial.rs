//! Trials of locks: whether holders exclude each other, and whether the probe sees it when they do not.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::Row;
use machmeter_engine::team::sampler::{HostClock, TeamVisit, Turns};
use machmeter_engine::team::threads::Threads;
use machmeter_engine::team::{Member, Seats, Team};
use machmeter_sys::sched::Policy;
use machmeter_sys::sync::Sharing;

use super::contended::ContendedVisit;
use super::kinds::{Kind, Room, WithLocks, with_locks};
use super::lock::Lock;
use super::measure::LockVisit;
use super::plan::{Size, jobs};

/// Longest trial, ns.
const LIMIT_NS: u64 = 30_000_000_000;
/// Longest visit of the lock that does not exclude, ns.
const OPEN_LOCK_NS: u64 = 500_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) struct Sums {
    /// The number that they added to, which is not added to in one operation on purpose.
    pub(in crate::sync) number: u64,
    /// Additions as each member counted its own.
    pub(in crate::sync) counted: u64,
}

/// Lets `members` on these CPUs (in turn) add `turns` times each under a lock of this kind.
///
/// # Errors
/// One line: no memory, no member.
pub(in crate::sync) fn sums(kind: Kind, cpus: &[usize], members: usize, turns: u64) -> Result<Sums, String> {
    let room = Room::new(members, Sharing::Threads, members > cpus.len())?;
    let seats =
        Seats { cpus: cpus.iter().copied().cycle().take(members).collect(), policy: Policy::ordinary() };
    with_locks(kind, 1, &room, Adding { seats: &seats, turns })?
}

struct Adding<'s> {
    seats: &'s Seats,
    turns: u64,
}

impl<'m> WithLocks<'m> for Adding<'_> {
    type Output = Result<Sums, String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let lock = locks.first().ok_or("no lock")?;
        let (number, counted) = (AtomicU64::new(0), AtomicU64::new(0));
        let work = |member: &Member<'_>| {
            for _ in 0..self.turns {
                let Some(held) = lock.acquire(member) else { return };
                let seen = number.load(Ordering::Relaxed);
                black_box(seen);
                number.store(seen + 1, Ordering::Relaxed);
                drop(held);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        };
        Threads.run(self.seats, LIMIT_NS, &work).map_err(|e| e.to_string())?;
        Ok(Sums { number: number.into_inner(), counted: counted.into_inner() })
    }
}

struct Open;

impl Lock for Open {
    type Held<'a> = ();

    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<()> {
        Some(())
    }
}

/// The row of a lock that does not exclude, as the probe takes it, on two CPUs; visits go on (at most 20) until its proof fails.
///
/// # Errors
/// One line: no member.
pub(in crate::sync) fn open_lock(cpus: &[usize]) -> Result<Row, String> {
    let mut job = jobs(cpus, "threads", Size::Short).remove(0);
    let seats = Seats { cpus: job.cpus.clone(), policy: Policy::ordinary() };
    for seed in 0..20 {
        let team = TeamVisit::new(&Threads, &seats, &HostClock::MONOTONIC, 0, OPEN_LOCK_NS, seed);
        let visit = LockVisit { team, turns: Turns::of(200_000.0), pairs: 8, regime_ns: 0.0 };
        ContendedVisit { visit: &visit, row: &mut job.row }.run(vec![Open])?;
        if job.row.proof.as_ref().is_some_and(|p| p.seen < p.expected) {
            break;
        }
    }
    Ok(job.row)
}
