//! What the ladder found of the caches, for the parts after it in the same run and for their analysis: facts, as what the
//! system claims is one.

use std::collections::BTreeMap;

use super::figures::range;
use super::found::Found;

/// Names of the facts.
const FIRST: &str = "ladder.found_first_bytes";
const LAST_LOW: &str = "ladder.found_last_low_bytes";
const LAST_HIGH: &str = "ladder.found_last_high_bytes";
const LINE: &str = "ladder.found_line_bytes";

/// Caches as the latencies of this run show them; `None` for what they do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(clippy::struct_field_names, reason = "units stand in names")]
pub(in crate::memory) struct Seen {
    /// The first cache.
    pub(in crate::memory) first_bytes: Option<u64>,
    /// What was effectively there of the last cache before memory, by round: the least and the most.
    pub(in crate::memory) last_bytes: Option<(u64, u64)>,
    /// The line.
    pub(in crate::memory) line_bytes: Option<u64>,
}

/// Adds the facts. The last cache is told only where memory was told from it: without, it may be one of several.
pub(super) fn tell(facts: &mut BTreeMap<String, String>, found: &Found<'_>) {
    let mut add = |name: &str, bytes: f64| {
        if bytes.is_finite() && bytes >= 1.0 {
            facts.insert(name.to_owned(), format!("{bytes:.0}"));
        }
    };
    if let Some(first) = found.caches.first() {
        add(FIRST, first.looks_like);
    }
    if let Some(last) = found.caches.last().filter(|_| found.memory_reached) {
        let (low, high) = range(last);
        add(LAST_LOW, low);
        add(LAST_HIGH, high);
    }
    if let Some(line) = &found.line {
        add(LINE, line.next);
    }
}

impl Seen {
    /// From the facts of a run.
    pub(in crate::memory) fn read(facts: &BTreeMap<String, String>) -> Self {
        let number = |name: &str| facts.get(name)?.parse::<u64>().ok().filter(|n| *n > 0);
        Self {
            first_bytes: number(FIRST),
            last_bytes: number(LAST_LOW).zip(number(LAST_HIGH)),
            line_bytes: number(LINE),
        }
    }
}
