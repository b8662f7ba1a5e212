//! Sizes, numbers of ranks and memory of a launch.

use std::collections::BTreeSet;

use machmeter_engine::Level;

use crate::operations::MOST_POSTED_BYTES;

/// The size of the page's rows; numbers of 8 bytes are whole from here on.
const FIRST: u64 = 8;
/// Sizes measured in windows are every so many-th.
const ISOLATED_EVERY: usize = 8;

/// Sizes of a range, bytes, ascending: 0, powers of two and the sizes halfway between those from 8 on, and both ends.
///
/// Two sizes an octave: a protocol that holds for two octaves, as from 512 B to 2 KiB, has the four points that a law needs.
/// At the level quick a size two octaves from the next: four up to 512 B, from where protocols change, and beyond 4 KiB, too.
pub(crate) fn sizes((from, to): (u64, u64), level: Level) -> Vec<u64> {
    let (first, ratio) = if level == Level::Quick { (FIRST, 4) } else { (1, 2) };
    let powers = std::iter::successors(Some(first), |s: &u64| s.checked_mul(ratio)).take_while(|s| *s < to);
    let halfway = |s: u64| (ratio == 2 && s >= FIRST).then_some(s + s / 2);
    let all = powers.flat_map(|s| [Some(s), halfway(s)]).flatten().chain([0]);
    let all: BTreeSet<u64> = all.filter(|s| (from..to).contains(s)).chain([from, to]).collect();
    all.into_iter().collect()
}

/// Those of them that are measured in windows, too; 8 among them, where it is.
pub(crate) fn isolated(sizes: &[u64], level: Level) -> Vec<u64> {
    let every = if level == Level::Quick { 2 } else { ISOLATED_EVERY };
    let from = sizes.iter().position(|s| *s == FIRST).unwrap_or(0);
    sizes.iter().skip(from).step_by(every).copied().collect()
}

/// How many ranks collective operations are measured with: powers of two, and all.
pub(crate) fn numbers_of_ranks(all: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(2_usize), |p| p.checked_mul(2)).take_while(|p| *p < all);
    powers.chain((all >= 2).then_some(all)).collect()
}

/// Memory that `local` ranks of one machine, of `all`, need for messages of this size, bytes: buffers of messages there and back, as bytes
/// and as numbers, for each number of ranks, those of all ranks where they play together; and posted requests.
pub(crate) fn memory_bytes(most_bytes: u64, all: usize, local: usize, collectives: bool) -> u64 {
    let messages = |p: &usize| if collectives { *p as u64 } else { 1 };
    let buffers: u64 = numbers_of_ranks(all).iter().map(|p| 4 * most_bytes * messages(p)).sum();
    local as u64 * (buffers + 2 * MOST_POSTED_BYTES.max(3 * most_bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_dense_and_within_the_range() {
        let all = sizes((0, 1 << 20), Level::Standard);
        assert_eq!((&all[..8], all.len()), (&[0, 1, 2, 4, 8, 12, 16, 24][..], 39));
        assert_eq!(sizes((100, 300), Level::Standard), [100, 128, 192, 256, 300]);
        assert_eq!(sizes((5, 5), Level::Quick), [5]);
        assert_eq!(sizes((0, 1 << 20), Level::Quick)[..3], [0, 8, 32]);
        assert_eq!(isolated(&sizes((0, 64), Level::Standard), Level::Quick), [8, 16, 32, 64]);
        assert_eq!(isolated(&[5], Level::Standard), [5]);
    }

    #[test]
    fn ranks_are_powers_of_two_and_all() {
        assert_eq!(numbers_of_ranks(2), [2]);
        assert_eq!(numbers_of_ranks(6), [2, 4, 6]);
        assert!(numbers_of_ranks(1).is_empty());
        assert!(memory_bytes(1 << 20, 2, 2, true) > 200 << 20, "requests come to most of it");
        let pairs = |collectives| memory_bytes(1 << 20, 64, 1, collectives) >> 20;
        assert_eq!((pairs(false), pairs(true)), (96 + 24, 96 + 504));
    }
}
