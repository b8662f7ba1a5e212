//! When the kernel took the CPU from one thread and gave it back, without root: context-switch records of `perf_event_open` on a
//! software event that counts nothing.
//!
//! Sources: `perf_event_open(2)` (`context_switch`, `PERF_RECORD_SWITCH`, `struct perf_event_mmap_page`),
//! `include/uapi/linux/perf_event.h`.

mod open;
mod record;
mod ring;
mod switches;

pub use record::{PageClock, Switch};
pub use switches::{SwitchLog, TickMap};

/// The kernel's conversion between ticks and event time; `None` where its clock does not follow the counter.
pub(crate) fn page_clock() -> Option<PageClock> {
    ring::Ring::map(open::open_switch_event(None).ok()?, 1).ok()?.clock()
}
