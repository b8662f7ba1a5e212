//! The loop: one turn = one work unit, one tick read, two comparisons. It yields turns per base window (FTQ), what gaps took
//! of each window, and start and end of every longer gap (selfish detour, FWQ) at once.
//!
//! Window k is [t0 + k w, t0 + (k + 1) w) on all CPUs. A turn counts where it started to be late; swallowed windows count 0.
//! Nothing in the loop allocates, calls, divides, or writes outside the buffers it is given.
//!
//! A note's own time is booked: after its stores the clock is read once more. It is part of no gap and of no turn.

use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_sys::clock::settle;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;

pub use super::notes::{Buffers, Gap, Notes, Raise, Sums, parts, sums_of};

/// One unit of work. See [`super::kernel`] for those of the real processor.
pub trait WorkUnit {
    fn unit(&mut self);
}

/// When the windows lie, and what is made of turns that take long.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Schedule {
    /// Start of the first window, ticks.
    pub t0_ticks: u64,
    /// Length of a window, ticks.
    pub window_ticks: u64,
    /// Windows to record; the loop ends after the last.
    pub windows: usize,
    /// A turn of at least this many ticks is a gap: it is counted.
    pub threshold_ticks: u64,
    /// A shorter gap is a micro-stall, any other a detour; 0 where no gap is a stall.
    pub stall_ticks: u64,
    /// A stall later than this after the one before begins a new cluster, ticks.
    pub pause_ticks: u64,
    /// Detours of at least this many ticks are listed one by one, until the list makes this longer.
    pub listing_ticks: u64,
    /// A note takes no longer than this; what does was interrupted, and is measured as a gap. Ticks.
    pub note_ticks: u64,
}

impl Schedule {
    /// Windows in which every gap is a detour and listed.
    pub fn all_listed(t0_ticks: u64, window_ticks: u64, windows: usize, threshold_ticks: u64) -> Self {
        Self {
            t0_ticks,
            window_ticks,
            windows,
            threshold_ticks,
            stall_ticks: 0,
            pause_ticks: 0,
            listing_ticks: threshold_ticks,
            note_ticks: threshold_ticks.saturating_mul(NOTE_TURNS),
        }
    }

    /// End of the last window, ticks.
    pub fn end_ticks(&self) -> u64 {
        self.t0_ticks + self.window_ticks * self.windows as u64
    }
}

/// A note writes to at most eight cache lines; from memory, with translations, 160 turns: 64 thresholds of 2.5.
const NOTE_TURNS: u64 = 64;
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Windows closed: all of the schedule unless it was stopped.
    pub windows_closed: usize,
    pub end_ticks: u64,
}

/// Runs the loop to the end of the schedule, or until `stop` is set (looked at once per window).
#[inline(never)]
pub fn record<C: Clock, W: WorkUnit, N: Notes>(
    clock: &mut C,
    work: &mut W,
    schedule: &Schedule,
    notes: &mut N,
    stop: &AtomicBool,
) -> Ended {
    let Schedule { t0_ticks, window_ticks, windows, threshold_ticks, note_ticks, .. } = *schedule;
    while clock.now() < t0_ticks {}
    // The first turn counts from t0, so that a detour across t0 is not lost.
    let mut previous = t0_ticks;
    let mut window_end = t0_ticks + window_ticks;
    let mut window = 0_usize;
    let mut count = 0_u32;
    loop {
        work.unit();
        let now = clock.now();
        count = count.wrapping_add(1);
        let is_gap = now.wrapping_sub(previous) >= threshold_ticks;
        if !is_gap && now < window_end {
            previous = now;
            continue;
        }
        let opened = window;
        if is_gap {
            notes.gap(Gap { start_ticks: previous, end_ticks: now }, window);
        }
        if now >= window_end {
            while now >= window_end && window < windows {
                notes.close(window, count, window_end);
                count = 0;
                window += 1;
                window_end += window_ticks;
            }
            if window >= windows || stop.load(Ordering::Relaxed) {
                return Ended { windows_closed: window, end_ticks: now };
            }
        }
        notes.rest(now);
        // The stores of the note end in its own time, not in the next turn.
        settle();
        let noted = clock.now();
        // A long gap closes many windows, and each is a note like any other.
        let notes_taken = 1 + (window - opened) as u64;
        if noted.wrapping_sub(now) < note_ticks.saturating_mul(notes_taken) {
            notes.own(noted.wrapping_sub(now));
            previous = noted;
        } else {
            previous = now;
        }
    }
}

/// Times undisturbed-looking turns, the ticks of each, for finding threshold and unit cost. Not part of the recording.
#[inline(never)]
fn sample_turns<C: Clock, W: WorkUnit>(clock: &mut C, work: &mut W, taken_ticks: &mut [u64]) {
    let mut previous = clock.now();
    for slot in taken_ticks {
        work.unit();
        let now = clock.now();
        *slot = now.wrapping_sub(previous);
        previous = now;
    }
}

/// Bursts of calibration, and turns in each; the first warms caches and clock, and is taken along, since the quietest decides.
const BURSTS: usize = 12;
const BURST_TURNS: usize = 20_000;

/// Ticks of the turns of `BURSTS` bursts. Memory is touched before: page faults would set the 99.9 % quantile.
pub fn sample_bursts<C: Clock, W: WorkUnit>(clock: &mut C, work: &mut W) -> Vec<Vec<u64>> {
    // Ones, because zeros would be handed out as pages not yet there.
    let mut taken_ticks = vec![vec![1; BURST_TURNS]; BURSTS];
    for burst in &mut taken_ticks {
        sample_turns(clock, work, burst);
    }
    taken_ticks
}

/// The threshold for gaps: 2.5 times the 99.9 % quantile of the quietest burst of [`sample_bursts`], since noise only
/// lengthens, at least three clock steps. Ordinary turns stay below: a detour of 50 ns is seen.
///
/// Some 50,000 interruptions a second reach that quantile in every burst. So the threshold stays at `most_ticks`, the shortest detour that
/// must be seen, unless the median turn itself asks for more.
pub fn threshold_ticks(bursts: &[Vec<u64>], step_ticks: u64, most_ticks: u64) -> Option<u64> {
    let longest = |per_mille: usize| {
        let of_burst = |b: &Vec<u64>| {
            let mut sorted = b.clone();
            sorted.sort_unstable();
            sorted[(sorted.len() - 1) * per_mille / 1000]
        };
        bursts.iter().filter(|b| b.len() >= 100).map(of_burst).min()
    };
    let (p999, median) = (longest(999)?, longest(500)?);
    Some((p999 * 5 / 2).min(most_ticks.max(median * 5 / 2)).max(3 * step_ticks).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::thread::Usage;

    /// Counts the page faults of the thread from its first reading on.
    struct Watching {
        since: Option<Usage>,
        ticks: u64,
    }

    impl Clock for Watching {
        fn now(&mut self) -> u64 {
            self.since.get_or_insert_with(Usage::of_current_thread);
            self.ticks += 10;
            self.ticks
        }
    }

    struct Nothing;

    impl WorkUnit for Nothing {
        fn unit(&mut self) {}
    }

    #[test]
    fn calibration_takes_no_page_fault_for_its_own_notes() {
        let mut clock = Watching { since: None, ticks: 0 };
        let bursts = sample_bursts(&mut clock, &mut Nothing);
        let faults = Usage::of_current_thread().since(&clock.since.unwrap()).minor_faults;
        // 12 bursts of 20,000 turns lie on 470 pages.
        assert!(faults < 20, "{faults} page faults");
        assert_eq!(threshold_ticks(&bursts, 1, 500), Some(25));
        // Interruptions in two of a thousand turns of every burst: the shortest detour that must be seen stays in sight.
        let busy: Vec<Vec<u64>> =
            vec![(0..1000).map(|i| if i % 500 == 7 { 6_000 } else { 10 }).collect(); 12];
        assert_eq!(threshold_ticks(&busy, 1, 500), Some(500));
        let long: Vec<Vec<u64>> = busy.iter().map(|b| b.iter().map(|t| t * 100).collect()).collect();
        assert_eq!(threshold_ticks(&long, 1, 500), Some(2_500), "a turn of 1000 ticks");
    }
}
