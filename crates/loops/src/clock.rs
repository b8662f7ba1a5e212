//! The clock that measuring loops are generic over: a tick source of the host, or simulated time in tests.

use std::marker::PhantomData;

use machmeter_sys::clock::TickSource;

/// Time in ticks: loops generic over it compile to the bare counter instruction, and run in simulated time.
pub trait Clock {
    fn now(&mut self) -> u64;
}

/// A tick source of the host as a clock.
pub(crate) struct SourceClock<S>(PhantomData<S>);

impl<S> SourceClock<S> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<S: TickSource> Clock for SourceClock<S> {
    #[inline(always)]
    fn now(&mut self) -> u64 {
        S::now()
    }
}

/// Simulated time: reads cost `read_ticks`, work advances it, and stolen intervals push it forward when crossed.
#[derive(Debug, Clone)]
pub struct SimulatedClock {
    now: u64,
    read_ticks: u64,
    step_ticks: u64,
    stolen: Vec<(u64, u64)>,
    next: usize,
}

impl SimulatedClock {
    /// Shows multiples of `step_ticks` (1: a perfect counter). `stolen`: disjoint, ascending (start, duration), ticks.
    pub fn new(start: u64, read_ticks: u64, step_ticks: u64, stolen: Vec<(u64, u64)>) -> Self {
        Self { now: start, read_ticks, step_ticks: step_ticks.max(1), stolen, next: 0 }
    }

    /// Lets the processor run for `ticks`; stolen intervals that begin meanwhile delay it.
    #[inline]
    pub fn run(&mut self, ticks: u64) {
        let mut left = ticks;
        while let Some(&(start, duration)) = self.stolen.get(self.next) {
            let until = start.saturating_sub(self.now);
            if until > left {
                break;
            }
            left -= until;
            self.now = self.now.max(start) + duration;
            self.next += 1;
        }
        self.now += left;
    }

    /// True time, not rounded to the step.
    pub fn exact(&self) -> u64 {
        self.now
    }
}

impl Clock for SimulatedClock {
    #[inline]
    fn now(&mut self) -> u64 {
        self.run(self.read_ticks);
        self.now - self.now % self.step_ticks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_intervals_delay_the_run_by_exactly_their_duration() {
        let mut c = SimulatedClock::new(1000, 0, 1, vec![(1100, 50), (1160, 7), (5000, 1)]);
        c.run(100);
        assert_eq!(c.exact(), 1150, "the steal at the very end of the work is crossed");
        c.run(10);
        assert_eq!(c.exact(), 1167);
        c.run(1);
        assert_eq!(c.exact(), 1168);
    }

    #[test]
    fn a_stepped_clock_shows_multiples_of_its_step() {
        let mut c = SimulatedClock::new(0, 9, 26, vec![]);
        let seen: Vec<u64> = (0..6).map(|_| c.now()).collect();
        assert_eq!(seen, [0, 0, 26, 26, 26, 52]);
    }
}
