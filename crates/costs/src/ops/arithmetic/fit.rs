//! The known-cost ladder: chains of 1 to 64 dependent additions must cost 1 to 64 cycles.
//! The slope is the cycle; points on a line show that the meter prices what it is given.
//! Short chains may lie between the line and the empty loop, which is slow on a shared core.

use machmeter_data::Interval;
use machmeter_stats::distribution::t_quantile;
use machmeter_stats::regression::{Weighting, line};

/// Largest residual of a ladder that holds, as a share of the line.
pub(super) const MOST_RESIDUAL: f64 = 0.01;
/// Intercepts nearer to zero than this share of a cycle are none. A turn's count and branch run beside the additions.
const MOST_INTERCEPT: f64 = 0.1;
/// Additions that hide the loop around them.
pub(super) const HIDING: f64 = 4.0;
/// Fewest points for a line that can be wrong.
const FEWEST: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rung {
    pub(super) additions: f64,
    pub(super) turn_ns: f64,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Ladder {
    pub(super) cycle_ns: f64,
    /// Its interval at 95 % (t, from the residuals).
    pub(super) interval: Option<Interval>,
    pub(super) intercept_cycles: f64,
    /// Largest distance of a rung from the line, as a share of the line.
    pub(super) residual: f64,
    /// Slope over cost of one addition in the longest chain: 1 where the line begins at zero.
    pub(super) against_longest: f64,
    pub(super) n: usize,
}

impl Ladder {
    /// Fits relative distances, so that short chains count as much. `empty_ns` is a slow turn of the empty loop.
    pub(super) fn fit(rungs: &[Rung], empty_ns: Option<f64>) -> Result<Self, String> {
        let hiding: Vec<&Rung> = rungs.iter().filter(|r| r.additions >= HIDING).collect();
        if hiding.len() < FEWEST {
            return Err(format!("{} of at least {FEWEST} long chains have a cost", hiding.len()));
        }
        let x: Vec<f64> = hiding.iter().map(|r| r.additions).collect();
        let y: Vec<f64> = hiding.iter().map(|r| r.turn_ns).collect();
        let weights: Vec<f64> = y.iter().map(|y| 1.0 / (y * y)).collect();
        let fit = line(&x, &y, Weighting::Relative(&weights)).map_err(|e| e.to_string())?;
        let [intercept_ns, cycle_ns] = fit.coefficients;
        if !(cycle_ns > 0.0 && cycle_ns.is_finite()) {
            return Err(format!("the slope of {cycle_ns} ns is not a cycle"));
        }
        let slow_ns = empty_ns.unwrap_or(0.0);
        let distance = |r: &Rung| {
            let on_line_ns = (intercept_ns + cycle_ns * r.additions).max(f64::MIN_POSITIVE);
            let nearest_ns = r.turn_ns.clamp(on_line_ns, on_line_ns.max(slow_ns));
            (r.turn_ns / nearest_ns - 1.0).abs()
        };
        let residual = rungs.iter().map(distance).fold(0.0, f64::max);
        let longest = rungs.iter().max_by(|a, b| a.additions.total_cmp(&b.additions)).unwrap_or(&rungs[0]);
        // A line takes two degrees of freedom.
        let t = t_quantile(0.975, (hiding.len() - 2) as f64).ok_or("no interval")?;
        let half_ns = t * fit.standard_errors[1];
        Ok(Self {
            cycle_ns,
            interval: Interval::new(0.95, (cycle_ns - half_ns).max(0.0), cycle_ns + half_ns, "t"),
            intercept_cycles: intercept_ns / cycle_ns,
            residual,
            against_longest: cycle_ns / (longest.turn_ns / longest.additions),
            n: hiding.len(),
        })
    }

    pub(super) fn holds(&self) -> bool {
        self.residual < MOST_RESIDUAL
            && self.intercept_cycles.abs() < MOST_INTERCEPT
            && (self.against_longest - 1.0).abs() < MOST_RESIDUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rungs(mut turn_ns: impl FnMut(f64) -> f64) -> Vec<Rung> {
        let chains = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
        chains.iter().map(|n| Rung { additions: *n, turn_ns: turn_ns(*n) }).collect()
    }

    #[test]
    fn a_sound_ladder_gives_the_cycle() {
        // Distances of up to 0.3 % in both directions.
        let ladder =
            Ladder::fit(&rungs(|n| n * 0.2707 * (1.0 + 0.003 * (n * 1.7).sin())), Some(0.271)).unwrap();
        assert!((ladder.cycle_ns / 0.2707 - 1.0).abs() < 0.01, "{ladder:?}");
        assert!(ladder.holds() && ladder.residual < 0.006, "{ladder:?}");
        let ci = ladder.interval.unwrap();
        assert!(ci.low < 0.2707 && 0.2707 < ci.high);
    }

    #[test]
    fn the_interval_of_a_few_chains_holds_the_cycle_as_often_as_it_says() {
        let mut random = machmeter_stats::random::Random::new(5);
        let held = (0..2_000)
            .filter(|_| {
                let noisy = rungs(|n| n * 0.27 * (1.0 + 0.004 * random.normal()));
                let ci = Ladder::fit(&noisy, None).unwrap().interval.unwrap();
                ci.low < 0.27 && 0.27 < ci.high
            })
            .count();
        assert!((1_860..=1_940).contains(&held), "{held} of 2,000");
    }

    #[test]
    fn short_chains_may_be_held_back_by_the_loop_but_by_nothing_else() {
        // A branch every other cycle, as on a shared core.
        let slow_branch = rungs(|n| (n * 0.27).max(0.54));
        assert!(Ladder::fit(&slow_branch, Some(0.54)).unwrap().holds());
        assert!(!Ladder::fit(&slow_branch, Some(0.27)).unwrap().holds());
        assert!(!Ladder::fit(&slow_branch, None).unwrap().holds());
    }

    #[test]
    fn overlap_throttling_and_overhead_are_seen() {
        let fit = |turn_ns: fn(f64) -> f64| Ladder::fit(&rungs(turn_ns), Some(0.27)).unwrap();
        let overlapping = fit(|n| if n > 8.0 { n * 0.1 } else { n * 0.27 });
        assert!(!overlapping.holds(), "{overlapping:?}");
        let slower_once = fit(|n| if n == 16.0 { n * 0.31 } else { n * 0.27 });
        assert!(!slower_once.holds() && slower_once.residual > 0.05, "{slower_once:?}");
        let overhead = fit(|n| 0.3 + n * 0.27);
        assert!(!overhead.holds() && overhead.intercept_cycles > 1.0, "{overhead:?}");
    }

    #[test]
    fn no_line_is_an_error_in_one_line() {
        assert!(Ladder::fit(&rungs(|n| n)[..5], None).unwrap_err().contains("3 of at least 4"));
        assert!(Ladder::fit(&rungs(|n| 100.0 / n), None).is_err());
    }
}
