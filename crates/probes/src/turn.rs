//! Tests that need the CPUs of this machine take turns: two at a time would measure each other.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Waits until no other test of this crate needs the CPUs; keep what it returns until the end of the test.
pub(crate) fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A test that failed has left nothing behind that the next would depend on.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
