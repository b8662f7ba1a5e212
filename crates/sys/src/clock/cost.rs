//! What one read of a tick source costs, from differences of back-to-back reads.

use super::{SourceId, TickRate};

/// The cost of one read, in ticks of the source itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ReadCost {
    pub source: SourceId,
    /// Mean of the differences up to the 99.9 % quantile: interrupted reads say nothing about the clock.
    pub mean_ticks: f64,
    pub tick_hz: f64,
}

impl ReadCost {
    pub fn mean_ns(&self) -> f64 {
        self.mean_ticks * 1e9 / self.tick_hz
    }
}

/// Summarizes differences of back-to-back reads; negative ones are left out. `None` if none is left.
pub fn read_cost_from_deltas(source: SourceId, deltas_ticks: &[i64], rate: TickRate) -> Option<ReadCost> {
    let mut sorted: Vec<u64> = deltas_ticks.iter().filter_map(|d| u64::try_from(*d).ok()).collect();
    sorted.sort_unstable();
    let n = sorted.len();
    // Inverse of the empirical distribution function (quantile type 1): always a value that was seen.
    let p999_ticks = *sorted.get(((0.999 * n as f64).ceil() as usize).clamp(1, n.max(1)) - 1)?;
    let quiet = sorted.iter().take_while(|d| **d <= p999_ticks);
    let (count, sum) = quiet.fold((0_u64, 0_u128), |(c, s), d| (c + 1, s + u128::from(*d)));
    Some(ReadCost { source, mean_ticks: sum as f64 / count as f64, tick_hz: rate.hz() })
}

/// How often a read gave less than the one before it.
pub fn backward_steps(deltas_ticks: &[i64]) -> usize {
    deltas_ticks.iter().filter(|d| **d < 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preemption_does_not_move_the_mean() {
        let mut deltas = vec![26_i64; 1100];
        deltas.extend(vec![52; 898]);
        deltas.extend([10_000_000, -26]);
        let cost =
            read_cost_from_deltas(SourceId::Rdtsc, &deltas, TickRate::from_hz(2.6e9).unwrap()).unwrap();
        let truth = (1100.0 * 26.0 + 898.0 * 52.0) / 1998.0;
        assert!((cost.mean_ticks - truth).abs() < 1e-9, "{cost:?}");
        assert_eq!(backward_steps(&deltas), 1);
    }

    #[test]
    fn nothing_usable_gives_nothing() {
        assert_eq!(read_cost_from_deltas(SourceId::Rdtsc, &[], TickRate::NANOSECONDS), None);
        assert_eq!(read_cost_from_deltas(SourceId::Rdtsc, &[-1], TickRate::NANOSECONDS), None);
    }
}
