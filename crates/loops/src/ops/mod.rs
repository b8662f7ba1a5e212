//! Operations of one thread: arithmetic, clocks, copies, system calls, processes, streams of the C library.

pub mod arithmetic;
pub mod calls;
pub mod daxpy;
pub mod decades;
pub mod passes;
pub mod processes;
pub mod repeated;
pub mod switch;
pub mod touches;
