//! The mutex of the C library.

use std::io;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

use super::Sharing;
use super::place::{Place, checked};

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
    /// A free mutex.
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
    let mut attributes = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
    // SAFETY: writable memory of the right type.
    checked(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
    // SAFETY: initialized above.
    let set =
        checked(unsafe { libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), sharing.pshared()) });
    // SAFETY: by the caller's word; the attributes are initialized.
    let made = set.and_then(|()| checked(unsafe { libc::pthread_mutex_init(at, attributes.as_ptr()) }));
    // SAFETY: initialized above, and not used after this.
    unsafe { libc::pthread_mutexattr_destroy(attributes.as_mut_ptr()) };
    made
}

impl Drop for MutexHeld<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it: the value can't leave the thread.
        unsafe { libc::pthread_mutex_unlock(self.mutex.0.pointer()) };
    }
}
