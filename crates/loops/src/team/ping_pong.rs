//! A word that two members compare and swap in turns.
//!
//! A waiting member spins without a pause instruction, which would add its own length. It reads the deadline once in 4,096 turns,
//! so a partner without a CPU cannot hold it.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{JointOperation, Member};

/// Round trips before the time of a batch begins: the partner may have been on its way into its loop.
pub const WARM_TRIPS: u64 = 10;
/// Round trips of a batch whose length is fixed.
pub const TRIPS: u64 = 100;
/// Turns of a waiting loop between two looks at the deadline.
const LOOKS: u32 = 4_096;

/// Waits until `done`, spinning; false when the deadline came first.
#[inline(always)]
pub fn spin_until(member: &Member<'_>, mut done: impl FnMut() -> bool) -> bool {
    loop {
        for _ in 0..LOOKS {
            if done() {
                return true;
            }
        }
        if !goes_on(member) {
            return false;
        }
    }
}

#[cold]
#[inline(never)]
fn goes_on(member: &Member<'_>) -> bool {
    (member.relax)();
    !member.is_late()
}

/// Round trips of a word that two members compare and swap. Member 0 is timed, so no clocks are compared.
#[derive(Clone, Copy)]
pub struct PingPong<'a>(pub &'a AtomicU64);

impl PingPong<'_> {
    /// The member's side: swaps the word as often as it comes back.
    #[inline(never)]
    pub fn exchange(self, member: &Member<'_>, trips: u64) -> bool {
        let (from, to) = if member.rank == 0 { (0, 1) } else { (1, 0) };
        let swapped = || self.0.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        (0..trips).all(|_| spin_until(member, swapped))
    }
}

impl JointOperation for PingPong<'_> {
    fn reset(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    fn approach(&self, member: &Member<'_>) -> bool {
        self.exchange(member, WARM_TRIPS)
    }

    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.exchange(member, turns)
    }
}
