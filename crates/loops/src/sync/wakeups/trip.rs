//! Round trips of an event between two members, and a broadcast from one member to all others. Further members keep CPUs busy.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::sync::{Monitor, Sharing};
use machmeter_sys::thread::monotonic_ns;

use super::events::{Event, Way, receive};
use crate::team::{Arena, JointOperation, Member};

/// Time that a member waits before it answers, ns, so that the other member is asleep. The sampler subtracts it.
const SETTLE_NS: u64 = 30_000;

/// Spins until the other member is asleep.
pub(in crate::sync) fn settle() {
    let until_ns = monotonic_ns() + SETTLE_NS;
    while monotonic_ns() < until_ns {
        std::hint::spin_loop();
    }
}

/// One cell: set at the end of a batch of trips; the members that are awake, in a broadcast.
fn board() -> Result<Arena, String> {
    Arena::new(1, 64).map_err(|e| e.to_string())
}

/// Members 0 and 1 wake each other in turns; a turn is a round trip. With `polls` they poll instead of sleeping. With `settles`
/// each member waits before it answers, until the other member must be asleep.
pub fn trip(
    way: Way,
    sharing: Sharing,
    polls: bool,
    settles: bool,
) -> Result<Box<dyn JointOperation>, String> {
    let (there, back) = (way.make(sharing, polls)?, way.make(sharing, polls)?);
    Ok(Box::new(Trip { there, back, polls, settles, board: board()? }))
}

/// Member 0 wakes all others by a condition variable; a turn ends when every member has reported that it is awake.
pub fn broadcast(sharing: Sharing) -> Result<Box<dyn JointOperation>, String> {
    let monitor = Monitor::new(sharing).map_err(|e| e.to_string())?;
    Ok(Box::new(Broadcast { monitor, board: board()? }))
}

/// Both ways are alike, so half a round trip is one way.
struct Trip {
    /// From member 0 to member 1.
    there: Box<dyn Event>,
    back: Box<dyn Event>,
    polls: bool,
    settles: bool,
    board: Arena,
}

impl Trip {
    fn answer(&self, event: &dyn Event) -> bool {
        if self.settles {
            settle();
        }
        event.give()
    }
}

impl JointOperation for Trip {
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

impl Trip {
    #[inline]
    fn steps(&self, member: &Member<'_>, turns: u64, mut end: impl FnMut()) -> bool {
        let over = self.board.cell(0);
        match member.rank {
            0 => {
                let done = (0..turns).all(|_| {
                    let back = self.answer(&*self.there) && receive(&*self.back, member, self.polls);
                    end();
                    back
                });
                over.store(1, Ordering::Release);
                done
            }
            1 => (0..turns).all(|_| receive(&*self.there, member, self.polls) && self.answer(&*self.back)),
            _ => keep_busy(over, member),
        }
    }
}

/// Uses the CPU until the batch is over. Another thread gets the CPU only by preemption.
fn keep_busy(over: &AtomicU64, member: &Member<'_>) -> bool {
    let spinning = Member { relax: &std::hint::spin_loop, ..*member };
    spinning.wait(|| over.load(Ordering::Acquire) != 0)
}

struct Broadcast {
    monitor: Monitor,
    board: Arena,
}

/// The number of a broadcast that ends the batch early.
const CALLED_OFF: u64 = u64::MAX;

impl JointOperation for Broadcast {
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
            // The first time, all members have arrived. They hold the mutex until they wait, so that none misses the broadcast.
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

impl Broadcast {
    fn hear(&self, awake: &AtomicU64, turns: u64) -> bool {
        let Some(mut inside) = self.monitor.enter() else { return false };
        let mut heard = inside.get();
        // A member that arrives after the last broadcast would wait forever.
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

    /// Member 0 gives up before the other member arrives: that member must not wait for a broadcast that is over.
    #[test]
    fn a_member_that_arrives_after_the_last_broadcast_leaves() {
        let broadcast = broadcast(Sharing::Threads).unwrap();
        broadcast.reset();
        let member = |rank| Member {
            rank,
            members: 2,
            deadline_ns: 0,
            relax: &std::hint::spin_loop,
            now_ns: &monotonic_ns,
        };
        assert!(!broadcast.batch(&member(0), 3), "no other member arrived");
        assert!(!broadcast.batch(&member(1), 3));
    }
}
