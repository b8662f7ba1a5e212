//! How evenly acquisitions are shared. Pure.

use machmeter_stats::quantile::{median, quantile_interval, sorted};

/// Jain's index of shares (Jain, Chiu & Hawe, DEC-TR-301, 1984): 1 when all are equal, 1/n when one has everything. `None`
/// without shares, or when all are 0.
pub(super) fn jain(counts: &[u64]) -> Option<f64> {
    let sum: f64 = counts.iter().map(|c| *c as f64).sum();
    let squares: f64 = counts.iter().map(|c| *c as f64 * *c as f64).sum();
    (sum > 0.0).then(|| (sum * sum / (counts.len() as f64 * squares)).min(1.0))
}

/// Median of the indices of batches, with its 95 % interval and their number. `None` for fewer than 6.
pub(super) fn center(indices: &[f64]) -> Option<(f64, f64, f64, usize)> {
    let s = sorted(indices).ok()?;
    let ci = quantile_interval(&s, 0.5, 0.95).filter(|_| s.len() >= 6)?;
    Some((median(&s)?, ci.low, ci.high, s.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_the_index_of_the_definition() {
        assert_eq!(jain(&[5, 5, 5, 5]), Some(1.0));
        assert_eq!(jain(&[9, 0, 0, 0]), Some(0.25));
        assert!((jain(&[3, 1]).unwrap() - 0.8).abs() < 1e-12);
        assert_eq!(jain(&[0, 0]), None);
        assert_eq!(jain(&[]), None);
    }

    #[test]
    fn few_batches_have_no_interval() {
        assert_eq!(center(&[0.9; 5]), None);
        let (value, low, high, n) = center(&[0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 0.75]).unwrap();
        assert_eq!((value, n), (0.75, 7));
        assert!(low < value && value < high && low >= 0.5 && high <= 1.0);
        assert_eq!(center(&[f64::NAN; 9]), None);
    }
}
