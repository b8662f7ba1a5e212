//! Work on a named CPU, waited for no longer than a limit.
//!
//! These threads are not joined: a real-time thread may own the CPU, and then the work would hold its caller for as
//! long as that thread likes. Late work finds nobody waiting and ends.

use std::fmt::Display;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::{MonotonicRaw, TickSource};
use crate::Refused;
use crate::affinity;
use crate::sched::{self, Policy};

pub(super) struct Pending<T> {
    cpu: usize,
    started_ns: u64,
    result: Receiver<Result<T, Refused>>,
}

pub(super) fn unexamined(cpu: usize, why: impl Display) -> Refused {
    Refused(format!("CPU {cpu} could not be examined: {why}"))
}

/// Starts `work`, which must end by itself within milliseconds, on a new thread bound to `cpu`. Where permitted, the
/// thread runs ahead of ordinary ones, so that a busy CPU can be examined too.
pub(super) fn start<T: Send + 'static>(
    cpu: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<Pending<T>, Refused> {
    let (sender, result) = channel();
    let body = move || {
        // Without the right, or under a real-time caller whose policy the thread has inherited, all stays as it is.
        if sched::current().is_ok_and(|policy| !policy.is_real_time()) {
            drop(sched::apply(Policy::Fifo(1)));
        }
        let outcome = affinity::pin(cpu).map(|()| work()).map_err(|e| unexamined(cpu, e));
        // A receiver that gave up is no error: the answer came too late.
        drop(sender.send(outcome));
    };
    std::thread::Builder::new()
        .name(format!("clock-cpu{cpu}"))
        .spawn(body)
        .map_err(|e| unexamined(cpu, format_args!("no thread could be started: {e}")))?;
    Ok(Pending { cpu, started_ns: MonotonicRaw::now(), result })
}

impl<T> Pending<T> {
    /// The result, if it comes before `deadline_ns` of `CLOCK_MONOTONIC_RAW`.
    pub(super) fn wait_until(self, deadline_ns: u64) -> Result<T, Refused> {
        let allowed_ms = deadline_ns.saturating_sub(self.started_ns) as f64 / 1e6;
        let limit = Duration::from_nanos(deadline_ns.saturating_sub(MonotonicRaw::now()));
        self.result.recv_timeout(limit).unwrap_or_else(|e| {
            let why = match e {
                RecvTimeoutError::Timeout => format!("the CPU gave no time within {allowed_ms:.0} ms"),
                RecvTimeoutError::Disconnected => "the thread ended early".to_owned(),
            };
            Err(unexamined(self.cpu, why))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_runs_on_its_cpu_and_late_work_is_not_waited_for() {
        let cpu = affinity::mask().unwrap().iter().next().unwrap();
        let second_ns = 1_000_000_000;
        let on = start(cpu, affinity::current_cpu).unwrap();
        assert_eq!(on.wait_until(MonotonicRaw::now() + 20 * second_ns), Ok(Some(cpu)));

        let (release, held) = channel::<()>();
        let late = start(cpu, move || held.recv().is_ok()).unwrap();
        let message = late.wait_until(MonotonicRaw::now() + 1_000_000).unwrap_err().to_string();
        assert!(message.contains("gave no time"), "{message}");
        drop(release);
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_named() {
        let none = start(100_000, || ()).unwrap();
        let message = none.wait_until(MonotonicRaw::now() + 20_000_000_000).unwrap_err().to_string();
        assert!(message.contains("100000"), "{message}");
    }
}
