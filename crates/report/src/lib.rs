//! Renders records: terminal page, HTML report, one-page card, and exports to other formats.
//!
//! A view depends on the [shape](machmeter_data::Shape) of the data and on no probe. The analysis writes the most important results into the record's
//! summary, and the views show them first. Every figure has its unit, a rejected value appears with the reason, and "unknown" never looks like "pass".
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
