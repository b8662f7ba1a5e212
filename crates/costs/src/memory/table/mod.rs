//! The table of shared accesses: reads and writes of one's own cache, one's own memory and a neighbor's memory, by one member of a team
//! alone or by all at once, in each programming model (Howell, "Microbenchmarking", 1998).
//!
//! Streamed figures walk the buffer one block apart, eight accesses a turn, as Howell's loop does (with all eight; its
//! printed loop does seven): the machine overlaps them, and prefetches. Dependent figures follow a random chain: what one
//! access takes; dependent writes write each line of the chain after its pointer was read, as multichase's `incr` does. "Cache"
//! is a buffer that stays in the first cache; "local" and "neighbour" are buffers of at least twice the last cache (where free
//! memory and 256 MiB allow; else that is said), each touched first by its owner, a fresh area each pass. The neighbor of the
//! last member is the first. Caches are as asked for, or as the system claims them.

mod analyze;
pub mod info;
mod measure;
mod member;
mod plan;

#[cfg(test)]
mod tests;

use super::Params;
use machmeter_engine::part::Part;

pub(super) const PART: Part<Params> = Part {
    metrics: &[info::SHARED],
    codes: &[info::ALONE, info::MODEL_FAILED, info::SMALL_BUFFER, info::THIN],
    ..Part::of("table", 25, measure::measure, analyze::analyze)
};
