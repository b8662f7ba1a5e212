//! The exchange of stamps between two CPUs that [`super::offset_from_exchanges`] evaluates.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::{Exchange, MonotonicRaw, TickSource, pinned};
use crate::Refused;

/// A cache line of its own for each direction (two lines, because x86 prefetches them in pairs).
#[repr(align(128))]
#[derive(Default)]
struct Line {
    /// Number of the exchange; `STOP` ends the partner.
    number: AtomicU64,
    stamp_ticks: AtomicU64,
}

#[derive(Default)]
struct Channel {
    gate: Gate,
    question: Line,
    answer: Line,
}

/// Where both threads wait, asleep, for each other: one in a loop could keep the other from ever starting.
#[derive(Default)]
struct Gate {
    arrived: Mutex<usize>,
    changed: Condvar,
}

impl Gate {
    /// Waits for the other thread; false if it did not come until the deadline.
    fn meet(&self, deadline_ns: u64) -> bool {
        let mut arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        *arrived += 1;
        self.changed.notify_all();
        let limit = Duration::from_nanos(deadline_ns.saturating_sub(MonotonicRaw::now()));
        let waited = self.changed.wait_timeout_while(arrived, limit, |arrived| *arrived < 2);
        *waited.unwrap_or_else(PoisonError::into_inner).0 >= 2
    }
}

const STOP: u64 = u64::MAX;
/// Turns of a waiting loop between looks at the deadline: few enough to end in time, not to slow it.
const TURNS_PER_LOOK: u32 = 256;

/// Exchanges stamps of `S`, an ordered source, between two CPUs until `count` are done or `limit_ns` is over.
/// Errors: a thread could not be bound, or the two did not meet within the limit.
pub(super) fn exchange<S: TickSource>(
    from: usize,
    to: usize,
    count: usize,
    limit_ns: u64,
) -> Result<Vec<Exchange>, Refused> {
    let deadline_ns = MonotonicRaw::now() + limit_ns;
    let channel = Arc::new(Channel::default());
    let partner_channel = Arc::clone(&channel);
    let partner = pinned::start(to, move || answer::<S>(&partner_channel, deadline_ns))?;
    let asker = pinned::start(from, move || ask::<S>(&channel, count, deadline_ns))?;
    // The asker sees to the deadline itself; the grace is for its way back through the scheduler.
    let exchanges = asker.wait_until(deadline_ns + limit_ns / 4)?;
    if exchanges.is_empty() {
        // Tell a partner that could not be bound from one that got no time.
        partner.wait_until(deadline_ns)?;
        let within_ms = limit_ns as f64 / 1e6;
        return Err(pinned::unexamined(to, format!("no exchange with CPU {from} within {within_ms:.0} ms")));
    }
    Ok(exchanges)
}

fn ask<S: TickSource>(channel: &Channel, count: usize, deadline_ns: u64) -> Vec<Exchange> {
    let mut exchanges = Vec::with_capacity(count);
    if !channel.gate.meet(deadline_ns) {
        return exchanges;
    }
    for number in 1..=count as u64 {
        let sent_ticks = S::now();
        channel.question.number.store(number, Ordering::Release);
        let answered = wait(deadline_ns, || channel.answer.number.load(Ordering::Acquire) == number);
        let received_ticks = S::now();
        if !answered {
            break;
        }
        let answered_ticks = channel.answer.stamp_ticks.load(Ordering::Relaxed);
        exchanges.push(Exchange { sent_ticks, answered_ticks, received_ticks });
    }
    channel.question.number.store(STOP, Ordering::Release);
    exchanges
}

fn answer<S: TickSource>(channel: &Channel, deadline_ns: u64) {
    let mut last = 0;
    if !channel.gate.meet(deadline_ns) {
        return;
    }
    loop {
        let asked = wait(deadline_ns, || {
            let number = channel.question.number.load(Ordering::Acquire);
            let new = number != last;
            last = number;
            new
        });
        let stamp_ticks = S::now();
        if !asked || last == STOP {
            return;
        }
        channel.answer.stamp_ticks.store(stamp_ticks, Ordering::Relaxed);
        channel.answer.number.store(last, Ordering::Release);
    }
}

/// Turns until `done` (true) or until the deadline has passed (false).
fn wait(deadline_ns: u64, mut done: impl FnMut() -> bool) -> bool {
    loop {
        for _ in 0..TURNS_PER_LOOK {
            if done() {
                return true;
            }
            spin_loop();
        }
        if MonotonicRaw::now() >= deadline_ns {
            return false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::affinity;
    use crate::clock::{OrderedCounter, offset_from_exchanges};

    #[test]
    fn stamps_of_one_exchange_are_ordered_in_the_askers_clock() {
        let cpus: Vec<usize> = affinity::mask().unwrap().iter().collect();
        let [from, .., to] = cpus[..] else {
            return println!("skipped: this process may use one CPU only");
        };
        let exchanges = exchange::<MonotonicRaw>(from, to, 50, 5_000_000_000).unwrap();
        assert!(!exchanges.is_empty());
        for e in &exchanges {
            assert!(e.sent_ticks <= e.answered_ticks && e.answered_ticks <= e.received_ticks, "{e:?}");
        }
        let offset = offset_from_exchanges(&exchanges, 1).unwrap();
        assert!(
            offset.consistent && !offset.excludes_zero(),
            "one clock is not apart from itself: {offset:?}"
        );
    }

    #[test]
    fn a_partner_that_does_not_exist_ends_with_a_reason() {
        let here = affinity::mask().unwrap().iter().next().unwrap();
        let error = exchange::<OrderedCounter>(here, 100_000, 10, 20_000_000).unwrap_err().to_string();
        assert!(error.contains("100000"), "{error}");
    }
}
