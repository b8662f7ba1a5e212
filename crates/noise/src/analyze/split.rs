//! Separates the two kinds of loss in every window: stolen time (gaps) and slowdown (the loop runs, but slower).

use machmeter_stats::quantile::{quantile, sorted};

use crate::measure::{Gap, Schedule};
use crate::samples::CpuSamples;

/// A window must have at least this share of its time free of gaps for its speed to count.
const FREE_SHARE: f64 = 0.5;
/// The reference turn is this quantile of the turn times of windows: the speed of the undisturbed loop.
const REFERENCE_QUANTILE: f64 = 0.05;

/// One CPU's windows, separated.
#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Time stolen in each window, ticks.
    pub stolen_ticks: Vec<f64>,
    /// Mean turn outside of gaps in each window, ticks; `None` where gaps took more than half of it.
    pub turn_ticks: Vec<Option<f64>>,
    /// Turn of the undisturbed loop, ticks; 0 when it cannot be told (no counts).
    pub reference_ticks: f64,
    /// All turns.
    pub turns: u64,
    /// Wall time of the closed windows, ticks.
    pub wall_ticks: f64,
    /// Time in gaps within the windows, their own turns' work included, ticks.
    pub gap_ticks: f64,
    /// Gaps that began within the windows.
    pub gaps: u64,
    /// Gap time known only from the histogram because the list was full; already in `gap_ticks`, ticks.
    pub unplaced_ticks: f64,
}

impl Split {
    /// Time stolen in all, ticks.
    pub fn stolen_total(&self) -> f64 {
        (self.gap_ticks - self.gaps as f64 * self.reference_ticks).max(0.0)
    }

    /// Time that the loop ran.
    pub fn running_ticks(&self) -> f64 {
        (self.wall_ticks - self.gap_ticks).max(0.0)
    }

    /// Share of wall time lost because turns outside of gaps took longer than the reference.
    pub fn slowdown_fraction(&self) -> Option<f64> {
        if self.reference_ticks <= 0.0 || self.wall_ticks <= 0.0 {
            return None;
        }
        let quiet_turns = self.turns.saturating_sub(self.gaps) as f64;
        Some(((self.running_ticks() - quiet_turns * self.reference_ticks) / self.wall_ticks).max(0.0))
    }

    /// How far sum(gaps) + quiet turns x unit misses the wall time, as a share of it; `unit` in ticks.
    pub fn closure(&self, unit_ticks: f64) -> f64 {
        let quiet_turns = self.turns.saturating_sub(self.gaps) as f64;
        (self.gap_ticks + quiet_turns * unit_ticks) / self.wall_ticks - 1.0
    }
}

/// Separates one CPU's windows.
pub fn split(cpu: &CpuSamples, schedule: &Schedule) -> Split {
    // A list of gaps without counts (an imported one) still has its windows.
    let windows =
        if cpu.counts.is_empty() && !cpu.gaps.is_empty() { schedule.windows } else { cpu.counts.len() };
    let w = schedule.window_ticks as f64;
    let mut gap_ticks = vec![0.0; windows];
    let mut gap_turns = vec![0_u32; windows];
    for g in &cpu.gaps {
        spread(g, schedule, &mut gap_ticks, &mut gap_turns);
    }
    let turn_ticks: Vec<Option<f64>> = cpu
        .counts
        .iter()
        .enumerate()
        .map(|(k, &n)| {
            let quiet = f64::from(n) - f64::from(gap_turns[k]);
            let free = w - gap_ticks[k];
            (quiet >= 1.0 && free >= FREE_SHARE * w).then(|| free / quiet)
        })
        .collect();
    let speeds: Vec<f64> = turn_ticks.iter().flatten().copied().collect();
    let reference_ticks = sorted(&speeds).ok().and_then(|s| quantile(&s, REFERENCE_QUANTILE)).unwrap_or(0.0);
    let stolen_ticks = gap_ticks
        .iter()
        .zip(&gap_turns)
        .map(|(g, n)| (g - f64::from(*n) * reference_ticks).max(0.0))
        .collect();
    let listed: f64 = cpu.gaps.iter().map(|g| g.ticks() as f64).sum();
    let unplaced_ticks =
        if cpu.gaps_dropped > 0 { (cpu.histogram.sum() as f64 - listed).max(0.0) } else { 0.0 };
    Split {
        stolen_ticks,
        turn_ticks,
        reference_ticks,
        turns: cpu.counts.iter().map(|c| u64::from(*c)).sum(),
        wall_ticks: w * windows as f64,
        gap_ticks: gap_ticks.iter().sum::<f64>() + unplaced_ticks,
        gaps: gap_turns.iter().map(|n| u64::from(*n)).sum::<u64>() + cpu.gaps_dropped,
        unplaced_ticks,
    }
}

/// Distributes a gap over the windows it touches; its turn belongs to the window in which it began.
fn spread(gap: &Gap, schedule: &Schedule, ticks: &mut [f64], turns: &mut [u32]) {
    let (t0, w) = (schedule.t0_ticks, schedule.window_ticks);
    let from = gap.start_ticks.max(t0) - t0;
    let to = gap.end_ticks.max(t0) - t0;
    let first = (from / w) as usize;
    if let Some(n) = turns.get_mut(first) {
        *n += 1;
    }
    let last = (to / w) as usize;
    for (k, slot) in ticks.iter_mut().enumerate().take(last + 1).skip(first) {
        let (a, b) = (k as u64 * w, (k as u64 + 1) * w);
        *slot += to.min(b).saturating_sub(from.max(a)) as f64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_stats::histogram::LogHistogram;

    fn cpu(counts: Vec<u32>, gaps: Vec<(u64, u64)>) -> CpuSamples {
        let gaps: Vec<Gap> =
            gaps.into_iter().map(|(start_ticks, end_ticks)| Gap { start_ticks, end_ticks }).collect();
        let mut histogram = LogHistogram::new();
        for g in &gaps {
            histogram.record(g.ticks());
        }
        CpuSamples { cpu: 0, counts, gaps, histogram, gaps_dropped: 0, thread: None }
    }

    const S: Schedule = Schedule { t0_ticks: 1000, window_ticks: 100, windows: 5, threshold_ticks: 20 };

    #[test]
    fn a_gap_over_three_windows_is_shared_among_them() {
        // Turn of 10: windows of 10 turns; a gap from 1050 to 1270.
        let s = split(&cpu(vec![6, 0, 3, 10, 10], vec![(1050, 1270)]), &S);
        assert_eq!(s.reference_ticks, 10.0);
        assert_eq!(s.stolen_ticks, [40.0, 100.0, 70.0, 0.0, 0.0]);
        assert_eq!(s.turn_ticks, [Some(10.0), None, None, Some(10.0), Some(10.0)]);
        assert_eq!(s.stolen_total(), 210.0);
        assert!(s.closure(10.0).abs() < 1e-12);
    }

    #[test]
    fn slowdown_is_what_gaps_do_not_explain() {
        let s = split(&cpu(vec![10, 10, 10, 8, 8], vec![]), &S);
        assert_eq!(s.stolen_total(), 0.0);
        let lost = s.slowdown_fraction().unwrap();
        assert!((lost - 40.0 / 500.0).abs() < 1e-9, "{lost}");
    }

    #[test]
    fn a_gap_beyond_the_last_window_is_clipped() {
        let s = split(&cpu(vec![10, 10, 10, 10, 6], vec![(1450, 9000)]), &S);
        assert_eq!(s.gap_ticks, 50.0);
        assert_eq!(s.stolen_total(), 40.0);
    }
}
