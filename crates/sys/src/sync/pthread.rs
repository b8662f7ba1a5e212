//! Mutex, read-write lock and barrier of the C library.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::Sharing;
use super::place::Place;
use crate::call::checked;

/// The functions of the C library for one type of attributes.
pub(super) struct Attributes<A> {
    init: unsafe extern "C" fn(*mut A) -> libc::c_int,
    share: unsafe extern "C" fn(*mut A, libc::c_int) -> libc::c_int,
    destroy: unsafe extern "C" fn(*mut A) -> libc::c_int,
}

const OF_MUTEX: Attributes<libc::pthread_mutexattr_t> = Attributes {
    init: libc::pthread_mutexattr_init,
    share: libc::pthread_mutexattr_setpshared,
    destroy: libc::pthread_mutexattr_destroy,
};
const OF_LOCK: Attributes<libc::pthread_rwlockattr_t> = Attributes {
    init: libc::pthread_rwlockattr_init,
    share: libc::pthread_rwlockattr_setpshared,
    destroy: libc::pthread_rwlockattr_destroy,
};
const OF_BARRIER: Attributes<libc::pthread_barrierattr_t> = Attributes {
    init: libc::pthread_barrierattr_init,
    share: libc::pthread_barrierattr_setpshared,
    destroy: libc::pthread_barrierattr_destroy,
};
pub(super) const OF_CONDITION: Attributes<libc::pthread_condattr_t> = Attributes {
    init: libc::pthread_condattr_init,
    share: libc::pthread_condattr_setpshared,
    destroy: libc::pthread_condattr_destroy,
};

impl<A> Attributes<A> {
    /// Makes attributes, says in them between whom the object works, and makes the object with them.
    pub(super) fn make(
        &self,
        sharing: Sharing,
        make: impl FnOnce(*const A) -> libc::c_int,
    ) -> io::Result<()> {
        let mut attributes = MaybeUninit::<A>::uninit();
        // SAFETY: writable memory of the right type.
        checked(unsafe { (self.init)(attributes.as_mut_ptr()) })?;
        // SAFETY: initialized above.
        let set = checked(unsafe { (self.share)(attributes.as_mut_ptr(), sharing.pshared()) });
        let made = set.and_then(|()| checked(make(attributes.as_ptr())));
        // SAFETY: initialized above, and not used after this.
        unsafe { (self.destroy)(attributes.as_mut_ptr()) };
        made
    }
}

/// `pthread_mutex_t` of the default kind.
#[derive(Debug)]
pub struct Mutex(Place<libc::pthread_mutex_t>);

#[derive(Debug)]
pub struct MutexHeld<'a> {
    mutex: &'a Mutex,
    /// Only the thread that locked may unlock.
    here: PhantomData<*const ()>,
}

impl Mutex {
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let place = Place::new()?;
        init_mutex(place.pointer(), sharing)?;
        Ok(Self(place))
    }

    /// Locks, however long that takes. `None` when the library refuses.
    #[inline]
    pub fn lock(&self) -> Option<MutexHeld<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_mutex_lock(self.0.pointer()) };
        (code == 0).then(|| MutexHeld { mutex: self, here: PhantomData })
    }
}

/// Makes a free mutex at `at`, which is zeroed memory that nobody uses yet.
pub(super) fn init_mutex(at: *mut libc::pthread_mutex_t, sharing: Sharing) -> io::Result<()> {
    // SAFETY: free memory, by the caller's word, and initialized attributes.
    let init = |attributes| unsafe { libc::pthread_mutex_init(at, attributes) };
    OF_MUTEX.make(sharing, init)
}

impl Drop for MutexHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it: the value can't leave the thread.
        unsafe { libc::pthread_mutex_unlock(self.mutex.0.pointer()) };
    }
}

/// `pthread_rwlock_t` of the default kind (readers go first with glibc).
#[derive(Debug)]
pub struct RwLock(Place<libc::pthread_rwlock_t>);

#[derive(Debug)]
pub struct RwLockHeld<'a> {
    lock: &'a RwLock,
    /// Only the thread that locked may unlock.
    here: PhantomData<*const ()>,
}

impl RwLock {
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let place = Place::new()?;
        // SAFETY: zeroed memory that nobody uses yet, and initialized attributes.
        let init = |attributes| unsafe { libc::pthread_rwlock_init(place.pointer(), attributes) };
        OF_LOCK.make(sharing, init)?;
        Ok(Self(place))
    }

    /// Locks for reading. `None` when the library refuses (too many readers).
    #[inline]
    pub fn read(&self) -> Option<RwLockHeld<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_rwlock_rdlock(self.0.pointer()) };
        (code == 0).then(|| RwLockHeld { lock: self, here: PhantomData })
    }

    /// Locks for writing. `None` when the library refuses (this thread holds it already).
    #[inline]
    pub fn write(&self) -> Option<RwLockHeld<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_rwlock_wrlock(self.0.pointer()) };
        (code == 0).then(|| RwLockHeld { lock: self, here: PhantomData })
    }
}

impl Drop for RwLockHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it: the value can't leave the thread.
        unsafe { libc::pthread_rwlock_unlock(self.lock.0.pointer()) };
    }
}

#[derive(Debug)]
pub struct Barrier(Place<libc::pthread_barrier_t>);

impl Barrier {
    /// A barrier for so many members. Errors: none, or more than the library counts.
    pub fn new(members: usize, sharing: Sharing) -> io::Result<Self> {
        let place = Place::new()?;
        let members = u32::try_from(members).map_err(|_| io::ErrorKind::InvalidInput)?;
        // SAFETY: zeroed memory that nobody uses yet, and initialized attributes.
        let init = |attributes| unsafe { libc::pthread_barrier_init(place.pointer(), attributes, members) };
        OF_BARRIER.make(sharing, init)?;
        Ok(Self(place))
    }

    /// Waits, sleeping, until all members called this. False when the library refuses.
    #[inline]
    pub fn wait(&self) -> bool {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_barrier_wait(self.0.pointer()) };
        code == 0 || code == libc::PTHREAD_BARRIER_SERIAL_THREAD
    }
}
