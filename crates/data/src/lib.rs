//! Defines the vocabulary of machmeter: names and types that every other crate uses, without input, output or unsafe code.
//!
//! A run is one [`record::Record`]. It holds facts about the machine before and after, the clock, checks, and metrics with intervals. Its datasets have a few
//! [`shape::Shape`]s that views can draw, and it lists the files of raw samples beside it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

/// `made_from!(Value: u32: |v: u32| ..., ...)`: conversions into a type, one from each of these.
macro_rules! made_from {
    ($to:ty: $($from:ty: $value:expr),* $(,)?) => {
        $(impl From<$from> for $to {
            fn from(v: $from) -> Self {
                $value(v)
            }
        })*
    };
}

/// `named! { pub enum Kind { Cas = "cas", ... } }`: an enum whose variants have names, as in parameters of metrics, and a list `ALL` of its variants.
/// Visibility, documentation and further derives as usual.
#[macro_export]
macro_rules! named {
    ($(#[$of_all:meta])* $vis:vis enum $enum:ident { $($(#[$of_one:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of_all])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $enum { $($(#[$of_one])* $variant,)* }

        #[allow(dead_code, reason = "not every list is gone through")]
        impl $enum {
            /// All variants, in the order of their declaration.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The name in rows and parameters.
            $vis const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

pub mod check;
pub mod code;
pub mod deflated;
pub mod facts;
pub mod finite;
mod follows_clock;
pub mod gaps;
pub mod links;
pub mod metric;
pub mod quantity;
pub mod record;
pub mod samples;
pub mod shape;
pub mod summary;
pub mod text;
pub mod trace;
pub mod visits;

pub use check::{Check, CheckState, Hazard};
pub use code::Code;
pub use facts::{Fact, FactState, FactValue, Facts};
pub use metric::{Interval, Metric, MetricInfo, ParamValue, Params, Quality};
pub use quantity::{Better, Unit};
pub use record::Record;
pub use samples::{Column, Table, Values};
pub use shape::{Dataset, Shape};
pub use visits::Visits;
