//! Stolen time (gaps), slowdown and the meter's own notes in every window, from sums that are complete at any number.

use machmeter_stats::quantile::{quantile, sorted};

use crate::samples::CpuSamples;
use machmeter_loops::noise::measure::Schedule;

/// A window must have at least this share of its time free of gaps for its speed to count.
const FREE_SHARE: f64 = 0.5;
/// The reference turn is this quantile of the turn times of windows: the speed of the undisturbed loop.
const REFERENCE_QUANTILE: f64 = 0.05;
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Kind {
    pub count: u64,
    /// Their time, their own turns' work included, ticks.
    pub ticks: f64,
}

impl Kind {
    /// Time they stole, ticks, where a turn's work takes `turn_ticks`.
    pub fn stolen(&self, turn_ticks: f64) -> f64 {
        (self.ticks - self.count as f64 * turn_ticks).max(0.0)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Split {
    /// Time stolen by detours in each window, ticks.
    pub detour_ticks: Vec<f64>,
    /// Time stolen by micro-stalls in each window, ticks.
    pub stall_ticks: Vec<f64>,
    /// Mean turn outside of gaps in each window, ticks; `None` where gaps took more than half of it.
    pub turn_ticks: Vec<Option<f64>>,
    /// Turn of the undisturbed loop, ticks; 0 when it cannot be told (no counts).
    pub reference_ticks: f64,
    pub turns: u64,
    /// Wall time of the closed windows, ticks.
    pub wall_ticks: f64,
    pub detours: Kind,
    pub stalls: Kind,
    /// Time the loop took for its notes, ticks.
    pub own_ticks: f64,
}

impl Split {
    /// Time stolen in all, ticks.
    pub fn stolen_total(&self) -> f64 {
        self.detours.stolen(self.reference_ticks) + self.stalls.stolen(self.reference_ticks)
    }

    /// Time stolen in each window, ticks.
    pub fn stolen_ticks(&self) -> Vec<f64> {
        self.detour_ticks.iter().zip(&self.stall_ticks).map(|(d, s)| d + s).collect()
    }

    pub fn gaps(&self) -> u64 {
        self.detours.count + self.stalls.count
    }

    fn gap_ticks(&self) -> f64 {
        self.detours.ticks + self.stalls.ticks
    }

    /// Turns of the windows that tell one, ticks.
    pub fn told_turns(&self) -> Vec<f64> {
        self.turn_ticks.iter().flatten().copied().collect()
    }

    /// Share of wall time lost because turns outside of gaps took longer than the reference.
    pub fn slowdown_fraction(&self) -> Option<f64> {
        if self.reference_ticks <= 0.0 || self.wall_ticks <= 0.0 {
            return None;
        }
        let running = (self.wall_ticks - self.gap_ticks() - self.own_ticks).max(0.0);
        let quiet_turns = self.turns.saturating_sub(self.gaps()) as f64;
        Some(((running - quiet_turns * self.reference_ticks) / self.wall_ticks).max(0.0))
    }

    /// How far gaps, notes and quiet turns x unit miss the wall time, as a share of it; `unit` in ticks.
    pub fn closure(&self, unit_ticks: f64) -> f64 {
        let quiet_turns = self.turns.saturating_sub(self.gaps()) as f64;
        (self.gap_ticks() + self.own_ticks + quiet_turns * unit_ticks) / self.wall_ticks - 1.0
    }
}

pub fn split(cpu: &CpuSamples, schedule: &Schedule) -> Split {
    let windows = cpu.counts.len().max(cpu.sums.len());
    let w = schedule.window_ticks as f64;
    let sums = |k: usize| cpu.sums.get(k).copied().unwrap_or_default();
    let turn = |(k, n): (usize, &u32)| {
        let s = sums(k);
        let quiet = f64::from(*n) - f64::from(s.detours) - f64::from(s.stalls);
        let free = w - f64::from(s.detour_ticks) - f64::from(s.stall_ticks) - f64::from(s.own_ticks);
        (quiet >= 1.0 && free >= FREE_SHARE * w).then(|| free / quiet)
    };
    let turn_ticks: Vec<Option<f64>> = cpu.counts.iter().enumerate().map(turn).collect();
    let speeds: Vec<f64> = turn_ticks.iter().flatten().copied().collect();
    let reference_ticks = sorted(&speeds).ok().and_then(|s| quantile(&s, REFERENCE_QUANTILE)).unwrap_or(0.0);
    let stolen = |ticks: u32, n: u32| (f64::from(ticks) - f64::from(n) * reference_ticks).max(0.0);
    let mut out = Split {
        detour_ticks: cpu.sums.iter().map(|s| stolen(s.detour_ticks, s.detours)).collect(),
        stall_ticks: cpu.sums.iter().map(|s| stolen(s.stall_ticks, s.stalls)).collect(),
        turn_ticks,
        reference_ticks,
        turns: cpu.counts.iter().map(|c| u64::from(*c)).sum(),
        wall_ticks: w * windows as f64,
        detours: Kind::default(),
        stalls: Kind::default(),
        own_ticks: 0.0,
    };
    for s in &cpu.sums {
        out.detours.count += u64::from(s.detours);
        out.detours.ticks += f64::from(s.detour_ticks);
        out.stalls.count += u64::from(s.stalls);
        out.stalls.ticks += f64::from(s.stall_ticks);
        out.own_ticks += f64::from(s.own_ticks);
    }
    out.detour_ticks.resize(windows, 0.0);
    out.stall_ticks.resize(windows, 0.0);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_loops::noise::measure::Gap;
    use machmeter_loops::noise::measure::sums_of;

    fn cpu(counts: Vec<u32>, gaps: Vec<(u64, u64)>) -> CpuSamples {
        let gaps: Vec<Gap> =
            gaps.into_iter().map(|(start_ticks, end_ticks)| Gap { start_ticks, end_ticks }).collect();
        let sums = sums_of(&gaps, &s());
        CpuSamples { counts, sums, gaps, ..CpuSamples::default() }
    }

    fn s() -> Schedule {
        Schedule::all_listed(1000, 100, 5, 20)
    }

    #[test]
    fn a_gap_over_three_windows_is_shared_among_them() {
        // Turn of 10: windows of 10 turns; a gap from 1050 to 1270.
        let s = split(&cpu(vec![6, 0, 3, 10, 10], vec![(1050, 1270)]), &s());
        assert_eq!(s.reference_ticks, 10.0);
        assert_eq!(s.stolen_ticks(), [40.0, 100.0, 70.0, 0.0, 0.0]);
        assert_eq!(s.turn_ticks, [Some(10.0), None, None, Some(10.0), Some(10.0)]);
        assert_eq!(s.stolen_total(), 210.0);
        assert!(s.closure(10.0).abs() < 1e-12);
    }

    #[test]
    fn slowdown_is_what_gaps_do_not_explain() {
        let s = split(&cpu(vec![10, 10, 10, 8, 8], vec![]), &s());
        assert_eq!(s.stolen_total(), 0.0);
        let lost = s.slowdown_fraction().unwrap();
        assert!((lost - 40.0 / 500.0).abs() < 1e-9, "{lost}");
    }

    #[test]
    fn a_gap_beyond_the_last_window_is_clipped() {
        let s = split(&cpu(vec![10, 10, 10, 10, 6], vec![(1450, 9000)]), &s());
        assert_eq!(s.detours.ticks, 50.0);
        assert_eq!(s.stolen_total(), 40.0);
    }
}
