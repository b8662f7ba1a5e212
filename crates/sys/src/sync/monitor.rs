//! The condition variable of the C library with its mutex and the number they protect: a monitor (Hoare 1974).

use std::io;
use std::marker::PhantomData;

use super::Sharing;
use super::place::Place;
use super::pthread::{OF_CONDITION, init_mutex};

#[repr(C)]
#[derive(Debug)]
struct Parts {
    mutex: libc::pthread_mutex_t,
    condition: libc::pthread_cond_t,
    value: u64,
}

/// A number, 0 at first, with a mutex and a condition variable.
#[derive(Debug)]
pub struct Monitor(Place<Parts>);

/// Inside the monitor: the mutex is held.
#[derive(Debug)]
pub struct InMonitor<'a> {
    monitor: &'a Monitor,
    /// Only the thread that locked may unlock.
    here: PhantomData<*const ()>,
}

impl Monitor {
    pub fn new(sharing: Sharing) -> io::Result<Self> {
        let monitor = Self(Place::new()?);
        init_mutex(monitor.mutex(), sharing)?;
        // SAFETY: zeroed memory that nobody uses yet, and initialized attributes.
        let init = |attributes| unsafe { libc::pthread_cond_init(monitor.condition(), attributes) };
        OF_CONDITION.make(sharing, init)?;
        Ok(monitor)
    }

    #[inline]
    fn mutex(&self) -> *mut libc::pthread_mutex_t {
        // SAFETY: the place is mapped and large enough; no reference is formed.
        unsafe { &raw mut (*self.0.pointer()).mutex }
    }

    #[inline]
    fn condition(&self) -> *mut libc::pthread_cond_t {
        // SAFETY: as above.
        unsafe { &raw mut (*self.0.pointer()).condition }
    }

    #[inline]
    fn value(&self) -> *mut u64 {
        // SAFETY: as above.
        unsafe { &raw mut (*self.0.pointer()).value }
    }

    /// Enters. `None` when the library refuses.
    #[inline]
    pub fn enter(&self) -> Option<InMonitor<'_>> {
        // SAFETY: made in `new`, at this address since.
        let code = unsafe { libc::pthread_mutex_lock(self.mutex()) };
        (code == 0).then(|| InMonitor { monitor: self, here: PhantomData })
    }

    /// Wakes one that waits; may be called inside and outside.
    #[inline]
    pub fn signal(&self) {
        // SAFETY: made in `new`, at this address since.
        unsafe { libc::pthread_cond_signal(self.condition()) };
    }

    #[inline]
    pub fn broadcast(&self) {
        // SAFETY: made in `new`, at this address since.
        unsafe { libc::pthread_cond_broadcast(self.condition()) };
    }
}

impl InMonitor<'_> {
    #[inline]
    pub fn get(&self) -> u64 {
        // SAFETY: mapped, aligned, and protected by the mutex, which is held.
        unsafe { self.monitor.value().read() }
    }

    #[inline]
    pub fn set(&mut self, value: u64) {
        // SAFETY: as above.
        unsafe { self.monitor.value().write(value) };
    }

    /// Leaves, sleeps until woken (or for no reason, as POSIX allows), and enters again.
    #[inline]
    pub fn wait(&mut self) {
        // SAFETY: both made in `new`; this thread holds the mutex.
        unsafe { libc::pthread_cond_wait(self.monitor.condition(), self.monitor.mutex()) };
    }
}

impl Drop for InMonitor<'_> {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: this thread locked it: the value can't leave the thread.
        unsafe { libc::pthread_mutex_unlock(self.monitor.mutex()) };
    }
}
