//! FWQ's data at any work size from one recording.

use crate::samples::CpuSamples;
use machmeter_loops::noise::measure::{Gap, Schedule};

/// FWQ: duration in ticks of each consecutive piece of `turns` turns, from the time line that counts and gaps describe.
///
/// Between gaps the loop is taken to run evenly within a window: exact to two turns where no gap shares it.
pub fn fwq(cpu: &CpuSamples, schedule: &Schedule, turns: u64) -> Vec<u64> {
    let turns = turns.max(1);
    let mut line = TimeLine::new(cpu, schedule);
    let mut out = Vec::new();
    let mut previous = schedule.t0_ticks as f64;
    let mut wanted = turns as f64;
    while let Some(t) = line.time_of(wanted) {
        out.push((t - previous).max(0.0).round() as u64);
        previous = t;
        wanted += turns as f64;
    }
    out
}

/// Pieces of time in which turns pass evenly: walks windows and gaps once, in order.
struct TimeLine<'a> {
    cpu: &'a CpuSamples,
    schedule: &'a Schedule,
    window: usize,
    gap: usize,
    /// Pieces of the current window: (turns in it, start, end); a gap is one turn.
    pieces: Vec<(f64, f64, f64)>,
    piece: usize,
    turns_before: f64,
    /// End of the last gap, which may lie windows ahead.
    busy_until: f64,
}

impl<'a> TimeLine<'a> {
    fn new(cpu: &'a CpuSamples, schedule: &'a Schedule) -> Self {
        let (pieces, busy_until) = (Vec::new(), schedule.t0_ticks as f64);
        Self { cpu, schedule, window: 0, gap: 0, pieces, piece: 0, turns_before: 0.0, busy_until }
    }

    /// Time at which turn number `wanted` ended; calls must ascend.
    fn time_of(&mut self, wanted: f64) -> Option<f64> {
        loop {
            while let Some(&(turns, start, end)) = self.pieces.get(self.piece) {
                if self.turns_before + turns >= wanted {
                    let share = if turns > 0.0 { (wanted - self.turns_before) / turns } else { 1.0 };
                    return Some(start + share * (end - start));
                }
                self.turns_before += turns;
                self.piece += 1;
            }
            self.next_window()?;
        }
    }

    fn next_window(&mut self) -> Option<()> {
        let count = f64::from(*self.cpu.counts.get(self.window)?);
        let w = self.schedule.window_ticks;
        let start = (self.schedule.t0_ticks + self.window as u64 * w) as f64;
        let end = start + w as f64;
        self.window += 1;
        self.pieces.clear();
        self.piece = 0;
        let first = self.gap;
        while self.cpu.gaps.get(self.gap).is_some_and(|g| (g.start_ticks as f64) < end) {
            self.gap += 1;
        }
        let gaps = &self.cpu.gaps[first..self.gap];
        let from = start.max(self.busy_until);
        let busy: f64 = gaps.iter().map(|g: &Gap| g.ticks() as f64).sum();
        let last_end = gaps.last().map_or(from, |g| g.end_ticks as f64);
        let free = (end.max(last_end) - from - busy).max(0.0);
        let quiet = (count - gaps.len() as f64).max(0.0);
        let per_tick = if free > 0.0 { quiet / free } else { 0.0 };
        let mut at = from;
        for g in gaps {
            let (a, b) = ((g.start_ticks as f64).max(at), g.end_ticks as f64);
            self.pieces.push((per_tick * (a - at), at, a));
            self.pieces.push((1.0, a, b));
            at = b;
        }
        if at < end {
            self.pieces.push((per_tick * (end - at), at, end));
        }
        self.busy_until = self.busy_until.max(last_end);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn s() -> Schedule {
        Schedule::all_listed(1000, 100, 6, 20)
    }

    fn cpu(counts: Vec<u32>, gaps: &[(u64, u64)]) -> CpuSamples {
        let gaps = gaps.iter().map(|&(start_ticks, end_ticks)| Gap { start_ticks, end_ticks }).collect();
        CpuSamples { counts, gaps, ..CpuSamples::default() }
    }

    #[test]
    fn fwq_durations_hold_the_gaps() {
        // Ten turns a window, a gap from 1250 to 1450 (one turn), then turns again.
        let c = cpu(vec![10, 10, 6, 0, 5, 10], &[(1250, 1450)]);
        let durations = fwq(&c, &s(), 10);
        assert_eq!(durations[0..2], [100, 100]);
        // Ten turns: five before the gap, the gap's own, four after it.
        assert_eq!(durations[2], 50 + 200 + 40);
        assert_eq!(durations.iter().sum::<u64>(), 590);
    }
}
