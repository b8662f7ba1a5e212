//! Calls of MPI and `OpenSHMEM` that ranks repeat, by a script.

pub mod player;
pub mod script;
