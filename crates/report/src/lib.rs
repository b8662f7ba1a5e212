//! Views of records: terminal page, HTML report, one-page card, tables and exporters.
//!
//! Views are keyed to the [shape](machmeter_data::Shape) of data and know no probe: what a person should read first stands
//! in the record's summary, written by the analysis. Every figure is shown with its unit; a value that was rejected is
//! shown as such with the reason, and "unknown" never looks like "pass".
#![forbid(unsafe_code)]

mod axis;
mod budget;
pub mod card;
mod chart;
mod digest;
pub mod format;
mod graph;
pub mod html;
mod identity;
mod label;
mod machine;
mod pictures;
mod svg;
pub mod terminal;
mod tiles;
pub mod usual;
