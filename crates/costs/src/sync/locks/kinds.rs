//! The kinds of locks, by name, and how one is made.

use std::io;

use machmeter_engine::team::Arena;
use machmeter_sys::sync::{Mutex, RwLock, Sharing, Word};

use super::lock::{FutexMutex, Lock, Readers, TestTestAndSet, Writers};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Spin,
    Futex,
    PosixMutex,
    StdMutex,
    PosixRead,
    PosixWrite,
}

pub(super) const ALL: [Kind; 6] =
    [Kind::Spin, Kind::PosixMutex, Kind::StdMutex, Kind::Futex, Kind::PosixRead, Kind::PosixWrite];

impl Kind {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Spin => "spin_ttas",
            Self::Futex => "mutex_futex",
            Self::PosixMutex => "mutex_pthread",
            Self::StdMutex => "mutex_std",
            Self::PosixRead => "rwlock_pthread_read",
            Self::PosixWrite => "rwlock_pthread_write",
        }
    }

    /// Whether waiters may sleep.
    pub(super) const fn sleeps(self) -> bool {
        !matches!(self, Self::Spin)
    }

    /// Whether several may hold it at once.
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
        Kind::PosixRead => work.run(make(n, |_| Ok(Readers(RwLock::new(sharing)?)))?),
        Kind::PosixWrite => work.run(make(n, |_| Ok(Writers(RwLock::new(sharing)?)))?),
    })
}
