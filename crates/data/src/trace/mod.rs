//! Traces of MPI programs: the file that each rank writes, and its reader, which checks every value.
//!
//! A file is a header of [`BLOCK_BYTES`], then blocks of the same size; all numbers are little endian. A block belongs to one thread and holds slots of
//! 32 bytes. Its first slot is a mark (ticks, monotonic clock, CPU time of the thread); the rest are calls, more marks, and communicators with their
//! members. The recorder writes the second word of a slot last, so a slot without it is unfinished. It allocates blocks on the disk before it maps them,
//! and counts them in the header when it takes them. A killed program therefore leaves everything it wrote.
//!
//! | slot | word 0 | word 1: bits 48-63, 0-47 | word 2 | word 3 |
//! | --- | --- | --- | --- | --- |
//! | call | ticks at its start | operation + 1, duration in ticks ([`OPEN`]: not returned) | peer, tag << 32 | bytes, communicator << 48 |
//! | mark | ticks | [`MARK`], thread | monotonic clock, ns | CPU time of the thread, ns |
//! | communicator | flags | [`COMMUNICATOR`], 0 | members | index << 48 |
//! | members | two of them | [`MEMBERS`], 0 | two | two |

#[macro_use]
mod format;
mod read;

pub use format::*;
pub use read::{ANY, Call, Communicator, End, NOBODY, NONE, Thread, Trace, TraceError};

#[cfg(test)]
mod tests;
