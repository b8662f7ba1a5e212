//! The vocabulary of machmeter: words and shapes only. No input or output, no unsafe code; every other crate speaks it.
#![forbid(unsafe_code)]

pub mod facts;
