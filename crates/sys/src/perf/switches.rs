//! The switch log of one thread.

use super::open::{open_switch_event, unavailable};
use super::record::{Entry, PageClock, Switch, take};
use super::ring::Ring;
use crate::Refused;

/// Two simultaneous readings of `CLOCK_MONOTONIC_RAW` and the tick counter, and the rate between them, as clock qualification
/// finds them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TickMap {
    /// `CLOCK_MONOTONIC_RAW` at the reference moment.
    pub raw_ns: u64,
    pub ticks: u64,
    /// Counter rate in ticks per nanosecond.
    pub ticks_per_ns: f64,
}

impl TickMap {
    /// Counter ticks at `raw_ns`, before or after the reference moment.
    pub fn ticks_at(&self, raw_ns: u64) -> u64 {
        let offset_ns = raw_ns.wrapping_sub(self.raw_ns) as i64;
        self.ticks.wrapping_add_signed((offset_ns as f64 * self.ticks_per_ns).round() as i64)
    }
}

/// Records the context switches of the thread that opened it. May be moved to another thread for draining.
#[derive(Debug)]
pub struct SwitchLog {
    ring: Ring,
    /// The kernel's published conversion to ticks, exact up to its rounding to ns; without it, the caller's map is used.
    clock: Option<PageClock>,
    map: TickMap,
    lost: u64,
    bytes: Vec<u8>,
}

impl SwitchLog {
    /// Starts recording the calling thread, with a ring of `pages` (128 switches each; rounded up to a power of
    /// two). `map` is used where the kernel's event clock does not follow the counter. Errors: what refused it.
    pub fn open_for_current_thread(pages: usize, map: TickMap) -> Result<Self, Refused> {
        let pages = pages.max(1).next_power_of_two();
        let mut ring = Ring::map(open_switch_event(None)?, pages)?;
        let clock = ring.clock();
        if clock.is_none() {
            drop(ring);
            ring = Ring::map(open_switch_event(Some(libc::CLOCK_MONOTONIC_RAW))?, pages)?;
        }
        ring.enable(true).map_err(|e| unavailable(format_args!("it cannot be started: {e}")))?;
        // Draining shall take no page fault, and one ring's worth is the most there can be.
        let bytes = Vec::with_capacity(pages * rustix::param::page_size());
        Ok(Self { ring, clock, map, lost: 0, bytes })
    }

    /// Appends the switches since the last call to `switches`, in order, and returns their number.
    pub fn drain(&mut self, switches: &mut Vec<Switch>) -> usize {
        let before = switches.len();
        self.ring.take(&mut self.bytes);
        let mut rest = self.bytes.as_slice();
        let (clock, map) = (self.clock, self.map);
        let ticks = |time_ns| clock.map_or_else(|| map.ticks_at(time_ns), |clock| clock.ticks(time_ns));
        while let Some((entry, size)) = take(rest, ticks) {
            rest = &rest[size..];
            match entry {
                Entry::Switch(switch) => switches.push(switch),
                Entry::Lost(records) => self.lost += records,
                Entry::Skipped => {}
            }
        }
        // The ring tells a loss only once there is room again; a full one without that word has lost an unknown number.
        let full = self.ring.was_full(self.bytes.len());
        self.lost = self.ring.lost().unwrap_or(if full { self.lost.max(1) } else { self.lost });
        switches.len() - before
    }

    /// Stops recording; returns the switches not drained yet and the number of lost records.
    pub fn stop(mut self) -> (Vec<Switch>, u64) {
        // A failure leaves it recording until the descriptor is closed, which is at once.
        let _ = self.ring.enable(false);
        let mut switches = Vec::new();
        self.drain(&mut switches);
        (switches, self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_works_in_both_directions() {
        let map = TickMap { raw_ns: 1_000_000, ticks: 50_000_000, ticks_per_ns: 2.6 };
        assert_eq!(map.ticks_at(1_000_000), 50_000_000);
        assert_eq!(map.ticks_at(1_001_000), 50_002_600);
        assert_eq!(map.ticks_at(999_000), 49_997_400);
    }
}
