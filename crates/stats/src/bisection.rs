//! The place at which a monotone condition begins to hold.

use std::ops::Range;

/// The first number of `range` for which the condition holds; its end if it holds nowhere before.
pub(crate) fn first(range: Range<u64>, holds: impl Fn(u64) -> bool) -> u64 {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}
