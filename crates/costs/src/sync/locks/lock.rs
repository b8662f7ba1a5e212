//! Kinds of locks: the same generic loops run over every one, compiled for each.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{MutexGuard, PoisonError};

use machmeter_engine::team::{Arena, Member};
use machmeter_sys::sync::{Mutex, MutexHeld, RwLock, RwLockHeld, Sharing, Word};

/// Waiting ends at the deadline where the lock spins; holders always leave locks that sleep, so that those end too.
pub(super) trait Lock: Sync {
    /// Holding it; ends when dropped.
    type Held<'a>
    where
        Self: 'a;

    /// Takes it. `None` when the deadline came first.
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<Self::Held<'a>>;

    /// Whether several may hold it at once.
    fn is_shared(&self) -> bool {
        false
    }
}

/// Test-and-test-and-set (Rudolph & Segall 1984): waiters read until the lock looks free.
pub(super) struct TestTestAndSet<'m>(pub(super) &'m AtomicU64);

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

/// A mutex on a futex without spinning: 0 free, 1 held, 2 held and somebody may sleep (Drepper, "Futexes Are Tricky", 2011).
pub(super) struct FutexMutex(pub(super) Word);

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

/// A lock of readers and writers, from one side.
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

machmeter_data::named! { pub(super) enum Kind {
    Spin = "spin_ttas",
    PosixMutex = "mutex_pthread",
    StdMutex = "mutex_std",
    Futex = "mutex_futex",
    PosixRead = "rwlock_pthread_read",
    PosixWrite = "rwlock_pthread_write",
} }

impl Kind {
    /// Whether waiters may sleep.
    pub(super) const fn sleeps(self) -> bool {
        !matches!(self, Self::Spin)
    }

    pub(super) const fn is_shared(self) -> bool {
        matches!(self, Self::PosixRead)
    }

    /// Whether it works between processes; Rust's locks are for threads.
    pub(super) const fn between_processes(self) -> bool {
        !matches!(self, Self::StdMutex)
    }
}

/// Locks made at most in one room.
const PLACES: usize = 3;

/// Where locks are made: memory for those that consist of a word, and for whom.
pub(super) struct LockMemory {
    words: Arena,
    sharing: Sharing,
}

impl LockMemory {
    pub(super) fn new(sharing: Sharing) -> Result<Self, String> {
        Ok(Self { words: Arena::new(PLACES, 0).map_err(|e| e.to_string())?, sharing })
    }
}

/// What is done with locks of a kind, whatever type they have.
pub(super) trait WithLocks<'m> {
    type Output;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output;
}

/// Makes `n` free locks (at most 3) in `room` and hands them over.
pub(super) fn with_locks<'m, W: WithLocks<'m>>(
    kind: Kind,
    n: usize,
    room: &'m LockMemory,
    work: W,
) -> Result<W::Output, String> {
    fn make<L>(n: usize, one: impl Fn(usize) -> io::Result<L>) -> Result<Vec<L>, String> {
        (0..n.min(PLACES)).map(one).collect::<io::Result<_>>().map_err(|e| e.to_string())
    }
    let sharing = room.sharing;
    Ok(match kind {
        Kind::Spin => work.run(make(n, |i| Ok(TestTestAndSet(room.words.cell(i))))?),
        Kind::Futex => work.run(make(n, |_| Ok(FutexMutex(Word::new(sharing)?)))?),
        Kind::PosixMutex => work.run(make(n, |_| Mutex::new(sharing))?),
        Kind::StdMutex => work.run(make(n, |_| Ok(std::sync::Mutex::new(())))?),
        Kind::PosixRead => work.run(make(n, |_| Ok(Side::<true>(RwLock::new(sharing)?)))?),
        Kind::PosixWrite => work.run(make(n, |_| Ok(Side::<false>(RwLock::new(sharing)?)))?),
    })
}
