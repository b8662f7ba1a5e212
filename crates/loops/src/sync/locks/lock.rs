//! Kinds of locks. The loops of the other modules are generic over [`Lock`] and are compiled once for each kind.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use machmeter_sys::sync::{Mutex, MutexHeld, RwLock, RwLockHeld, Sharing, Word};

use crate::team::{Arena, Member};

/// A lock of one kind. A member that spins gives up at the deadline. A lock that sleeps has no deadline: its holder always
/// releases it, so its waiters end too.
pub(super) trait Lock: Sync {
    /// Proof that a member holds the lock; dropping it releases the lock.
    type Held<'a>
    where
        Self: 'a;

    /// Acquires the lock. `None` if the deadline came first.
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<Self::Held<'a>>;

    /// Whether several members may hold the lock at once.
    fn is_shared(&self) -> bool {
        false
    }
}

/// Test-and-test-and-set (Rudolph & Segall 1984): waiters read until the lock looks free.
pub(super) struct TestTestAndSet<'m>(&'m AtomicU64);

pub(super) struct WordHeld<'a>(&'a AtomicU64);

impl Drop for WordHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

impl Lock for TestTestAndSet<'_> {
    type Held<'a>
        = WordHeld<'a>
    where
        Self: 'a;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<WordHeld<'a>> {
        let take = || self.0.load(Ordering::Relaxed) == 0 && self.0.swap(1, Ordering::Acquire) == 0;
        (take() || member.wait(take)).then(|| WordHeld(self.0))
    }
}

/// A mutex on a futex without spinning: 0 free, 1 held, 2 held and a waiter may sleep (Drepper, "Futexes Are Tricky", 2011).
pub(super) struct FutexMutex(Word);

pub(super) struct FutexHeld<'a>(&'a Word);

impl Lock for FutexMutex {
    type Held<'a> = FutexHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<FutexHeld<'a>> {
        let word = self.0.value();
        if word.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            while word.swap(2, Ordering::Acquire) != 0 {
                self.0.wait(2, None);
            }
        }
        Some(FutexHeld(&self.0))
    }
}

impl Drop for FutexHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.0.value().swap(0, Ordering::Release) == 2 {
            self.0.wake(1);
        }
    }
}

impl Lock for Mutex {
    type Held<'a> = MutexHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<MutexHeld<'a>> {
        self.lock()
    }
}

impl Lock for std::sync::Mutex<()> {
    type Held<'a> = MutexGuard<'a, ()>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<MutexGuard<'a, ()>> {
        Some(self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One side of a lock of readers and writers.
pub(super) struct Side<const READS: bool>(RwLock);

impl<const READS: bool> Lock for Side<READS> {
    type Held<'a> = RwLockHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<RwLockHeld<'a>> {
        if READS { self.0.read() } else { self.0.write() }
    }

    fn is_shared(&self) -> bool {
        READS
    }
}

machmeter_data::named! {
/// A kind of lock.
pub enum Kind {
    Spin = "spin_ttas",
    PosixMutex = "mutex_pthread",
    StdMutex = "mutex_std",
    Futex = "mutex_futex",
    PosixRead = "rwlock_pthread_read",
    PosixWrite = "rwlock_pthread_write",
} }

impl Kind {
    /// Whether waiters may sleep.
    pub const fn sleeps(self) -> bool {
        !matches!(self, Self::Spin)
    }

    /// Whether several members may hold the lock at once.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::PosixRead)
    }

    /// Whether the lock works between processes; the locks of Rust's library are for threads.
    pub const fn between_processes(self) -> bool {
        !matches!(self, Self::StdMutex)
    }
}

/// Locks that one [`LockMemory`] holds at most.
const PLACES: usize = 3;

/// Shared memory for locks that consist of one word, and the sharing (threads or processes) of all locks made with it.
pub struct LockMemory {
    words: Arena,
    sharing: Sharing,
}

impl LockMemory {
    /// Maps the memory.
    pub fn new(sharing: Sharing) -> Result<Self, String> {
        Ok(Self { words: Arena::new(PLACES, 0).map_err(|e| e.to_string())?, sharing })
    }
}

/// Work on locks of any kind, generic over the type of the lock.
pub(super) trait WithLocks<'m> {
    type Output;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output;
}

/// Makes `n` free locks (at most 3) in `memory` and passes them to `work`.
pub(super) fn with_locks<'m, W: WithLocks<'m>>(
    kind: Kind,
    n: usize,
    memory: &'m LockMemory,
    work: W,
) -> Result<W::Output, String> {
    fn make<L>(n: usize, one: impl Fn(usize) -> io::Result<L>) -> Result<Vec<L>, String> {
        (0..n.min(PLACES)).map(one).collect::<io::Result<_>>().map_err(|e| e.to_string())
    }
    let sharing = memory.sharing;
    Ok(match kind {
        Kind::Spin => work.run(make(n, |i| Ok(TestTestAndSet(memory.words.cell(i))))?),
        Kind::Futex => work.run(make(n, |_| Ok(FutexMutex(Word::new(sharing)?)))?),
        Kind::PosixMutex => work.run(make(n, |_| Mutex::new(sharing))?),
        Kind::StdMutex => work.run(make(n, |_| Ok(std::sync::Mutex::new(())))?),
        Kind::PosixRead => work.run(make(n, |_| Ok(Side::<true>(RwLock::new(sharing)?)))?),
        Kind::PosixWrite => work.run(make(n, |_| Ok(Side::<false>(RwLock::new(sharing)?)))?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A member at its deadline does not get a lock that spins, and does not take it from its holder.
    #[test]
    fn a_spin_lock_is_not_acquired_after_the_deadline() {
        struct Late;
        impl<'m> WithLocks<'m> for Late {
            type Output = (bool, bool);

            fn run<L: Lock + 'm>(self, locks: Vec<L>) -> (bool, bool) {
                let late = |rank| Member {
                    rank,
                    members: 2,
                    deadline_ns: 0,
                    relax: &|| {},
                    now_ns: &machmeter_sys::thread::monotonic_ns,
                };
                let (a, b) = (late(0), late(1));
                let held = locks[0].acquire(&a);
                let got = locks[0].acquire(&b).is_some();
                let again = locks[0].acquire(&b).is_some();
                drop(held);
                (got, again)
            }
        }
        let memory = LockMemory::new(Sharing::Threads).unwrap();
        assert_eq!(with_locks(Kind::Spin, 1, &memory, Late).unwrap(), (false, false));
    }
}
