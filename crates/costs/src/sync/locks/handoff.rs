//! Hand-off: from the release on one CPU to the acquisition on another, half a round trip.
//! Two members go round three locks: each takes the next, which the other holds, then gives its own away.

use std::sync::atomic::Ordering;

use machmeter_engine::cost::Row;
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member};

use super::lock::{Lock, WithLocks};
use super::measure::LockVisit;

/// Locks of the ring: one more than members.
pub(super) const RING: usize = 3;

/// Cells: members that hold a lock; steps of each lock; steps as members count them; both over all batches.
const HOLDING: usize = 0;
const FIRST_LOCK: usize = 1;
const MADE: usize = FIRST_LOCK + RING;
const COUNTED: usize = MADE + 1;
const ADDED: usize = COUNTED + 1;
const CELLS: usize = ADDED + 1;

pub(super) struct HandoffVisit<'v, 'r> {
    pub(super) visit: &'v LockVisit<'v>,
    pub(super) row: &'r mut Row,
}

impl<'m> WithLocks<'m> for HandoffVisit<'_, '_> {
    type Output = Result<(), String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let board = Arena::new(CELLS, 0).map_err(|e| e.to_string())?;
        let ring = Ring { locks, board: &board };
        self.visit.take(self.row, &ring)?;
        let all = |i| board.cell(i).load(Ordering::Relaxed);
        self.row.prove(super::contended::PROOF, all(COUNTED), all(ADDED));
        Ok(())
    }
}

struct Ring<'a, L> {
    locks: Vec<L>,
    board: &'a Arena,
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
        // The deadline may break a batch off: then fewer steps than turns were made.
        for done in 0..turns {
            at = if at + 1 == RING { 0 } else { at + 1 };
            let next = self.locks[at].acquire(member);
            if next.is_none() {
                self.board.cell(MADE).fetch_add(done, Ordering::Relaxed);
                return false;
            }
            let steps = self.board.cell(FIRST_LOCK + at);
            steps.store(steps.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            // Drops the one behind.
            held = next;
            end();
        }
        drop(held);
        self.board.cell(MADE).fetch_add(turns, Ordering::Relaxed);
        true
    }
}
