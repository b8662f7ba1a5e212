//! Pairs of ranks: the latency of each, what many at once get, and which ranks and links are slow.
//!
//! ```text
//! cells    rounds of a tournament, and random pairs at once
//! slow     which ranks and links are slower than chance has it
//! show     from rows to figures, table, matrix and names
//! ```

mod cells;
mod show;
mod slow;
#[cfg(test)]
mod tests;

pub(crate) use cells::cells;
pub(crate) use show::analyze;

/// How rows of pairs were measured: a pair of ranks, and so many at once.
const LINK: &str = "link";
const AT_ONCE: &str = "at_once";
/// Facts of a row of a link: from the first rank to the second, back, and by how much the clocks may be off, ns.
const WAYS: [&str; 3] = ["there_ns", "back_ns", "clocks_off_ns"];
