//! Wake-ups of the meter's own main thread while the loops run. Where every CPU is measured it takes one of them for a moment: that is no
//! noise of the machine, and is booked as the meter's own time.

use super::samples::CpuSamples;
use machmeter_loops::noise::measure::parts;
use machmeter_loops::noise::measure::{Gap, Schedule};

/// When the main thread was awake, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WakeUp {
    pub(super) cpu: usize,
    pub(super) start_ticks: u64,
    pub(super) end_ticks: u64,
}

/// Books the gaps that `wake_ups` (in order of time) made: they are in no list, sum or histogram afterwards. A gap is such a one if they
/// are more of it than all else but `lag_ticks`, which coming and going take. One that is not listed stays.
pub(super) fn book(cpu: &mut CpuSamples, wake_ups: &[WakeUp], schedule: &Schedule, lag_ticks: u64) {
    let here: Vec<&WakeUp> = wake_ups.iter().filter(|w| w.cpu == cpu.cpu).collect();
    let is_own = |g: &Gap| {
        let first = here.partition_point(|w| w.end_ticks <= g.start_ticks);
        let within = here[first..].iter().take_while(|w| w.start_ticks < g.end_ticks);
        let awake: u64 =
            within.map(|w| w.end_ticks.min(g.end_ticks) - w.start_ticks.max(g.start_ticks)).sum();
        awake > 0 && g.ticks() <= (2 * awake).max(awake + lag_ticks)
    };
    let (own, others): (Vec<Gap>, Vec<Gap>) = std::mem::take(&mut cpu.gaps).into_iter().partition(is_own);
    cpu.gaps = others;
    for g in own {
        for (i, (window, ticks)) in parts(&g, schedule).enumerate() {
            let is_first = u32::from(i == 0);
            if let Some(turns) = cpu.counts.get_mut(window) {
                *turns = turns.saturating_sub(is_first);
            }
            if let Some(s) = cpu.sums.get_mut(window) {
                s.detours = s.detours.saturating_sub(is_first);
                s.detour_ticks = s.detour_ticks.saturating_sub(ticks);
                s.own_ticks = s.own_ticks.saturating_add(ticks);
            }
        }
        let lengths = &mut cpu.lengths;
        lengths.count = lengths.count.saturating_sub(1);
        lengths.sum_ticks = lengths.sum_ticks.saturating_sub(g.ticks());
        if let Some(b) = lengths.buckets.iter_mut().find(|b| (b.low..=b.high).contains(&g.ticks())) {
            b.count = b.count.saturating_sub(1);
        }
        lengths.buckets.retain(|b| b.count > 0);
        if g.ticks() == lengths.longest_ticks {
            // A longer one would be listed; where none is left, the bucket tells.
            let listed = cpu.gaps.iter().map(Gap::ticks).max();
            lengths.longest_ticks =
                listed.or_else(|| lengths.buckets.last().map(|b| b.high)).unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::Lengths;
    use machmeter_loops::noise::measure::sums_of;

    #[test]
    fn a_wake_up_is_the_meters_own_time_and_nothing_else_is() {
        let schedule = Schedule::all_listed(1000, 100, 10, 20);
        let gap = |(start_ticks, end_ticks)| Gap { start_ticks, end_ticks };
        // Another's; the meter's, over three windows; one with a short wake-up inside; the meter's with its lags.
        let gaps: Vec<Gap> = [(1010, 1040), (1150, 1370), (1500, 1700), (1850, 1880)].map(gap).to_vec();
        let before = CpuSamples {
            cpu: 1,
            counts: vec![8; 10],
            sums: sums_of(&gaps, &schedule),
            lengths: Lengths::of_gaps(&gaps),
            gaps: gaps.clone(),
            ..CpuSamples::default()
        };
        let awake = |cpu, start_ticks, end_ticks| WakeUp { cpu, start_ticks, end_ticks };
        let wake_ups =
            [awake(0, 1010, 1040), awake(1, 1155, 1360), awake(1, 1600, 1640), awake(1, 1860, 1870)];
        let mut cpu = before.clone();
        book(&mut cpu, &wake_ups, &schedule, 20);
        assert_eq!(cpu.gaps, [gaps[0], gaps[2]]);
        assert_eq!(cpu.lengths, Lengths::of_gaps(&cpu.gaps));
        let left = sums_of(&cpu.gaps, &schedule);
        for ((s, left), all) in cpu.sums.iter().zip(&left).zip(&before.sums) {
            assert_eq!((s.detours, s.detour_ticks), (left.detours, left.detour_ticks));
            assert_eq!(s.detour_ticks + s.own_ticks, all.detour_ticks, "no time is lost");
        }
        assert_eq!(cpu.counts, [8, 7, 8, 8, 8, 8, 8, 8, 7, 8]);
        let mut other = before.clone();
        book(&mut other, &wake_ups[..1], &schedule, 20);
        assert_eq!(other, before, "a wake-up on another CPU");
    }
}
