//! What a first look at the staircase makes worth measuring.

use machmeter_engine::cost::Row;

use super::chase::{GLOBAL, ONE_PER_PAGE, PAGE_BYTES, PAGE_LOCAL, STRIDE_BYTES};
use super::curves::{Curves, DISTURBED_QUANTILE, QUIET_QUANTILE, step_edge};
use super::detect::nominal_bytes;
use super::plan;

/// Pages of the first look at the translation buffers.
pub(super) const PAGE_COUNTS: [usize; 18] =
    [8, 12, 16, 20, 24, 32, 40, 48, 56, 64, 72, 80, 96, 112, 128, 160, 192, 256];
/// Ratio of neighboring working sets at which small and huge pages are compared, and the first, bytes: 128 pages, beyond the first
/// translation buffers in use (32 to 96 entries), then beyond the second ones (512 to 3,072).
const PAGES_RATIO: usize = 4;
const LEAST_COMPARED_BYTES: usize = 128 * PAGE_BYTES;
pub(super) const CONFLICTS: &[usize] = &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 15, 16, 17, 24];
pub(super) const CHAINS: &[usize] = &[1, 2, 4, 8, 12, 16, 24];
pub(super) const STRIDES: &[usize] = &[64, 128, 256, 512, 1_024, 2_048, 4_096];
/// Working set for the line where the first caches are not known, bytes.
const LINE_SET_BYTES: usize = 128 << 10;
/// Working set for the line over the first cache: blocks of 512 bytes use few of its sets, so that hardly one hits there.
const LINE_SET_CACHES: f64 = 4.0;
/// Least step of the cost where translations begin to be missed.
pub(super) const REACH_RATIO: f64 = 1.4;
/// Widest bracket of its reach that is still a figure, as a ratio.
pub(super) const REACH_BRACKET: f64 = 1.2;
/// Widest range that it is said to lie in beside a neighbor.
pub(super) const REACH_RANGE: f64 = 1.5;

/// Offsets of the second access, bytes.
pub(super) fn offsets(full: bool) -> &'static [usize] {
    if full { &[8, 16, 24, 32, 48, 64, 96, 128, 192, 256] } else { &[8, 16, 32, 64, 128, 256] }
}

/// Length of a short batch: above 1,000 steps of any clock in use, and short enough for 100 rows in a second.
pub(super) const BATCH_NS: f64 = 200_000.0;
/// Pairs per visit of a working set that prices a level.
const PRICE_PAIRS: usize = 8;
/// Largest working set that a core's own caches keep, bytes. Short batches are mostly spared what takes its lines.
const OWN_SET_BYTES: usize = 524_288;
pub(super) const OWN_SET_BATCH_NS: f64 = 60_000.0;
const OWN_SET_PAIRS: usize = 3 * PRICE_PAIRS;
/// Pairs alone on the core that a price, the end of a translation buffer or line, and of a cache want.
const PRICE_ALONE: usize = 12;
const REACH_ALONE: usize = 6;
const CACHE_ALONE: usize = 2;
/// Larger caches are hardly a core's own, bytes.
const OWN_BYTES: f64 = 4_194_304.0;
/// Working sets that decide where a cache ends, relative to where it seems to.
const NEAR: std::ops::Range<f64> = 0.85..1.2;

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Refinement {
    pub(super) near_boundaries: Vec<usize>,
    /// Ends of the core's own caches as they look so far, bytes.
    pub(super) boundaries: Vec<f64>,
    /// Working sets of one line per page near the step of the first translation buffer, bytes.
    pub(super) pages: Vec<usize>,
    /// One working set inside each level, the last being the largest there is, bytes.
    pub(super) inside_levels: Vec<usize>,
    /// Working set for the line, bytes: beyond the first cache, and at most half of the second.
    pub(super) line_set_bytes: usize,
    /// Size of the first cache, bytes; 0 while unknown.
    pub(super) first_cache_bytes: usize,
}

impl Refinement {
    pub(super) fn of(curves: &Curves<'_>, most_bytes: usize) -> Self {
        let pages = curves.first_pages();
        let points = curves.points(PAGE_LOCAL, pages);
        let sizes: Vec<usize> = points.iter().map(|p| p.size as usize).collect();
        let ends = curves.cache_ends();
        let capacities: Vec<f64> =
            ends.iter().enumerate().map(|(i, e)| nominal_bytes(e.always_bytes(i))).collect();
        let rows = curves.chases(ONE_PER_PAGE, pages, STRIDE_BYTES);
        let quiet = curves.quiet_curve("working_set_bytes", &rows);
        let reach = step_edge(&quiet, REACH_RATIO, QUIET_QUANTILE)
            .filter(|s| s.next / s.last < REACH_BRACKET)
            .or_else(|| step_edge(&curves.points(ONE_PER_PAGE, pages), REACH_RATIO, DISTURBED_QUANTILE));
        // One size per page count between the two neighbors of the step.
        let near_reach = reach.as_ref().map_or(0..0, |s| {
            (s.last as usize / PAGE_BYTES).saturating_sub(1)..(s.next as usize / PAGE_BYTES) + 1
        });
        let fine = if near_reach.len() > 24 { near_reach.len() / 12 } else { 1 };
        Self {
            near_boundaries: ends.iter().flat_map(|e| plan::refined(&sizes, e.all.bytes)).collect(),
            boundaries: ends.iter().map(|e| e.all.bytes).filter(|size| *size <= OWN_BYTES).collect(),
            pages: near_reach.step_by(fine).map(|n| n * PAGE_BYTES).collect(),
            inside_levels: inside(&capacities, most_bytes),
            line_set_bytes: match capacities[..] {
                [first, second, _, ..] => {
                    let bytes = (LINE_SET_CACHES * first).min(second / 2.0) as usize;
                    bytes / PAGE_BYTES * PAGE_BYTES
                }
                _ => LINE_SET_BYTES,
            },
            first_cache_bytes: capacities.first().map_or(0, |c| *c as usize),
        }
    }

    /// Rows on which figures hang and that were seen too seldom alone on the core.
    pub(super) fn wanting(&self, curves: &Curves<'_>) -> Vec<usize> {
        let near = |ratio: f64| NEAR.contains(&ratio);
        let wants = |row: &Row| {
            let bytes = row.int("working_set_bytes").unwrap_or(0) as usize;
            let is_line_apart = row.int("stride_bytes") == Some(STRIDE_BYTES as i64);
            let least = match row.text("order").as_str() {
                GLOBAL if self.inside_levels.contains(&bytes) && is_line_apart => {
                    PRICE_ALONE * price_visits(bytes).1
                }
                ONE_PER_PAGE if self.pages.contains(&bytes) => REACH_ALONE,
                PAGE_LOCAL if self.boundaries.iter().any(|b| near(bytes as f64 / b)) => CACHE_ALONE,
                _ if matches!(row.operation.as_str(), "second" | "conflict") => REACH_ALONE,
                _ => 0,
            };
            row.refused.is_none() && curves.alone(row) < least
        };
        curves.rows().enumerate().filter(|(_, row)| wants(row)).map(|(i, _)| i).collect()
    }
}

/// Working sets at which small and huge pages are compared, bytes: up to the largest there is.
pub(super) fn compared_pages(most_bytes: usize) -> Vec<usize> {
    let larger = |bytes: &usize| bytes.checked_mul(PAGES_RATIO);
    std::iter::successors(Some(LEAST_COMPARED_BYTES), larger)
        .take_while(|bytes| *bytes <= most_bytes)
        .collect()
}

/// Length of a short batch of a working set that prices a level, ns, and pairs per visit.
pub(super) fn price_visits(bytes: usize) -> (f64, usize) {
    if bytes <= OWN_SET_BYTES { (OWN_SET_BATCH_NS, OWN_SET_PAIRS) } else { (BATCH_NS, PRICE_PAIRS) }
}

/// The working set that prices a level, a power of two: half of the first cache, most of others.
pub(super) fn inside_level(before: f64, capacity: f64) -> usize {
    let middle = if before > 0.0 { (before * capacity).sqrt() } else { capacity / 2.0 };
    1_usize << middle.max(plan::LEAST_BYTES as f64).log2().round() as u32
}

pub(super) fn inside(capacities: &[f64], most_bytes: usize) -> Vec<usize> {
    let below = std::iter::once(0.0).chain(capacities.iter().copied());
    let level = |(before, capacity): (f64, &f64)| inside_level(before, *capacity).min(most_bytes);
    let mut out: Vec<usize> = below.zip(capacities).map(level).collect();
    out.push(most_bytes);
    out.dedup();
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_working_set_lies_inside_each_level() {
        let all = inside(&[32_768.0, 1_048_576.0, 33_554_432.0], 128 << 20);
        assert_eq!(all, [16 << 10, 256 << 10, 8 << 20, 128 << 20]);
        assert_eq!(inside(&[], 1 << 20), [1 << 20]);
    }

    #[test]
    fn a_short_batch_brings_in_all_that_a_price_of_its_own_caches_needs() {
        // 5 ns a load of the second cache, a round at least; and as much time a visit as before.
        let (batch_ns, pairs) = price_visits(OWN_SET_BYTES);
        assert!((OWN_SET_BYTES / STRIDE_BYTES) as f64 * 5.0 < batch_ns);
        assert_eq!(price_visits(OWN_SET_BYTES + 1), (BATCH_NS, PRICE_PAIRS));
        assert!((batch_ns * pairs as f64) <= BATCH_NS * PRICE_PAIRS as f64);
    }
}
