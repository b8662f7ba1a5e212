//! The probes: what is measured, its loop, its analysis, and its simulated machine.
//!
//! A probe is a folder; `kernel.rs` in it is the only place for assembly and unsafe code.
#![deny(unsafe_code)]

pub mod noise;

use machmeter_engine::Entry;

/// All probes, sorted by name.
pub const PROBES: &[Entry] = &[Entry::of::<noise::Noise>()];
