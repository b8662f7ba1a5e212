//! Locks and barriers: by one thread alone, with all members contending, and handed from one CPU to another.
//!
//! A plain number that a lock protects proves that the lock excludes: the sum must be exact. Members also count their additions
//! themselves, and a `Board` in shared memory keeps both sums.

pub mod alone;
pub mod barriers;
pub mod contended;
pub mod exclusion;
pub mod handoff;
mod lock;

pub use lock::{Kind, LockMemory};

/// The name of the proof of every lock.
pub const PROOF: &str = "additions under the lock, of those made";
