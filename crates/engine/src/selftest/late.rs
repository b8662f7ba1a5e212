//! A rank or thread that is held up on purpose: whether it is named, and its share of the waiting.

use machmeter_stats::lateness::{Turn, by_rank};
use machmeter_stats::quantile::median_of;

use super::{Shown, State, percent};

/// Bar: how far the share and the median delay may be off, relative.
const OFF: f64 = 0.1;

/// Who is held up, before every so many-th turn from the first on, and for how long, in the unit of the turns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Held {
    pub rank: usize,
    pub every: usize,
    pub delay: f64,
}

impl Held {
    /// What is true, what was found, and whether its share and median delay are within a tenth. The truth is what was planted, and what turns between those
    /// say of the machine's own share.
    ///
    /// # Errors
    /// In one line: the machine delays more than what was planted; nobody was late.
    pub fn judge(&self, turns: &[Turn], ranks: usize) -> Shown {
        let natural = |of: &dyn Fn(&Turn) -> bool| {
            let free = turns.iter().enumerate().filter(|(i, t)| !i.is_multiple_of(self.every) && of(t));
            let sum: f64 = free.map(|(_, t)| t.delay).sum();
            sum * self.every as f64 / (self.every - 1) as f64
        };
        let planted = turns.len().div_ceil(self.every) as f64 * self.delay;
        let (own, all) = (natural(&|t| t.last == self.rank), natural(&|_| true));
        if all > planted {
            return Err(format!(
                "the machine delays the ranks by {} beside {} planted",
                percent(all / (all + planted)),
                percent(planted / (all + planted))
            ));
        }
        let truth = (own + planted) / (all + planted);
        let found = by_rank(turns, ranks);
        let first = found.first().ok_or("no rank was late")?;
        let is_near = |found: f64, truth: f64| (found / truth - 1.0).abs() <= OFF;
        let held = turns.iter().step_by(self.every).filter(|t| t.last == first.rank);
        let held = median_of(&held.map(|t| t.delay).collect::<Vec<f64>>()).unwrap_or(0.0);
        let right = is_near(first.share, truth) && is_near(held, self.delay);
        let named = |rank, share, delay: f64| {
            let of_planted = percent(delay / self.delay);
            format!(
                "rank {rank}: {} of the waiting, {of_planted} of the planted delay each time",
                percent(share)
            )
        };
        let state = State::of(first.rank == self.rank && right);
        Ok((named(self.rank, truth, self.delay), named(first.rank, first.share, held), state))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: Held = Held { rank: 1, every: 10, delay: 200.0 };

    #[test]
    fn a_share_beside_the_truth_and_another_rank_are_failures() {
        let turns = |held: usize, hold: f64| -> Vec<Turn> {
            let one = |i: usize| {
                let (delay, last) = if i.is_multiple_of(HELD.every) { (hold, held) } else { (4.0, i % 2) };
                Turn { cost: delay + 1.0, delay, last }
            };
            (0..1_000).map(one).collect()
        };
        let state = |turns: &[Turn]| HELD.judge(turns, 2).map(|s| s.2);
        assert_eq!(state(&turns(HELD.rank, 200.0)), Ok(State::Pass));
        assert_eq!(state(&turns(0, 200.0)), Ok(State::Fail));
        assert_eq!(state(&turns(HELD.rank, 40.0)), Ok(State::Fail));
        assert_eq!(
            state(&turns(HELD.rank, 170.0)),
            Ok(State::Fail),
            "its share is right, its delays are not"
        );
        let noisy: Vec<Turn> =
            turns(HELD.rank, 200.0).iter().map(|t| Turn { delay: t.delay + 200.0, ..*t }).collect();
        assert!(state(&noisy).is_err());
    }
}
