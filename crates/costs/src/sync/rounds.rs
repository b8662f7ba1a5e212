//! The order in which jobs are visited.

use machmeter_engine::budget::stop_requested;
use machmeter_stats::random::Random;

use machmeter_engine::part::At;

/// No more rounds than this, whatever the time.
pub(super) const ROUNDS: usize = 200;

/// Visits `n` jobs again and again until the time of the part is over or a signal asks to stop: first in their own order, in
/// case that one round is all, then each round in a new random one. `visit` gets the job's number and random bits.
pub(super) fn rounds(at: &At<'_, '_>, salt: u64, n: usize, mut visit: impl FnMut(usize, u64)) {
    let mut random = Random::new(at.host.seed ^ salt);
    let mut order: Vec<usize> = (0..n).collect();
    for round in 0..ROUNDS {
        if round > 0 {
            random.shuffle(&mut order);
        }
        for &i in &order {
            if stop_requested() || at.left_ns() == 0 {
                return;
            }
            visit(i, random.bits());
        }
    }
}
