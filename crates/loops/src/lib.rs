//! The loops whose time is a figure, with the types that they are made of.
//!
//! A release compiles this crate for speed and as one unit, and everything that only prepares or explains for size. A generic
//! function is compiled where it is called with concrete types; so a loop that is generic over a clock, a lock or a work unit is
//! called here, behind a function or a trait object that is not generic. `cargo xtask asm` reads the machine code of this crate.

pub mod clock;
pub mod mpi;
pub mod net;
pub mod noise;
pub mod ops;
pub mod subject;
pub mod sync;
pub mod team;
