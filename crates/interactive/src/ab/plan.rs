//! In which order the two settings are measured: rounds ABBA or BAAB, by a coin.
//!
//! A round has four passes, each with a segment of every cell. The coin makes the test valid whatever the machine does
//! meanwhile: without an effect of the setting, each round's difference is as likely to have either sign (Fisher, The Design
//! of Experiments, 1935). The mirrored half cancels a steady drift within the round.

use machmeter_stats::random::Random;

/// Segments of a round of one cell: passes of a round.
pub const SEGMENTS_PER_ROUND: usize = 4;

/// Rounds that a run plans at most: beyond them nothing but time is spent.
pub const MOST_ROUNDS: usize = 100;

/// Rounds for which segments are made shorter than [`USUAL_SEGMENT_NS`]: with fewer, only large changes can be found.
const GOOD_ROUNDS: usize = 8;

/// Length of a segment that a plan aims at, and the shortest one by which it gets to more rounds; ns.
const USUAL_SEGMENT_NS: u64 = 3_000_000_000;
const SHORT_SEGMENT_NS: u64 = 1_000_000_000;

/// How many rounds, where `segment_ns` gives the length of segments that so many rounds leave: as many as leave segments
/// of three seconds; up to eight if they leave one second; else four, which a verdict needs.
pub fn rounds_for(segment_ns: impl Fn(usize) -> u64) -> usize {
    let most =
        |rounds: usize, least_ns: u64| (1..=rounds).rev().find(|r| segment_ns(*r) >= least_ns).unwrap_or(0);
    most(MOST_ROUNDS, USUAL_SEGMENT_NS).max(most(GOOD_ROUNDS, SHORT_SEGMENT_NS)).max(super::LEAST_ROUNDS)
}

/// The settings of the passes of round `index`, counted from 0: 0 for A, 1 for B.
pub fn order(index: usize, seed: u64) -> [usize; SEGMENTS_PER_ROUND] {
    // Each round has a stream of its own, so that a round can be asked for alone.
    let mut random = Random::new(seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let outer = random.below(2);
    [outer, 1 - outer, 1 - outer, outer]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_are_mirrored_and_can_be_asked_for_again() {
        for r in 0..50 {
            let s = order(r, 9);
            assert!(s == [0, 1, 1, 0] || s == [1, 0, 0, 1], "{s:?}");
            assert_eq!(s, order(r, 9));
        }
    }

    #[test]
    fn the_coin_is_fair_and_independent_of_the_round_before() {
        let coins: Vec<usize> = (0..6000).map(|r| order(r, 4)[0]).collect();
        let ones: usize = coins.iter().sum();
        let same = coins.windows(2).filter(|w| w[0] == w[1]).count();
        // 6000 fair coins: standard deviation 39.
        assert!(ones.abs_diff(3000) < 200 && same.abs_diff(3000) < 200, "{ones} {same}");
    }

    #[test]
    fn rounds_are_as_many_as_the_time_permits() {
        const S: u64 = 1_000_000_000;
        let of = |cells: u64, budget_ns: u64| rounds_for(|r| budget_ns / (r as u64 * 4 * cells));
        assert_eq!(of(1, 300 * S), 25);
        assert_eq!(of(2, 300 * S), 12);
        assert_eq!(of(6, 300 * S), 8);
        assert_eq!(of(20, 300 * S), 4);
        assert_eq!(of(200, 300 * S), 4);
        assert_eq!(of(1, u64::MAX), MOST_ROUNDS);
    }
}
