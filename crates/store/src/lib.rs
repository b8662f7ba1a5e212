//! Run documents as JSON, raw samples as Parquet, history, and readers of other tools' files.
//!
//! Every file is written beside its final name and renamed into place, so that a crash, a signal or a full disk leaves
//! either the old file or none. No function here reads the environment or prints: callers pass paths in and show the
//! one-line errors that come out.
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
