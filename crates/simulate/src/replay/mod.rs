//! Traced programs as programs: "reverse profiling" (Howell, "Reverse Profiling", Edinburgh 1996).
//!
//! What a program calculated between its calls of MPI stays, and what the calls cost is put in anew.

mod calls;
mod expand;
mod goal;
mod matching;
mod split;
mod together;

pub use calls::{Call, Calls, Thread};
pub use expand::{Options, Priced, Replay, replay};
pub use goal::{operations, schedule};
pub use matching::{BASES, Guesses};
pub use split::{Observed, OfRank, Split, Work, split};
pub use together::events;
