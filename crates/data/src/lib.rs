//! The vocabulary of machmeter: words and shapes only. No input or output, no unsafe code; every other crate speaks it.
//!
//! A run is one [`record::Record`]: facts about the machine before and after, the clock, checks, metrics with intervals,
//! datasets in a few [`shape::Shape`]s that views know how to draw, and references to raw samples stored beside it.
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

/// `named! { pub enum Kind { Cas = "cas", ... } }`: an enum of which each has a name, as in parameters of metrics, and that is listed in
/// `ALL`. Visibility, documentation and further derives as usual.
#[macro_export]
macro_rules! named {
    ($(#[$of_all:meta])* $vis:vis enum $enum:ident { $($(#[$of_one:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$of_all])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $vis enum $enum { $($(#[$of_one])* $variant,)* }

        #[allow(dead_code, reason = "not every list is gone through")]
        impl $enum {
            /// Each of them, in the order of their declaration.
            $vis const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// As in rows and parameters.
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
