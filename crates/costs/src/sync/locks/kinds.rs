//! The kinds of locks, by name, and how one is made.

use std::io;
use std::sync::atomic::AtomicU64;

use machmeter_engine::team::Arena;
use machmeter_sys::sync::{Mutex, RwLock, Sharing, Spin, Word};

use super::lock::Lock;
use super::sleeping::{FutexMutex, OneUnit, PosixSpin, Readers, Writers};
use super::spin::{self, Queue, TestAndSet, TestTestAndSet, Ticket};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum Kind {
    TestAndSet,
    TestTestAndSet,
    Ticket,
    Queue,
    PosixSpin,
    Futex,
    PosixMutex,
    StdMutex,
    StdRead,
    StdWrite,
    PosixRead,
    PosixWrite,
    Semaphore,
}

pub(in crate::sync) const ALL: [Kind; 13] = [
    Kind::TestAndSet,
    Kind::TestTestAndSet,
    Kind::Ticket,
    Kind::Queue,
    Kind::PosixSpin,
    Kind::Futex,
    Kind::PosixMutex,
    Kind::StdMutex,
    Kind::StdRead,
    Kind::StdWrite,
    Kind::PosixRead,
    Kind::PosixWrite,
    Kind::Semaphore,
];

impl Kind {
    pub(in crate::sync) const fn name(self) -> &'static str {
        match self {
            Self::TestAndSet => "spin_tas",
            Self::TestTestAndSet => "spin_ttas",
            Self::Ticket => "spin_ticket",
            Self::Queue => "spin_mcs",
            Self::PosixSpin => "spin_pthread",
            Self::Futex => "mutex_futex",
            Self::PosixMutex => "mutex_pthread",
            Self::StdMutex => "mutex_std",
            Self::StdRead => "rwlock_std_read",
            Self::StdWrite => "rwlock_std_write",
            Self::PosixRead => "rwlock_pthread_read",
            Self::PosixWrite => "rwlock_pthread_write",
            Self::Semaphore => "semaphore_posix",
        }
    }

    /// Whether waiters sleep.
    pub(in crate::sync) const fn sleeps(self) -> bool {
        !matches!(
            self,
            Self::TestAndSet | Self::TestTestAndSet | Self::Ticket | Self::Queue | Self::PosixSpin
        )
    }

    /// Whether several may hold it at once.
    pub(in crate::sync) const fn is_shared(self) -> bool {
        matches!(self, Self::StdRead | Self::PosixRead)
    }

    /// Whether it works between processes; Rust's locks are for threads.
    pub(in crate::sync) const fn between_processes(self) -> bool {
        !matches!(self, Self::StdMutex | Self::StdRead | Self::StdWrite)
    }
}

/// Where locks are made: memory for those that consist of words, and for whom.
pub(in crate::sync) struct Room {
    memory: Arena,
    members: usize,
    sharing: Sharing,
    crowded: bool,
}

/// Locks made at most in one room.
const PLACES: usize = 3;

impl Room {
    /// For so many members; `crowded` when some share a CPU.
    ///
    /// # Errors
    /// When there is no memory: one line.
    pub(in crate::sync) fn new(members: usize, sharing: Sharing, crowded: bool) -> Result<Self, String> {
        let memory = Arena::new(0, PLACES * spin::words(members) * 8).map_err(|e| e.to_string())?;
        Ok(Self { memory, members, sharing, crowded })
    }

    fn words(&self, place: usize) -> &[AtomicU64] {
        let each = spin::words(self.members);
        &self.memory.heap().atomics()[place * each..(place + 1) * each]
    }
}

/// What is done with locks of a kind, whatever type they have.
pub(in crate::sync) trait WithLocks<'m> {
    type Output;

    fn run<L: Lock + 'm>(self, locks: Vec<L>) -> Self::Output;
}

/// Makes `n` free locks (at most 3) in `room` and hands them over.
///
/// # Errors
/// When the system has none to give: one line.
pub(in crate::sync) fn with_locks<'m, W: WithLocks<'m>>(
    kind: Kind,
    n: usize,
    room: &'m Room,
    work: W,
) -> Result<W::Output, String> {
    fn make<L>(n: usize, one: impl Fn(usize) -> io::Result<L>) -> Result<Vec<L>, String> {
        (0..n.min(PLACES)).map(one).collect::<io::Result<_>>().map_err(|e| e.to_string())
    }
    let sharing = room.sharing;
    Ok(match kind {
        Kind::TestAndSet => work.run(make(n, |i| Ok(TestAndSet::new(room.words(i))))?),
        Kind::TestTestAndSet => work.run(make(n, |i| Ok(TestTestAndSet::new(room.words(i))))?),
        Kind::Ticket => work.run(make(n, |i| Ok(Ticket::new(room.words(i))))?),
        Kind::Queue => work.run(make(n, |i| Ok(Queue::new(room.words(i))))?),
        Kind::PosixSpin => {
            work.run(make(n, |_| Ok(PosixSpin { spin: Spin::new(sharing)?, crowded: room.crowded }))?)
        }
        Kind::Futex => work.run(make(n, |_| Ok(FutexMutex(Word::new(sharing)?)))?),
        Kind::PosixMutex => work.run(make(n, |_| Mutex::new(sharing))?),
        Kind::StdMutex => work.run(make(n, |_| Ok(std::sync::Mutex::new(())))?),
        Kind::StdRead => work.run(make(n, |_| Ok(Readers(std::sync::RwLock::new(()))))?),
        Kind::StdWrite => work.run(make(n, |_| Ok(Writers(std::sync::RwLock::new(()))))?),
        Kind::PosixRead => work.run(make(n, |_| Ok(Readers(RwLock::new(sharing)?)))?),
        Kind::PosixWrite => work.run(make(n, |_| Ok(Writers(RwLock::new(sharing)?)))?),
        Kind::Semaphore => work.run(make(n, |_| OneUnit::new(sharing))?),
    })
}
