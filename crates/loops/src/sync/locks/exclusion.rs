//! Additions to a plain number under a lock, for the test that the lock excludes. Not timed, but compiled like the timed loops.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use super::lock::{Kind, Lock, LockMemory, WithLocks, with_locks};
use crate::team::Member;

/// A number that threads add to under a lock, and the additions that they counted themselves.
#[derive(Debug, Default)]
pub struct Sum {
    number: AtomicU64,
    counted: AtomicU64,
}

impl Sum {
    /// The number: equal to the additions if the lock excludes.
    pub fn number(&self) -> u64 {
        self.number.load(Ordering::Relaxed)
    }

    /// Additions that the members counted.
    pub fn counted(&self) -> u64 {
        self.counted.load(Ordering::Relaxed)
    }
}

/// The work of one member.
pub type Additions<'a> = Box<dyn Fn(&Member<'_>) + Sync + 'a>;

/// Every member adds 1 to `sum`, `turns` times, under one lock of this kind. A member stops at the deadline.
pub fn additions<'a>(
    kind: Kind,
    memory: &'a LockMemory,
    turns: u64,
    sum: &'a Sum,
) -> Result<Additions<'a>, String> {
    with_locks(kind, 1, memory, Adding { turns, sum })?
}

struct Adding<'a> {
    turns: u64,
    sum: &'a Sum,
}

impl<'m> WithLocks<'m> for Adding<'m> {
    type Output = Result<Additions<'m>, String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let lock = locks.into_iter().next().ok_or("no lock")?;
        let Self { turns, sum: Sum { number, counted } } = self;
        Ok(Box::new(move |member: &Member<'_>| {
            for _ in 0..turns {
                let Some(held) = lock.acquire(member) else { return };
                // Two operations instead of one on purpose: only the lock makes the sum exact.
                let seen = number.load(Ordering::Relaxed);
                black_box(seen);
                number.store(seen + 1, Ordering::Relaxed);
                drop(held);
                counted.fetch_add(1, Ordering::Relaxed);
            }
        }))
    }
}
