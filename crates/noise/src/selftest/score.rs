//! What was injected against what was found: pure functions on logs in ticks. A burst is written down as a gap is.

use machmeter_stats::distribution::binomial_cdf;
use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_stats::rank::hodges_lehmann;

use machmeter_loops::noise::measure::Gap;

/// For each burst the index of the gap that covers all of it, if any. `gaps` are disjoint and ascending.
pub fn cover(bursts: &[Gap], gaps: &[Gap]) -> Vec<Option<usize>> {
    bursts
        .iter()
        .map(|b| {
            let at = gaps.partition_point(|g| g.start_ticks <= b.start_ticks).checked_sub(1)?;
            (gaps[at].end_ticks >= b.end_ticks).then_some(at)
        })
        .collect()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recall {
    pub found: usize,
    pub of: usize,
}

impl Recall {
    pub fn of_cover(covered: &[Option<usize>]) -> Self {
        Self { found: covered.iter().flatten().count(), of: covered.len() }
    }

    /// Share found; 0 when nothing was injected.
    pub fn share(&self) -> f64 {
        if self.of == 0 { 0.0 } else { self.found as f64 / self.of as f64 }
    }

    /// Whether no more than this many would be likely (above 5 %) at a true recall of `bar`: few trials prove little.
    pub fn compatible_with(&self, bar: f64) -> bool {
        binomial_cdf(self.found as u64, self.of as u64, bar).is_some_and(|p| p > 0.05)
    }
}

/// What a gap has beyond the burst that it covers, ticks, for each burst that has its gap alone.
pub fn excess_ticks(bursts: &[Gap], gaps: &[Gap], covered: &[Option<usize>]) -> Vec<f64> {
    let mut bursts_in = vec![0_u32; gaps.len()];
    for at in covered.iter().flatten() {
        bursts_in[*at] += 1;
    }
    bursts
        .iter()
        .zip(covered)
        .filter_map(|(b, at)| {
            let at = (*at)?;
            (bursts_in[at] == 1).then(|| gaps[at].ticks() as f64 - b.ticks() as f64)
        })
        .collect()
}

/// Errors of durations, split into what is constant and what is not.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DurationError {
    /// Median error: the cost of stamps and of one turn, or of two switches.
    pub bias: f64,
    /// 95 % quantile of the absolute error after the bias is taken off.
    pub p95: f64,
    pub n: usize,
}

/// Takes the median off the errors; `None` without errors.
pub fn duration_error(errors: &[f64]) -> Option<DurationError> {
    let bias = median_of(errors)?;
    let rest: Vec<f64> = errors.iter().map(|e| (e - bias).abs()).collect();
    let p95 = quantile(&sorted(&rest).ok()?, 0.95)?;
    Some(DurationError { bias, p95, n: errors.len() })
}

/// Time that two ascending lists of disjoint stretches have in common, ticks.
pub fn overlap_ticks(a: &[Gap], b: &[Gap]) -> u64 {
    let (mut i, mut j, mut total) = (0, 0, 0);
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        total += x.end_ticks.min(y.end_ticks).saturating_sub(x.start_ticks.max(y.start_ticks));
        if x.end_ticks <= y.end_ticks { i += 1 } else { j += 1 }
    }
    total
}

/// By how much `on` lies above `off`, with half of the 95 % interval, by the median of all differences (Hodges and Lehmann).
pub fn shift(on: &[f64], off: &[f64]) -> Option<(f64, f64)> {
    let s = hodges_lehmann(off, on, 0.95)?;
    let i = s.interval?;
    Some((s.estimate, (i.high - i.low) / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gap(start_ticks: u64, end_ticks: u64) -> Gap {
        Gap { start_ticks, end_ticks }
    }

    #[test]
    fn a_burst_is_found_only_by_a_gap_that_holds_all_of_it() {
        let gaps = [gap(90, 210), gap(300, 350), gap(400, 500)];
        let bursts = [gap(100, 200), gap(90, 210), gap(340, 360), gap(210, 220), gap(20, 95)];
        assert_eq!(cover(&bursts, &gaps), [Some(0), Some(0), None, None, None]);
        assert_eq!(cover(&bursts, &[]), vec![None; 5]);
        let r = Recall::of_cover(&cover(&bursts, &gaps));
        assert_eq!((r.found, r.of, r.share()), (2, 5, 0.4));
        assert_eq!(Recall::of_cover(&[]).share(), 0.0);
    }

    #[test]
    fn one_miss_in_few_is_no_proof_and_many_misses_are() {
        assert!(Recall { found: 99, of: 100 }.compatible_with(0.999));
        assert!(!Recall { found: 9_970, of: 10_000 }.compatible_with(0.999));
        assert!(!Recall { found: 90, of: 100 }.compatible_with(0.99));
        assert!(Recall { found: 10_000, of: 10_000 }.compatible_with(0.999));
    }

    #[test]
    fn a_constant_excess_is_bias_and_a_shared_gap_does_not_count() {
        let gaps: Vec<Gap> = (0..100).map(|i| gap(i * 1000, i * 1000 + 130 + (i % 3) * 26)).collect();
        let mut bursts: Vec<Gap> = (0..100).map(|i| gap(i * 1000 + 20, i * 1000 + 120)).collect();
        let covered = cover(&bursts, &gaps);
        let e = duration_error(&excess_ticks(&bursts, &gaps, &covered)).unwrap();
        assert_eq!((e.bias, e.p95, e.n), (56.0, 26.0, 100));
        bursts.insert(1, gap(121, 125));
        let covered = cover(&bursts, &gaps);
        assert_eq!(excess_ticks(&bursts, &gaps, &covered).len(), 99, "two bursts share the first gap");
        assert_eq!(duration_error(&[]), None);
    }

    #[test]
    fn overlap_of_interval_lists() {
        let a = [gap(0, 10), gap(20, 30), gap(40, 100)];
        let b = [gap(5, 25), gap(50, 60), gap(70, 80), gap(99, 200)];
        assert_eq!(overlap_ticks(&a, &b), 5 + 5 + 10 + 10 + 1);
        assert_eq!(overlap_ticks(&a, &[]), 0);
        assert_eq!(overlap_ticks(&a, &a), 80);
    }

    #[test]
    fn a_shift_is_found_although_some_blocks_hold_long_detours() {
        let block = |i: i32, base: f64| base + f64::from(i % 5) * 1e-4 + if i % 7 == 0 { 0.3 } else { 0.0 };
        let on: Vec<f64> = (0..50).map(|i| block(i + 3, 0.10)).collect();
        let off: Vec<f64> = (0..50).map(|i| block(i, 0.0)).collect();
        let (d, half) = shift(&on, &off).unwrap();
        assert!((d - 0.1).abs() < 5e-4 && half > 0.0 && half < 2e-3, "{d} {half}");
        assert_eq!(shift(&[0.1], &[0.2]), None);
    }
}
