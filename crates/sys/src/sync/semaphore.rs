//! The unnamed semaphore of the C library.

use std::io;

use super::Sharing;
use super::place::Place;

/// `sem_t`, 0 at first.
#[derive(Debug)]
pub struct Semaphore(Place<libc::sem_t>);

impl Semaphore {
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let place = Place::new()?;
        let between_processes = libc::c_int::from(sharing == Sharing::Processes);
        // SAFETY: zeroed memory of the right type that nobody uses yet.
        let code = unsafe { libc::sem_init(place.pointer(), between_processes, 0) };
        if code == 0 { Ok(Self(place)) } else { Err(io::Error::last_os_error()) }
    }

    /// Adds one. False when the library refuses (the value would be too large).
    #[inline]
    pub fn post(&self) -> bool {
        // SAFETY: made in `new`, at this address since.
        unsafe { libc::sem_post(self.0.pointer()) == 0 }
    }

    /// Takes one, sleeping until there is one.
    #[inline]
    pub fn wait(&self) -> bool {
        // SAFETY: made in `new`, at this address since.
        while unsafe { libc::sem_wait(self.0.pointer()) } != 0 {
            if io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                return false;
            }
        }
        true
    }

    #[inline]
    pub fn try_wait(&self) -> bool {
        // SAFETY: made in `new`, at this address since.
        unsafe { libc::sem_trywait(self.0.pointer()) == 0 }
    }
}
