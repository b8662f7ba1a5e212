//! What one read of a tick source costs, from differences of back-to-back reads.

/// The mean of the differences up to their 99.9 % quantile: interrupted reads say nothing about the clock. Negative ones are
/// left out; `None` if none is left.
pub(super) fn read_cost_ticks(deltas_ticks: &[i64]) -> Option<f64> {
    let mut sorted: Vec<u64> = deltas_ticks.iter().filter_map(|d| u64::try_from(*d).ok()).collect();
    sorted.sort_unstable();
    let n = sorted.len();
    // Inverse of the empirical distribution function (quantile type 1): always a value that was seen.
    let p999_ticks = *sorted.get(((0.999 * n as f64).ceil() as usize).clamp(1, n.max(1)) - 1)?;
    let quiet = sorted.iter().take_while(|d| **d <= p999_ticks);
    let (count, sum) = quiet.fold((0_u64, 0_u128), |(c, s), d| (c + 1, s + u128::from(*d)));
    Some(sum as f64 / count as f64)
}

/// How often a read gave less than the one before it.
pub(super) fn backward_steps(deltas_ticks: &[i64]) -> usize {
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
        let cost_ticks = read_cost_ticks(&deltas).unwrap();
        let truth = (1100.0 * 26.0 + 898.0 * 52.0) / 1998.0;
        assert!((cost_ticks - truth).abs() < 1e-9, "{cost_ticks}");
        assert_eq!(backward_steps(&deltas), 1);
    }

    #[test]
    fn nothing_usable_gives_nothing() {
        assert_eq!((read_cost_ticks(&[]), read_cost_ticks(&[-1])), (None, None));
    }
}
