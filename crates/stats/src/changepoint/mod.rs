//! When did the level change, and where does a line bend.
//!
//! [`pelt_mean`]: Killick, Fearnhead & Eckley, "Optimal Detection of Changepoints With a Linear Computational
//! Cost" (JASA 2012). [`segmented_regression`]: exact dynamic programming after Bai & Perron, "Computation and
//! Analysis of Multiple Structural Change Models" (2003).

mod lines;
mod pelt;

pub use lines::{LinearSegment, MAX_SEGMENTED, SegmentedOptions, segmented_regression};
pub use pelt::{PeltOptions, pelt_mean, robust_sigma};
