//! Barriers: nobody goes on before all have come. Kinds differ by a factor of a hundred, so each row says which.

use std::sync::atomic::Ordering;

use machmeter_engine::cost::Row;
use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member, heap};
use machmeter_sys::sync::{Barrier, Sharing};

use super::measure::LockVisit;
use crate::sync::wakeups::settle;

machmeter_data::named! { pub(super) enum Kind {
    /// Ours: a counter of arrivals and a generation on which the others spin.
    Spin = "barrier_spin",
    /// `std::sync::Barrier`, for threads.
    Std = "barrier_std",
    /// `pthread_barrier_t`.
    Posix = "barrier_pthread",
} }

impl Kind {
    /// Whether those who wait sleep.
    pub(super) const fn sleeps(self) -> bool {
        !matches!(self, Self::Spin)
    }
}

/// Cells: arrivals, generation, members that went on too early, steps of all members.
const ARRIVED: usize = 0;
const GENERATION: usize = 1;
const EARLY: usize = 2;
const STEPS: usize = 3;
const FIRST_MEMBER: usize = 4;

/// One visit of a row of barriers of this kind.
pub(super) fn visit(
    kind: Kind,
    visit: &LockVisit<'_>,
    sharing: Sharing,
    row: &mut Row,
) -> Result<(), String> {
    let members = visit.members();
    let board = Arena::new(FIRST_MEMBER + members, 0).map_err(|e| e.to_string())?;
    match kind {
        Kind::Spin => {
            let barrier = heap::Barrier::new(board.cell(ARRIVED), board.cell(GENERATION));
            visit
                .take(row, &Steps { wait: |m: &Member<'_>| barrier.wait(m), kind, members, board: &board })?;
        }
        Kind::Std => {
            let barrier = std::sync::Barrier::new(members);
            let wait = |_: &Member<'_>| {
                barrier.wait();
                true
            };
            visit.take(row, &Steps { wait, kind, members, board: &board })?;
        }
        Kind::Posix => {
            let barrier = Barrier::new(members, sharing).map_err(|e| e.to_string())?;
            visit
                .take(row, &Steps { wait: |_: &Member<'_>| barrier.wait(), kind, members, board: &board })?;
        }
    }
    let read = |i: usize| board.cell(i).load(Ordering::Relaxed);
    row.prove("steps with all members present", read(STEPS), read(STEPS).saturating_sub(read(EARLY)));
    Ok(())
}

struct Steps<'a, W> {
    wait: W,
    kind: Kind,
    members: usize,
    board: &'a Arena,
}

impl<W: Fn(&Member<'_>) -> bool + Sync> JointOperation for Steps<'_, W> {
    fn reset(&self) {
        for member in 0..self.members {
            self.board.cell(FIRST_MEMBER + member).store(0, Ordering::Relaxed);
        }
    }

    /// Members that come at once find each other awake. After one has slept, its waker waits first next time, and sleeps.
    fn approach(&self, member: &Member<'_>) -> bool {
        if self.kind.sleeps() && member.rank == 0 {
            settle();
        }
        true
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.steps(member, turns, || {})
    }

    /// A trip is two barriers: a member sleeps at one and wakes at the next, which take it different times.
    #[inline(never)]
    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        let mut second = false;
        self.steps(member, 2 * turns, || {
            if second {
                end();
            }
            second = !second;
        })
    }
}

impl<W: Fn(&Member<'_>) -> bool + Sync> Steps<'_, W> {
    #[inline]
    fn steps(&self, member: &Member<'_>, turns: u64, mut end: impl FnMut()) -> bool {
        let cell = |i: usize| self.board.cell(i);
        let mine = cell(FIRST_MEMBER + member.rank);
        // Looks at one other member only now and then, which costs a line's transfer.
        let other = cell(FIRST_MEMBER + (member.rank + 1) % member.members);
        let mut early = 0;
        for turn in 1..=turns {
            mine.store(turn, Ordering::Release);
            if !(self.wait)(member) {
                return false;
            }
            if turn % 64 == 1 && other.load(Ordering::Acquire) < turn {
                early += 1;
            }
            end();
        }
        cell(EARLY).fetch_add(early, Ordering::Relaxed);
        cell(STEPS).fetch_add(turns, Ordering::Relaxed);
        true
    }
}
