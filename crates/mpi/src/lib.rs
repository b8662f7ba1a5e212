//! What message-passing calls cost, as functions of ranks and bytes.
//!
//! ```text
//! operations   a table of scripts
//! stage        plays a script: ranks of a job, or a simulation of them
//! cells        what is sampled of it: turns back to back, windows, searches
//! launch       all cells of one start of the ranks
//! analyze      from rows of several launches to laws
//! ```
#![forbid(unsafe_code)]
#![allow(dead_code)]

mod cells;
mod launch;
mod operations;
mod orders;
mod simulated;
mod stage;
#[cfg(test)]
mod tests;
