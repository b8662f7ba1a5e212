//! What the system offers to threads and processes that wait for each other: futexes, the POSIX objects, event counters and
//! pipes. Each object lies on a page of its own that is mapped shared, so that it works between threads and, when made for
//! them, between processes forked later; and so that no two objects share a cache line.

mod channel;
mod futex;
mod monitor;
mod place;
mod pthread;
mod semaphore;

pub use channel::{EventCounter, Pipe};
pub use futex::Word;
pub use monitor::{InMonitor, Monitor};
pub use pthread::{Barrier, Mutex, MutexHeld, RwLock, RwLockHeld};
pub use semaphore::Semaphore;

/// Between whom an object works. The kernel finds a waiter in one address space more cheaply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sharing {
    /// Threads of one process (`PTHREAD_PROCESS_PRIVATE`, `FUTEX_PRIVATE_FLAG`).
    Threads,
    /// Also processes forked later (`PTHREAD_PROCESS_SHARED`).
    Processes,
}

impl Sharing {
    fn pshared(self) -> libc::c_int {
        match self {
            Self::Threads => libc::PTHREAD_PROCESS_PRIVATE,
            Self::Processes => libc::PTHREAD_PROCESS_SHARED,
        }
    }
}

#[cfg(test)]
mod tests;
