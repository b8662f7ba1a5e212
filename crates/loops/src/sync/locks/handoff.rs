//! The hand-off of a lock: from the release on one CPU to the acquisition on another, half a round trip.
//!
//! Two members walk around a ring of three locks. Each member acquires the next lock, which the other member holds, and then
//! releases its previous one.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::{Kind, Lock, LockMemory, WithLocks, with_locks};
use crate::team::{Arena, Disturbance, JointOperation, Member};

/// Locks of the ring: one more than members.
const RING: usize = 3;

/// Cells: members that hold a lock; steps of each lock; steps that the members counted; both sums over all batches.
const HOLDING: usize = 0;
const FIRST_LOCK: usize = 1;
const MADE: usize = FIRST_LOCK + RING;
const COUNTED: usize = MADE + 1;
const ADDED: usize = COUNTED + 1;
const CELLS: usize = ADDED + 1;

/// The counts of two members, in shared memory.
pub struct Board(Arena);

impl Board {
    /// Maps the memory.
    pub fn new() -> Result<Self, String> {
        Arena::new(CELLS, 0).map(Self).map_err(|e| e.to_string())
    }

    /// Steps that the members counted in all batches.
    pub fn counted(&self) -> u64 {
        self.cell(COUNTED).load(Ordering::Relaxed)
    }

    /// The same steps as additions to the numbers that the locks protect.
    pub fn added(&self) -> u64 {
        self.cell(ADDED).load(Ordering::Relaxed)
    }

    fn cell(&self, i: usize) -> &AtomicU64 {
        self.0.cell(i)
    }
}

/// Two members hand locks of this kind to each other; a turn is one step of each member.
pub fn operation<'a>(
    kind: Kind,
    memory: &'a LockMemory,
    board: &'a Board,
) -> Result<Box<dyn JointOperation + 'a>, String> {
    with_locks(kind, RING, memory, Handoff(board))
}

struct Handoff<'a>(&'a Board);

impl<'a> WithLocks<'a> for Handoff<'a> {
    type Output = Box<dyn JointOperation + 'a>;

    fn run<L: Lock + 'a>(self, locks: Vec<L>) -> Self::Output {
        Box::new(Ring { locks, board: self.0 })
    }
}

struct Ring<'a, L> {
    locks: Vec<L>,
    board: &'a Board,
}

impl<L: Lock> JointOperation for Ring<'_, L> {
    fn reset(&self) {
        self.board.cell(HOLDING).store(0, Ordering::Relaxed);
        (FIRST_LOCK..=MADE).for_each(|i| self.board.cell(i).store(0, Ordering::Relaxed));
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.steps(member, turns, || {})
    }

    #[inline(never)]
    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        self.steps(member, turns, end)
    }

    fn judge(&self, _turns: u64, _clean: bool) -> Option<Disturbance> {
        let added: u64 = (0..RING).map(|i| self.board.cell(FIRST_LOCK + i).load(Ordering::Relaxed)).sum();
        self.board.cell(COUNTED).fetch_add(self.board.cell(MADE).load(Ordering::Relaxed), Ordering::Relaxed);
        self.board.cell(ADDED).fetch_add(added, Ordering::Relaxed);
        None
    }
}

impl<L: Lock> Ring<'_, L> {
    #[inline]
    fn steps(&self, member: &Member<'_>, turns: u64, mut end: impl FnMut()) -> bool {
        let mut at = member.rank;
        let mut held = self.locks[at].acquire(member);
        let holding = self.board.cell(HOLDING);
        holding.fetch_add(1, Ordering::AcqRel);
        if held.is_none() || !member.wait(|| holding.load(Ordering::Acquire) == 2) {
            return false;
        }
        // If the deadline ends the batch, the members made fewer steps than turns.
        for done in 0..turns {
            at = if at + 1 == RING { 0 } else { at + 1 };
            let next = self.locks[at].acquire(member);
            if next.is_none() {
                self.board.cell(MADE).fetch_add(done, Ordering::Relaxed);
                return false;
            }
            let steps = self.board.cell(FIRST_LOCK + at);
            steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // Drops the previous lock, which releases it.
            held = next;
            end();
        }
        drop(held);
        self.board.cell(MADE).fetch_add(turns, Ordering::Relaxed);
        true
    }
}
