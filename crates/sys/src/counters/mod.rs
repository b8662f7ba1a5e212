//! The kernel's counters under `/proc`, as snapshots and differences; the parsers are pure functions of the text.

pub mod interrupts;
pub mod schedstat;
pub mod stat;

use std::fs;
use std::io;

use interrupts::InterruptCounts;
use stat::CpuTimes;

/// All counters of one moment. A reading costs tens of microseconds and more: take it at the ends of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Counters {
    pub interrupts: InterruptCounts,
    pub softirqs: InterruptCounts,
    pub times: CpuTimes,
}

impl Counters {
    /// Errors: the file that could not be read or understood, with the reason.
    pub fn read() -> io::Result<Self> {
        Ok(Self {
            interrupts: parsed("/proc/interrupts", InterruptCounts::parse)?,
            softirqs: parsed("/proc/softirqs", InterruptCounts::parse)?,
            times: cpu_times()?,
        })
    }

    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            interrupts: self.interrupts.since(&earlier.interrupts),
            softirqs: self.softirqs.since(&earlier.softirqs),
            times: self.times.since(&earlier.times),
        }
    }
}

/// `/proc/stat` alone, for looking around a short measurement.
pub fn cpu_times() -> io::Result<CpuTimes> {
    let user_hz = rustix::param::clock_ticks_per_second();
    parsed("/proc/stat", |text| CpuTimes::parse(text, user_hz))
}

fn parsed<T>(path: &str, parse: impl Fn(&str) -> Option<T>) -> io::Result<T> {
    let text = fs::read_to_string(path).map_err(|e| io::Error::new(e.kind(), format!("{path}: {e}")))?;
    parse(&text).ok_or_else(|| io::Error::other(format!("{path} was not understood")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_moment_counts_up_on_this_machine() {
        let before = Counters::read().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(50));
        let delta = Counters::read().unwrap().since(&before);
        assert!(delta.interrupts.lines.iter().any(|l| l.counts.iter().any(|n| *n > 0)));
        // Nothing ran longer than the moment lasted, with room for a busy machine.
        assert!(delta.times.steal_ns() < 60_000_000_000);
    }
}
