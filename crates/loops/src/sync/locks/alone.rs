//! Operations of synchronization by one thread alone: locks without contention, and signals without waiters.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::sync::{Monitor, Semaphore, Sharing};

use super::PROOF;
use super::lock::{Kind, Lock, LockMemory, WithLocks, with_locks};
use crate::subject::{Proof, Subject};
use crate::team::Member;

/// The thread as the only member of a team.
const ALONE: Member<'static> = Member {
    rank: 0,
    members: 1,
    deadline_ns: u64::MAX,
    relax: &std::hint::spin_loop,
    now_ns: &machmeter_sys::thread::monotonic_ns,
};

/// A lock that one thread acquires and releases; the number that it protects is the proof.
struct Uncontended<L> {
    lock: L,
    number: AtomicU64,
    turns: u64,
}

impl<L: Lock> Subject for Uncontended<L> {
    #[inline(never)]
    fn run(&mut self, turns: u64) -> bool {
        for done in 0..turns {
            let Some(held) = self.lock.acquire(&ALONE) else {
                self.turns += done;
                return false;
            };
            self.number.store(self.number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            drop(held);
        }
        self.turns += turns;
        true
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new(PROOF, self.turns, self.number.load(Ordering::Relaxed)))
    }
}

/// One thread repeats: acquire a lock of this kind, add 1 to a number, release it.
pub fn uncontended(kind: Kind, memory: &LockMemory) -> Result<Box<dyn Subject + '_>, String> {
    with_locks(kind, 1, memory, Alone)?
}

struct Alone;

impl<'m> WithLocks<'m> for Alone {
    type Output = Result<Box<dyn Subject + 'm>, String>;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output {
        let lock = locks.into_iter().next().ok_or("no lock")?;
        Ok(Box::new(Uncontended { lock, number: AtomicU64::new(0), turns: 0 }))
    }
}

/// An operation that one thread repeats, and that returns whether it succeeded.
struct Repeated<F> {
    once: F,
    done: Proof,
}

impl<F: FnMut() -> bool> Subject for Repeated<F> {
    #[inline(never)]
    fn run(&mut self, turns: u64) -> bool {
        let mut happened = 0;
        for _ in 0..turns {
            happened += u64::from((self.once)());
        }
        self.done.expected += turns;
        self.done.seen += happened;
        happened == turns
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(self.done.clone())
    }
}

/// One thread repeats: post a semaphore, and wait for it.
pub fn semaphore_post_wait() -> Result<Box<dyn Subject>, String> {
    repeated(Semaphore::new(Sharing::Threads), |s| s.post() && s.wait())
}

/// One thread repeats: signal a condition variable on which no thread waits.
pub fn condvar_signal_unheard() -> Result<Box<dyn Subject>, String> {
    repeated(Monitor::new(Sharing::Threads), |m| {
        m.signal();
        true
    })
}

fn repeated<T: 'static>(
    object: io::Result<T>,
    once: impl Fn(&T) -> bool + 'static,
) -> Result<Box<dyn Subject>, String> {
    let object = object.map_err(|e| e.to_string())?;
    let done = Proof::new("operations that succeeded", 0, 0);
    Ok(Box::new(Repeated { once: move || once(&object), done }))
}
