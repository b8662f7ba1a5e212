//! The read-write lock of the C library.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::Sharing;
use super::place::{Place, checked};

/// `pthread_rwlock_t` of the default kind (readers go first with glibc).
#[derive(Debug)]
pub struct RwLock(Place<libc::pthread_rwlock_t>);

#[derive(Debug)]
pub struct ReadHeld<'a> {
    lock: &'a RwLock,
    /// Only the thread that locked may unlock.
    here: PhantomData<*const ()>,
}

#[derive(Debug)]
pub struct WriteHeld<'a> {
    lock: &'a RwLock,
    here: PhantomData<*const ()>,
}

impl RwLock {
    /// A free lock.
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let place = Place::<libc::pthread_rwlock_t>::new()?;
        let mut attributes = MaybeUninit::<libc::pthread_rwlockattr_t>::uninit();
        // SAFETY: writable memory of the right type.
        checked(unsafe { libc::pthread_rwlockattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialized above.
        let set = unsafe { libc::pthread_rwlockattr_setpshared(attributes.as_mut_ptr(), sharing.pshared()) };
        let made = checked(set).and_then(|()| {
            // SAFETY: zeroed memory that nobody uses yet, and initialized attributes.
            checked(unsafe { libc::pthread_rwlock_init(place.pointer(), attributes.as_ptr()) })
        });
        // SAFETY: initialized above, and not used after this.
        unsafe { libc::pthread_rwlockattr_destroy(attributes.as_mut_ptr()) };
        made.map(|()| Self(place))
    }

    /// Locks for reading. `None` when the library refuses (too many readers).
    #[inline]
    pub fn read(&self) -> Option<ReadHeld<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_rwlock_rdlock(self.0.pointer()) };
        (code == 0).then(|| ReadHeld { lock: self, here: PhantomData })
    }

    /// Locks for writing. `None` when the library refuses (this thread holds it already).
    #[inline]
    pub fn write(&self) -> Option<WriteHeld<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_rwlock_wrlock(self.0.pointer()) };
        (code == 0).then(|| WriteHeld { lock: self, here: PhantomData })
    }
}

impl Drop for ReadHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it: the value can't leave the thread.
        unsafe { libc::pthread_rwlock_unlock(self.lock.0.pointer()) };
    }
}

impl Drop for WriteHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { libc::pthread_rwlock_unlock(self.lock.0.pointer()) };
    }
}
