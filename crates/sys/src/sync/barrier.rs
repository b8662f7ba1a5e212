//! The barrier of the C library.

use std::io;

use super::Sharing;
use super::place::{Place, checked};

#[derive(Debug)]
pub struct Barrier(Place<libc::pthread_barrier_t>);

impl Barrier {
    /// A barrier for so many members.
    /// Errors: the system's error: no members, or more than the library counts.
    pub fn new(members: usize, sharing: Sharing) -> io::Result<Self> {
        let place = Place::new()?;
        let members = u32::try_from(members).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut attributes = std::mem::MaybeUninit::<libc::pthread_barrierattr_t>::uninit();
        // SAFETY: writable memory of the right type.
        checked(unsafe { libc::pthread_barrierattr_init(attributes.as_mut_ptr()) })?;
        // SAFETY: initialized above.
        let set = unsafe { libc::pthread_barrierattr_setpshared(attributes.as_mut_ptr(), sharing.pshared()) };
        let made = checked(set).and_then(|()| {
            // SAFETY: zeroed memory that nobody uses yet, and initialized attributes.
            checked(unsafe { libc::pthread_barrier_init(place.pointer(), attributes.as_ptr(), members) })
        });
        // SAFETY: initialized above, and not used after this.
        unsafe { libc::pthread_barrierattr_destroy(attributes.as_mut_ptr()) };
        made.map(|()| Self(place))
    }

    /// Waits, sleeping, until all members called this. False when the library refuses.
    #[inline]
    pub fn wait(&self) -> bool {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_barrier_wait(self.0.pointer()) };
        code == 0 || code == libc::PTHREAD_BARRIER_SERIAL_THREAD
    }
}
