//! The probes: what is measured, its loop, its analysis, and its simulated machine.
//!
//! A probe is a folder; `kernel.rs` in it is the only place for assembly and unsafe code.
#![deny(unsafe_code)]

/// A registered metric that cannot be negative, as a constant.
macro_rules! metric {
    ($name:ident, $id:literal, [$($p:literal),*], $unit:ident, $better:ident, $text:literal) => {
        #[doc = $text]
        pub const $name: machmeter_data::MetricInfo = machmeter_data::MetricInfo {
            id: $id,
            params: &[$($p),*],
            unit: machmeter_data::quantity::Unit::$unit,
            better: machmeter_data::quantity::Better::$better,
            description: $text,
            may_be_negative: false,
        };
    };
}

pub mod interactive;
pub mod memory;
pub mod noise;
pub mod ops;
mod part;
mod placement;
pub mod selftest;
pub mod sync;
#[cfg(test)]
mod turn;

use machmeter_engine::Entry;

/// All probes, sorted by name.
pub const PROBES: &[Entry] = &[
    Entry::of::<interactive::Interactive>(),
    Entry::of::<memory::Memory>(),
    Entry::of::<noise::Noise>(),
    Entry::of::<ops::Ops>(),
    Entry::of::<sync::Sync>(),
];
