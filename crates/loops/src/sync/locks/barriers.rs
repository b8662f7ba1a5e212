//! Barriers: no member continues before all members have arrived.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::sync::{Barrier, Sharing};

use crate::sync::wakeups::settle;
use crate::team::{Arena, JointOperation, Member, heap};

machmeter_data::named! {
/// A kind of barrier. The costs of kinds differ by a factor of a hundred.
pub enum Kind {
    /// A counter of arrivals, and a generation on which the waiting members spin.
    Spin = "barrier_spin",
    /// `std::sync::Barrier`, for threads.
    Std = "barrier_std",
    /// `pthread_barrier_t`.
    Posix = "barrier_pthread",
} }

impl Kind {
    /// Whether waiting members sleep.
    pub const fn sleeps(self) -> bool {
        !matches!(self, Self::Spin)
    }
}

/// Cells: arrivals, generation, steps that ended too early, steps of all members.
const ARRIVED: usize = 0;
const GENERATION: usize = 1;
const EARLY: usize = 2;
const STEPS: usize = 3;
const FIRST_MEMBER: usize = 4;

/// The counts of all members, in shared memory.
pub struct Board {
    arena: Arena,
    members: usize,
}

impl Board {
    /// Maps the memory for this number of members.
    pub fn new(members: usize) -> Result<Self, String> {
        let arena = Arena::new(FIRST_MEMBER + members, 0).map_err(|e| e.to_string())?;
        Ok(Self { arena, members })
    }

    /// Steps of all members.
    pub fn steps(&self) -> u64 {
        self.cell(STEPS).load(Ordering::Relaxed)
    }

    /// Steps after which another member had not arrived yet.
    pub fn early(&self) -> u64 {
        self.cell(EARLY).load(Ordering::Relaxed)
    }

    fn cell(&self, i: usize) -> &AtomicU64 {
        self.arena.cell(i)
    }
}

/// All members meet at a barrier of this kind. A turn of a batch is one barrier; a trip is two.
pub fn operation(
    kind: Kind,
    sharing: Sharing,
    board: &Board,
) -> Result<Box<dyn JointOperation + '_>, String> {
    let sleeps = kind.sleeps();
    Ok(match kind {
        Kind::Spin => {
            let barrier = heap::Barrier::new(board.cell(ARRIVED), board.cell(GENERATION));
            Box::new(Steps { wait: move |m: &Member<'_>| barrier.wait(m), sleeps, board })
        }
        Kind::Std => {
            let barrier = Box::new(std::sync::Barrier::new(board.members));
            let wait = move |_: &Member<'_>| {
                barrier.wait();
                true
            };
            Box::new(Steps { wait, sleeps, board })
        }
        Kind::Posix => {
            let barrier = Barrier::new(board.members, sharing).map_err(|e| e.to_string())?;
            Box::new(Steps { wait: move |_: &Member<'_>| barrier.wait(), sleeps, board })
        }
    })
}

struct Steps<'a, W> {
    wait: W,
    sleeps: bool,
    board: &'a Board,
}

impl<W: Fn(&Member<'_>) -> bool + Sync> JointOperation for Steps<'_, W> {
    fn reset(&self) {
        for member in 0..self.board.members {
            self.board.cell(FIRST_MEMBER + member).store(0, Ordering::Relaxed);
        }
    }

    /// Makes member 0 arrive last. Members that arrive together find each other awake; once a member has slept, its waker
    /// arrives first at the next barrier, and sleeps there.
    fn approach(&self, member: &Member<'_>) -> bool {
        if self.sleeps && member.rank == 0 {
            settle();
        }
        true
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.steps(member, turns, || {})
    }

    /// A trip is two barriers, because a member sleeps at one and wakes the others at the next, which takes another time.
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
        // A check of another member costs the transfer of a line, so only one step of 64 has one.
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
