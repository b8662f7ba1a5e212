//! Locks whose waiters sleep: our own on a bare futex, and those of the C and Rust libraries.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use machmeter_engine::team::Member;
use machmeter_sys::sync::{
    Mutex, MutexHeld, ReadHeld, RwLock, Semaphore, Sharing, Spin, SpinHeld, Word, WriteHeld,
};

use super::lock::Lock;

/// A mutex on a futex without spinning: 0 free, 1 held, 2 held and somebody may sleep (Drepper, "Futexes Are Tricky", 2011).
pub(in crate::sync) struct FutexMutex(pub(in crate::sync) Word);

pub(in crate::sync) struct FutexHeld<'a>(&'a Word);

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

/// The C library's spin lock. Where members outnumber CPUs, waiters yield, since a holder may have to get a CPU first.
pub(in crate::sync) struct PosixSpin {
    pub(in crate::sync) spin: Spin,
    pub(in crate::sync) crowded: bool,
}

impl Lock for PosixSpin {
    type Held<'a> = SpinHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<SpinHeld<'a>> {
        if !self.crowded {
            return self.spin.lock();
        }
        let mut held = self.spin.try_lock();
        if held.is_none() {
            member.wait(|| {
                held = self.spin.try_lock();
                held.is_some()
            });
        }
        held
    }
}

/// A semaphore of one unit: who has taken it holds the lock. Unlike a mutex it would let anybody give it back.
pub(in crate::sync) struct OneUnit(Semaphore);

pub(in crate::sync) struct UnitHeld<'a>(&'a Semaphore);

impl OneUnit {
    pub(in crate::sync) fn new(sharing: Sharing) -> io::Result<Self> {
        let semaphore = Semaphore::new(sharing)?;
        if semaphore.post() { Ok(Self(semaphore)) } else { Err(io::Error::last_os_error()) }
    }
}

impl Lock for OneUnit {
    type Held<'a> = UnitHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<UnitHeld<'a>> {
        self.0.wait().then(|| UnitHeld(&self.0))
    }
}

impl Drop for UnitHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.post();
    }
}

pub(in crate::sync) struct Readers<L>(pub(in crate::sync) L);

pub(in crate::sync) struct Writers<L>(pub(in crate::sync) L);

impl Lock for Readers<RwLock> {
    type Held<'a> = ReadHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<ReadHeld<'a>> {
        self.0.read()
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Lock for Writers<RwLock> {
    type Held<'a> = WriteHeld<'a>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<WriteHeld<'a>> {
        self.0.write()
    }
}

impl Lock for std::sync::Mutex<()> {
    type Held<'a> = MutexGuard<'a, ()>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<MutexGuard<'a, ()>> {
        Some(self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Lock for Readers<std::sync::RwLock<()>> {
    type Held<'a> = RwLockReadGuard<'a, ()>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<RwLockReadGuard<'a, ()>> {
        Some(self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_shared(&self) -> bool {
        true
    }
}

impl Lock for Writers<std::sync::RwLock<()>> {
    type Held<'a> = RwLockWriteGuard<'a, ()>;

    #[inline]
    fn acquire<'a>(&'a self, _member: &'a Member<'_>) -> Option<RwLockWriteGuard<'a, ()>> {
        Some(self.0.write().unwrap_or_else(PoisonError::into_inner))
    }
}
