//! In which order the two settings are measured: rounds of four segments per cell, ABBA or BAAB by a coin.
//!
//! The coin makes the test valid whatever the machine does meanwhile: without an effect of the setting, each round's
//! difference is as likely to have either sign (Fisher, The Design of Experiments, 1935). The mirrored half cancels a steady
//! drift within the round.

use machmeter_stats::random::Random;

/// Segments of a round of one cell.
pub const SEGMENTS_PER_ROUND: usize = 4;

/// Rounds that a run plans at most: beyond them nothing but time is spent.
const MOST_ROUNDS: usize = 200;

/// One segment to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Index of the cell.
    pub cell: usize,
    /// The setting to be in force: 0 for A, 1 for B.
    pub setting: usize,
}

/// The order of an A/B run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    cells: usize,
    rounds: usize,
    seed: u64,
}

impl Plan {
    /// A plan for `cells` cells within `budget_ns`, when a segment with what belongs to it (start of the load, switching)
    /// takes `step_ns`. There is always one round, however short the budget.
    pub fn new(cells: usize, step_ns: u64, budget_ns: u64, seed: u64) -> Self {
        let round_ns = step_ns.max(1).saturating_mul((cells.max(1) * SEGMENTS_PER_ROUND) as u64);
        let rounds = usize::try_from(budget_ns / round_ns).unwrap_or(MOST_ROUNDS);
        Self { cells, rounds: rounds.clamp(1, MOST_ROUNDS), seed }
    }

    /// Rounds that fit.
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The segments of round `index`, counted from 0: cells in random order, the four segments of a cell in a row, so that
    /// its load keeps running and only the setting changes.
    pub fn round(&self, index: usize) -> Vec<Step> {
        // Each round has a stream of its own, so that a round can be asked for alone.
        let mut random = Random::new(self.seed ^ (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
        let mut cells: Vec<usize> = (0..self.cells).collect();
        random.shuffle(&mut cells);
        let of_cell = |cell| {
            let outer = random.below(2);
            [outer, 1 - outer, 1 - outer, outer].map(|setting| Step { cell, setting })
        };
        cells.into_iter().flat_map(of_cell).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_every_cell_mirrored() {
        let plan = Plan::new(5, 3_000_000_000, 300_000_000_000, 9);
        assert_eq!(plan.rounds(), 5);
        for r in 0..plan.rounds() {
            let steps = plan.round(r);
            assert_eq!(steps.len(), 20);
            let mut seen: Vec<usize> = Vec::new();
            for four in steps.chunks(SEGMENTS_PER_ROUND) {
                let s: Vec<usize> = four.iter().map(|s| s.setting).collect();
                assert!(s == [0, 1, 1, 0] || s == [1, 0, 0, 1], "{s:?}");
                assert!(four.iter().all(|s| s.cell == four[0].cell));
                seen.push(four[0].cell);
            }
            seen.sort_unstable();
            assert_eq!(seen, [0, 1, 2, 3, 4]);
            assert_eq!(steps, plan.round(r), "a round is the same whenever it is asked for");
        }
    }

    #[test]
    fn the_coin_is_fair_and_independent_of_the_round_before() {
        let plan = Plan::new(3, 1, 1, 4);
        let coins: Vec<usize> = (0..2000).flat_map(|r| plan.round(r)).step_by(4).map(|s| s.setting).collect();
        let ones: usize = coins.iter().sum();
        let same = coins.windows(2).filter(|w| w[0] == w[1]).count();
        // 6000 fair coins: standard deviation 39.
        assert!(ones.abs_diff(3000) < 200 && same.abs_diff(3000) < 200, "{ones} {same}");
    }

    #[test]
    fn a_budget_too_short_still_has_one_round() {
        assert_eq!(Plan::new(6, 3_000_000_000, 1, 1).rounds(), 1);
        assert_eq!(Plan::new(0, 0, u64::MAX, 1).rounds(), MOST_ROUNDS);
    }
}
