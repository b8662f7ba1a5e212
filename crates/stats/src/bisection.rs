//! The place at which a monotone condition begins to hold, or ceases to.

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

/// The stretch around the point between two at which a condition that holds at the lower one ceases to, halved so often.
pub(crate) fn narrowed(
    mut low: f64,
    mut high: f64,
    halvings: usize,
    holds: impl Fn(f64) -> bool,
) -> [f64; 2] {
    for _ in 0..halvings {
        let middle = f64::midpoint(low, high);
        if holds(middle) { low = middle } else { high = middle }
    }
    [low, high]
}
