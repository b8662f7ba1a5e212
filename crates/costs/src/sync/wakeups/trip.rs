//! Round trips of an event between two members, and a broadcast from one to all others. Further members keep CPUs busy.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member};
use machmeter_sys::sync::Monitor;
use machmeter_sys::thread::monotonic_ns;

use super::events::{Event, receive};

/// So long a member waits before it answers, ns: else the other may not sleep yet. The waiting is taken off again.
const SETTLE_NS: u64 = 30_000;

pub(in crate::sync) fn settle() {
    let until_ns = monotonic_ns() + SETTLE_NS;
    while monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

pub(super) const CELLS: usize = 1;

/// There and back: half of it is one way, since both ways are alike.
pub(super) struct Trip<'a> {
    /// From member 0 to member 1.
    pub(super) there: &'a dyn Event,
    pub(super) back: &'a dyn Event,
    /// Whether they look again and again instead of sleeping.
    pub(super) polls: bool,
    /// Whether each waits until the other must be asleep.
    pub(super) settles: bool,
    /// One cell: set when the batch is over.
    pub(super) board: &'a Arena,
}

impl Trip<'_> {
    fn answer(&self, event: &dyn Event) -> bool {
        if self.settles {
            settle();
        }
        event.give()
    }
}

impl JointOperation for Trip<'_> {
    fn pause_ns(&self) -> u64 {
        if self.settles { 2 * SETTLE_NS } else { 0 }
    }

    fn reset(&self) {
        self.board.cell(0).store(0, Ordering::Relaxed);
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.steps(member, turns, || {})
    }

    #[inline(never)]
    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        self.steps(member, turns, end)
    }
}

impl Trip<'_> {
    #[inline]
    fn steps(&self, member: &Member<'_>, turns: u64, mut end: impl FnMut()) -> bool {
        let over = self.board.cell(0);
        match member.rank {
            0 => {
                let done = (0..turns).all(|_| {
                    let back = self.answer(self.there) && receive(self.back, member, self.polls);
                    end();
                    back
                });
                over.store(1, Ordering::Release);
                done
            }
            1 => (0..turns).all(|_| receive(self.there, member, self.polls) && self.answer(self.back)),
            _ => keep_busy(over, member),
        }
    }
}

/// Uses the CPU until the batch is over; nobody else gets it who does not take it away.
fn keep_busy(over: &AtomicU64, member: &Member<'_>) -> bool {
    let spinning = Member { relax: &std::hint::spin_loop, ..*member };
    spinning.wait(|| over.load(Ordering::Acquire) != 0)
}

/// One wakes all others by a condition variable; a turn ends when each has said that it is awake.
pub(super) struct Broadcast<'a> {
    pub(super) monitor: &'a Monitor,
    pub(super) board: &'a Arena,
}

/// Number of a broadcast that calls it off.
const CALLED_OFF: u64 = u64::MAX;

impl JointOperation for Broadcast<'_> {
    fn pause_ns(&self) -> u64 {
        SETTLE_NS
    }

    fn reset(&self) {
        self.board.cell(0).store(0, Ordering::Relaxed);
    }

    #[inline(never)]
    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        let awake = self.board.cell(0);
        let others = member.members as u64 - 1;
        if member.rank != 0 {
            return self.hear(awake, turns);
        }
        for turn in 0..=turns {
            // The first time: all have come. They are inside until they begin to wait, so that none can miss the broadcast.
            let all = member.wait(|| awake.load(Ordering::Acquire) >= others * (turn + 1));
            if turn > 0 {
                end();
            }
            if all && turn == turns {
                return true;
            }
            settle();
            let Some(mut inside) = self.monitor.enter() else { return false };
            let next = if all { inside.get() + 1 } else { CALLED_OFF };
            inside.set(next);
            self.monitor.broadcast();
            if !all {
                return false;
            }
        }
        true
    }
}

impl Broadcast<'_> {
    fn hear(&self, awake: &AtomicU64, turns: u64) -> bool {
        let Some(mut inside) = self.monitor.enter() else { return false };
        let mut heard = inside.get();
        // Who comes after that would wait for ever: nobody wakes it any more.
        if heard == CALLED_OFF {
            return false;
        }
        awake.fetch_add(1, Ordering::AcqRel);
        for _ in 0..turns {
            while inside.get() == heard {
                inside.wait();
            }
            heard = inside.get();
            if heard == CALLED_OFF {
                return false;
            }
            awake.fetch_add(1, Ordering::AcqRel);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::sync::Sharing;

    /// The one who wakes gives up before the other has come: that one must not wait for a broadcast that was.
    #[test]
    fn who_comes_after_a_broadcast_was_called_off_goes() {
        let monitor = Monitor::new(Sharing::Threads).unwrap();
        let board = Arena::new(CELLS, 64).unwrap();
        let broadcast = Broadcast { monitor: &monitor, board: &board };
        broadcast.reset();
        let member = |rank| Member {
            rank,
            members: 2,
            deadline_ns: 0,
            relax: &std::hint::spin_loop,
            now_ns: &monotonic_ns,
        };
        assert!(!broadcast.batch(&member(0), 3), "nobody came");
        assert!(!broadcast.batch(&member(1), 3));
    }
}
