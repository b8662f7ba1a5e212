//! Boxes of the benchmark graphs, by field. Sizes are parameters; figures of a box are of single precision where nothing else is said.

pub mod adaptive;
pub mod filter;
pub mod gauss;
pub mod modem;
pub mod noise;
pub mod transform;
