//! What the loop writes down: turns and losses per window, lengths of all gaps, longer gaps one by one.
//! Only the list can overflow, so it takes longer gaps only when it fills too fast.

use machmeter_stats::histogram::LogHistogram;
use serde::{Deserialize, Serialize};

/// A turn that took too long: from the tick read before it to the one after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Gap {
    pub start_ticks: u64,
    pub end_ticks: u64,
}

impl Gap {
    /// Length in ticks, one undisturbed turn included.
    pub fn ticks(&self) -> u64 {
        self.end_ticks.saturating_sub(self.start_ticks)
    }
}

/// What one window lost. A gap counts where it began; its time lies in the windows that it covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[repr(C)]
pub struct Sums {
    pub detours: u32,
    /// Time in detours, ticks.
    pub detour_ticks: u32,
    pub stalls: u32,
    /// Time in them, ticks.
    pub stall_ticks: u32,
    pub clusters: u32,
    /// Time the loop took for its notes, ticks.
    pub own_ticks: u32,
}

/// From a window on, only longer detours were listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Raise {
    pub window: usize,
    /// Shortest detour listed from then on, ticks; the largest number when none was.
    pub listing_ticks: u64,
}

pub trait Notes {
    /// A gap that began in `window`, which is not closed yet.
    fn gap(&mut self, gap: Gap, window: usize);
    /// The `window` had `turns` and ended at `end_ticks`.
    fn close(&mut self, window: usize, turns: u32, end_ticks: u64);
    /// What is left of the gap until `now` lies in the window that is open.
    fn rest(&mut self, now: u64);
    /// The notes took so many ticks.
    fn own(&mut self, ticks: u64);
}

/// The list is made to take longer gaps so many times at most; the last time it takes none.
const RAISES: usize = 12;
/// By what the shortest listed detour grows.
const DECADE: u64 = 10;

/// Preallocated, prefaulted places for what the loop sees.
pub struct Buffers<'a> {
    counts: &'a mut [u32],
    sums: &'a mut [Sums],
    gaps: &'a mut [Gap],
    histogram: &'a mut LogHistogram,
    stall_ticks: u64,
    pause_ticks: u64,
    listing_ticks: u64,
    open: Sums,
    /// Part of the last gap that is in no window yet begins here, and whether it was a stall.
    from_ticks: u64,
    is_stall: bool,
    stalled_until: u64,
    listed: usize,
    windows: usize,
    /// When so many are listed before this window, the list takes longer ones only.
    look_at: usize,
    before_window: usize,
    raises: [Raise; RAISES],
    raised: usize,
}

impl<'a> Buffers<'a> {
    /// Notes of a `schedule` in zeroed memory; turns and sums per window may be shorter than the schedule.
    pub fn new(
        schedule: &super::measure::Schedule,
        counts: &'a mut [u32],
        sums: &'a mut [Sums],
        gaps: &'a mut [Gap],
        histogram: &'a mut LogHistogram,
    ) -> Self {
        Self {
            look_at: gaps.len() / 2,
            before_window: schedule.windows / 2,
            counts,
            sums,
            gaps,
            histogram,
            stall_ticks: schedule.stall_ticks,
            pause_ticks: schedule.pause_ticks,
            listing_ticks: schedule.listing_ticks,
            open: Sums::default(),
            from_ticks: u64::MAX,
            is_stall: false,
            stalled_until: 0,
            listed: 0,
            windows: schedule.windows,
            raises: [Raise::default(); RAISES],
            raised: 0,
        }
    }

    pub fn listed(&self) -> usize {
        self.listed
    }

    /// When the list began to take longer detours only.
    pub fn raises(&self) -> &[Raise] {
        &self.raises[..self.raised]
    }

    /// Half of the room that was left is gone: if half of the time that was left is not, the rest of the room would not last.
    #[inline(always)]
    fn look(&mut self, window: usize) {
        let left = self.gaps.len() - self.listed;
        if (window < self.before_window || left == 0) && self.raised < RAISES {
            let last = left == 0 || self.raised + 1 == RAISES;
            self.listing_ticks = if last { u64::MAX } else { self.listing_ticks.saturating_mul(DECADE) };
            self.raises[self.raised] = Raise { window, listing_ticks: self.listing_ticks };
            self.raised += 1;
        }
        self.look_at = self.listed + left.div_ceil(2);
        self.before_window = window + self.windows.saturating_sub(window) / 2;
    }

    /// Books the time from the last gap's beginning to `until` in the window that is open.
    #[inline(always)]
    fn book(&mut self, until: u64) {
        let ticks = until.saturating_sub(self.from_ticks).min(u64::from(u32::MAX)) as u32;
        if self.is_stall {
            self.open.stall_ticks = self.open.stall_ticks.saturating_add(ticks);
        } else {
            self.open.detour_ticks = self.open.detour_ticks.saturating_add(ticks);
        }
    }
}

impl Notes for Buffers<'_> {
    #[inline(always)]
    fn gap(&mut self, gap: Gap, window: usize) {
        let taken = gap.end_ticks.wrapping_sub(gap.start_ticks);
        self.histogram.record(taken);
        self.from_ticks = gap.start_ticks;
        self.is_stall = taken < self.stall_ticks;
        if self.is_stall {
            self.open.stalls += 1;
            let first = gap.start_ticks.wrapping_sub(self.stalled_until) > self.pause_ticks;
            self.open.clusters += u32::from(first);
            self.stalled_until = gap.end_ticks;
            return;
        }
        self.open.detours += 1;
        if taken >= self.listing_ticks
            && let Some(slot) = self.gaps.get_mut(self.listed)
        {
            *slot = gap;
            self.listed += 1;
            if self.listed >= self.look_at {
                self.look(window);
            }
        }
    }

    #[inline(always)]
    fn close(&mut self, window: usize, turns: u32, end_ticks: u64) {
        self.book(end_ticks);
        self.from_ticks = self.from_ticks.max(end_ticks);
        if let Some(slot) = self.counts.get_mut(window) {
            *slot = turns;
        }
        if let Some(slot) = self.sums.get_mut(window) {
            *slot = self.open;
        }
        self.open = Sums::default();
    }

    #[inline(always)]
    fn rest(&mut self, now: u64) {
        self.book(now);
        self.from_ticks = u64::MAX;
    }

    #[inline(always)]
    fn own(&mut self, ticks: u64) {
        self.open.own_ticks = self.open.own_ticks.saturating_add(ticks as u32);
    }
}

/// Windows that a gap covers, with the ticks of it in each; the first is the one in which it counts.
pub fn parts(gap: &Gap, schedule: &super::measure::Schedule) -> impl Iterator<Item = (usize, u32)> {
    let (t0, w) = (schedule.t0_ticks, schedule.window_ticks);
    let (from, to) = (gap.start_ticks.max(t0) - t0, gap.end_ticks.max(t0) - t0);
    let (first, last) = ((from / w) as usize, (to / w) as usize);
    (first..last.saturating_add(1).min(schedule.windows.max(first))).map(move |k| {
        let part = to.min((k as u64 + 1) * w).saturating_sub(from.max(k as u64 * w));
        (k, u32::try_from(part).unwrap_or(u32::MAX))
    })
}

/// The sums that a list of gaps gives, all of them detours: for imported lists.
pub fn sums_of(gaps: &[Gap], schedule: &super::measure::Schedule) -> Vec<Sums> {
    let mut sums = vec![Sums::default(); schedule.windows];
    for g in gaps {
        for (i, (window, ticks)) in parts(g, schedule).enumerate() {
            let Some(s) = sums.get_mut(window) else { break };
            s.detours += u32::from(i == 0);
            s.detour_ticks = s.detour_ticks.saturating_add(ticks);
        }
    }
    sums
}
