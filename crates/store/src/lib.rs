//! Stores run documents as JSON and raw samples as Parquet, keeps the history, and reads other tools' files.
//!
//! Every file is written beside its final name and renamed into place. A crash, a signal or a full disk therefore leaves either the old file or none. No
//! function here reads the environment or prints: callers pass paths in and print the one-line errors.
#![forbid(unsafe_code)]

pub mod atomic;
pub mod best;
pub mod bounded;
pub mod date;
pub mod document;
mod error;
pub mod foreign;
pub mod history;
pub mod json;
mod keys;
pub mod mpi_trace;
pub mod parquet;
pub mod reference;

pub(crate) use error::Result;
pub use error::StoreError;
pub use foreign::Imported;
pub use history::History;
