//! A work unit that stalls at planned turns and stamps each stall: planted truth for the self-test of the noise loop.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;

use machmeter_sys::Refused;
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};

use super::measure::{Buffers, Gap, Schedule, WorkUnit, record};
use crate::clock::SourceClock;

/// A stall: when it is due, how long it lasts, and where it took place.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stall {
    /// Turns since the stall before.
    pub turns: u64,
    pub length_ticks: u64,
    /// A mark of the caller's.
    pub class: usize,
    /// Stamps around the stall, set when it took place.
    pub done: Gap,
}

struct Stalling<'a, S> {
    plan: &'a mut [Stall],
    next: usize,
    turns_left: u64,
    source: PhantomData<S>,
}

impl<S: TickSource> WorkUnit for Stalling<'_, S> {
    #[inline(always)]
    fn unit(&mut self) {
        self.turns_left = self.turns_left.wrapping_sub(1);
        if self.turns_left == 0 {
            self.stall();
        }
    }
}

impl<S: TickSource> Stalling<'_, S> {
    #[inline(never)]
    fn stall(&mut self) {
        let Some(stall) = self.plan.get_mut(self.next) else { return };
        let start_ticks = S::now();
        let mut end_ticks = start_ticks;
        while end_ticks.saturating_sub(start_ticks) < stall.length_ticks {
            end_ticks = S::now();
        }
        stall.done = Gap { start_ticks, end_ticks };
        self.next += 1;
        self.turns_left = self.plan.get(self.next).map_or(u64::MAX, |s| s.turns);
    }
}

struct Recording<'a, 'b> {
    plan: &'a mut [Stall],
    schedule: &'a Schedule,
    notes: &'a mut Buffers<'b>,
    stop: &'a AtomicBool,
}

impl WithSource for Recording<'_, '_> {
    type Output = usize;

    fn run<S: TickSource>(self) -> usize {
        let turns_left = self.plan.first().map_or(u64::MAX, |s| s.turns);
        let mut unit = Stalling::<S> { plan: self.plan, next: 0, turns_left, source: PhantomData };
        record(&mut SourceClock::<S>::new(), &mut unit, self.schedule, self.notes, self.stop);
        unit.next
    }
}

/// Records with a unit that stalls as planned. Returns how many stalls took place.
///
/// # Errors
/// If this machine has no such source; nothing was recorded then.
pub fn record_stalling(
    source: SourceId,
    plan: &mut [Stall],
    schedule: &Schedule,
    notes: &mut Buffers<'_>,
    stop: &AtomicBool,
) -> Result<usize, Refused> {
    dispatch(source, Recording { plan, schedule, notes, stop })
}
