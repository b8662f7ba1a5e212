//! Tests that need the CPUs of this machine run one at a time: two would measure each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this crate needs the CPUs; keep what it returns until the end of the test.
pub(crate) fn lock() -> MutexGuard<'static, ()> {
    static CPUS: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind that the next would depend on.
    CPUS.lock().unwrap_or_else(PoisonError::into_inner)
}
