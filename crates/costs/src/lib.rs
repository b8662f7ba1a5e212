//! What operations cost: memory, synchronization, calls of the operating system.
//!
//! A probe is a list of parts; a part is a folder, and `kernel.rs` in it is the only place for assembly and unsafe code.
#![deny(unsafe_code)]

pub mod memory;
mod modes;
pub mod ops;
mod show;
pub mod sync;
#[cfg(test)]
mod testing;

pub use memory::Memory;
pub use ops::Ops;
pub use sync::Sync;
