//! Rounds over all that a part visits: the first in the part's own order, in case that it is the only one, each later one in a new
//! random order, so that drift of the machine does not become structure of the result.

use machmeter_stats::random::Random;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use crate::budget::stop_requested;
use crate::part::At;

/// Longest pause between two rounds, ns.
const MOST_PAUSE_NS: u64 = 250_000_000;

/// How many rounds, and until when.
#[derive(Debug, Clone, Copy)]
pub struct Rounds {
    pub most: usize,
    /// Rounds over which the time is spread by pauses; 0 for none.
    pub spread: u64,
    /// No visit begins later, monotonic ns.
    pub until_ns: u64,
    pub seed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    pub index: usize,
    /// Number of the round, from 0.
    pub round: usize,
    pub bits: u64,
}

impl Rounds {
    /// Until the end of a part less `tail_ns`, without pauses.
    pub fn of(at: &At<'_, '_>, salt: u64, tail_ns: u64) -> Self {
        Self {
            most: 200,
            spread: 0,
            until_ns: at.until_ns.saturating_sub(tail_ns),
            seed: at.host.seed ^ salt,
        }
    }

    /// Visits `n` things again and again until the time is over or a signal asks to stop.
    pub fn run(&self, n: usize, mut visit: impl FnMut(Turn)) {
        let mut random = Random::new(self.seed);
        let mut order: Vec<usize> = (0..n).collect();
        let start_ns = monotonic_ns();
        let gap_ns =
            self.until_ns.saturating_sub(start_ns).checked_div(self.spread).unwrap_or(0).min(MOST_PAUSE_NS);
        for round in 0..self.most {
            if round > 0 {
                random.shuffle(&mut order);
            }
            for index in order.iter().copied() {
                if stop_requested() || monotonic_ns() >= self.until_ns {
                    return;
                }
                visit(Turn { index, round, bits: random.bits() });
            }
            if gap_ns > 0 {
                let next_ns = start_ns + (round as u64 + 1) * gap_ns;
                nanosleep_until(next_ns.min(self.until_ns).min(monotonic_ns() + MOST_PAUSE_NS));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_visits_all_and_the_first_in_order() {
        let mut visits = Vec::new();
        let rounds = Rounds { most: 5, spread: 0, until_ns: u64::MAX, seed: 3 };
        rounds.run(8, |turn| visits.push((turn.round, turn.index)));
        assert_eq!(visits[..8], std::array::from_fn::<_, 8, _>(|i| (0, i)));
        let mut orders: Vec<Vec<usize>> =
            visits.chunks(8).map(|round| round.iter().map(|v| v.1).collect()).collect();
        orders.dedup();
        assert_eq!(orders.len(), 5, "each in another order");
        for order in &mut orders {
            order.sort_unstable();
            assert_eq!(*order, (0..8).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_time_is_kept_and_rounds_are_spread_over_it() {
        let begin_ns = monotonic_ns();
        let mut rounds_seen = 0;
        let rounds = Rounds { most: usize::MAX, spread: 4, until_ns: begin_ns + 40_000_000, seed: 3 };
        rounds.run(1, |_| rounds_seen += 1);
        let took_ns = monotonic_ns() - begin_ns;
        assert!((1..=4).contains(&rounds_seen), "{rounds_seen}");
        assert!((40_000_000..1_000_000_000).contains(&took_ns), "{took_ns} ns");
        rounds.run(1, |_| panic!("the time is over"));
    }
}
