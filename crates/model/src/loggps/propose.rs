//! Which sizes to measure next.

use std::collections::BTreeSet;

use super::fit::fit;
use super::observed::SizePoint;
use super::segments::Begins;

/// Sizes put between and beside the two of a break in a round of refinement.
const AROUND: i32 = 3;
/// Rounds of refinement before the bisection of jumps.
pub const REFINEMENTS: usize = 2;

/// About so many sizes from the first to the last in equal ratios, each once; the last is always there.
pub fn grid(first: u64, last: u64, about: usize) -> Vec<u64> {
    let (low, high) = (first.max(1) as f64, last.max(first).max(1) as f64);
    let steps = about.max(2) - 1;
    let at = |i: usize| (low * (high / low).powf(i as f64 / steps as f64)).round() as u64;
    let mut all: Vec<u64> = (0..=steps).map(at).collect();
    all.dedup();
    all
}

/// Sizes that tell more of the breaks in these points: two rounds around each of them, then the middle of each jump until it is known to
/// the byte. Empty when there is no more to be told, or no fit.
pub fn propose(points: &[SizePoint], round: usize) -> Vec<u64> {
    let Ok(table) = fit(points) else { return Vec::new() };
    let sizes: BTreeSet<u64> = points.iter().map(|p| p.size_bytes).collect();
    let mut wanted = BTreeSet::new();
    for s in table.segments.iter().skip(1) {
        let high = s.first_bytes;
        let Some(&low) = sizes.range(..high).next_back() else { continue };
        if round < REFINEMENTS {
            // In equal ratios over the break and as far again to both sides.
            let ratio = (high as f64 / low as f64).powf(1.0 / f64::from(AROUND + 1));
            let around = -AROUND..=2 * AROUND + 1;
            wanted.extend(around.map(|k| (low as f64 * ratio.powi(k)).round() as u64));
        } else if s.begins == Begins::Jump && high - low > 1 {
            wanted.insert(low.midpoint(high));
        }
    }
    let (Some(first), Some(last)) = (sizes.first(), sizes.last()) else { return Vec::new() };
    wanted.into_iter().filter(|w| w >= first && w <= last && !sizes.contains(w)).collect()
}
