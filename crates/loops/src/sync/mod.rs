//! The timed loops of the `sync` verb: threads and processes that share words, locks, events and a heap.
//!
//! Each module exports functions that return a [`Subject`](crate::subject::Subject), which one thread repeats, or a
//! [`JointOperation`](crate::team::JointOperation), which all members of a team repeat at once. The results are trait objects,
//! so that the generic loops are compiled in this crate for each kind of lock, event and barrier. The crate `costs` plans the
//! rows, runs the team and analyzes the samples.

pub mod locks;
pub mod models;
pub mod transfer;
pub mod wakeups;
pub mod words;
