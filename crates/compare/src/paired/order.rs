//! Chooses the order of the two settings: rounds ABBA or BAAB at random.
//!
//! A round has four runs. The random choice makes the test valid for any behavior of the machine. Without an effect of the setting, the difference of a
//! round has either sign with equal probability (Fisher, The Design of Experiments, 1935). The mirrored half cancels a steady drift within the round.

use machmeter_stats::random::Random;

pub const RUNS_PER_ROUND: usize = 4;

/// The settings of the runs of round `index`, counted from 0: 0 for A, 1 for B.
pub fn order(index: usize, seed: u64) -> [usize; RUNS_PER_ROUND] {
    // Each round has a separate random stream, so that a round can be computed alone.
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
}
