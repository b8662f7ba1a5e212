//! `LogGPS` (Culler 1993, Alexandrov 1995, Ino 2001): latency L, overheads `o_s` and `o_r`, gap g between messages, gap G per byte.
//!
//! The method is PRTT(n, d, s) (Hoefler, Lichei and Rehm 2007): n messages of s bytes with work of length d between them, and one
//! reply, timed by the sender's clock alone. With `T(s) = o_s + L + (s - 1) G + o_r`:
//!
//! - `PRTT(1, 0, s) = 2 T(s)`
//! - `PRTT(n, 0, s) = 2 T(s) + (n - 1) y(s)`, `y(s) = max(g + (s - 1) G, o_s, o_r)`
//! - `PRTT(n, d, s) = 2 T(s) + (n - 1) (o_s + d)`, where d is long enough
//!
//! Parameters are those of a range of sizes, since protocols switch by size: a [`Table`] has a [`Segment`] for each.

mod fit;
mod observed;
mod propose;
mod segments;
#[cfg(test)]
mod tests;

pub use fit::{FitError, LEAST_POINTS, fit};
pub use observed::{Measured, SizePoint, TRAIN};
pub use propose::{REFINEMENTS, grid, propose};
pub use segments::{Begins, Latency, Line, Pace, Segment, Table};
