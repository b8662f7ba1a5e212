//! Time that the hypervisor kept, by the scheduler's account of the thread that had the CPU.
//!
//! A guest with a steal clock takes stolen time off the run time of the thread that had the CPU. Whenever the scheduler brings an account up to date (at
//! each tick and switch) the trace shows the run time since the last update. What is missing from the time between the two events was stolen. A handler or
//! a thread that seems to last 30 ms is thus told apart from one that the hypervisor stopped for 30 ms.

use machmeter_loops::noise::measure::Gap;
use machmeter_sys::trace::{EventKind, TraceLog};

use super::Meter;
use super::activity_log::{ActivityLog, SourceKind, Span};
use super::matching::{Attributed, Part};

/// Name of the source of stolen time. What the accounts do not show stays `outside the kernel`.
pub(super) const HYPERVISOR: &str = "the hypervisor";

/// Time stolen between two events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stolen {
    /// The earlier event, ticks.
    pub start_ticks: u64,
    /// The later event, ticks.
    pub end_ticks: u64,
    /// Stolen time in between, ticks.
    pub ticks: u64,
}

/// Reads what was stolen on the CPU of a meter. `spans` are its handlers and threads, ordered by start.
pub(super) fn read(
    log: &TraceLog,
    meter: &Meter,
    ns_per_tick: f64,
    spans: &[Span],
    activity_log: &ActivityLog,
) -> Vec<Stolen> {
    let handlers = outermost(spans, activity_log);
    // The current thread, and since when its account is complete.
    let mut from = None;
    let mut current = None;
    let mut all: Vec<Account> = Vec::new();
    for e in log.on_cpu(meter.cpu) {
        match e.kind {
            EventKind::SwitchTo { next_pid, .. } => (from, current) = (Some(e.ticks), Some(next_pid)),
            // The meter stays on this CPU: it came without a traced switch.
            EventKind::Ran { pid, .. } if current != Some(pid) && pid == meter.tid => {
                (from, current) = (Some(e.ticks), Some(pid));
            }
            // The scheduler also keeps accounts of threads on other CPUs.
            EventKind::Ran { pid, .. } if current != Some(pid) => {}
            EventKind::Ran { runtime_ns, .. } => {
                if let Some(start_ticks) = from.replace(e.ticks) {
                    let missing = (e.ticks - start_ticks) as f64 - runtime_ns as f64 / ns_per_tick;
                    let of_handlers = overlap(&handlers, start_ticks, e.ticks) as f64;
                    all.push(Account { start_ticks, end_ticks: e.ticks, missing, of_handlers });
                }
            }
            _ => {}
        }
    }
    // Kernels with CONFIG_IRQ_TIME_ACCOUNTING take handlers off the run time as well.
    let typical = |of: fn(&Account) -> f64| {
        let with_handlers = all.iter().filter(|a| a.of_handlers > 0.0);
        let mut all: Vec<f64> = with_handlers.map(|a| of(a).abs()).collect();
        all.sort_by(f64::total_cmp);
        all.get(all.len() / 2).copied().unwrap_or(0.0)
    };
    if typical(|a| a.missing - a.of_handlers) < typical(|a| a.missing) {
        for a in &mut all {
            a.missing -= a.of_handlers;
        }
    }
    // An account is brought up to date a little before its event, so that some threads seem to have run too long. The most that one did is the error. The
    // hypervisor can stop the CPU just between the two: a thousandth of the accounts, and one more, may be further off.
    let mut excess: Vec<f64> = all.iter().map(|a| -a.missing).collect();
    excess.sort_by(|a, b| b.total_cmp(a));
    let error = excess.get(excess.len() / 1000 + 1).map_or(0.0, |e| e.max(0.0));
    let stolen = all.iter().filter(|a| a.missing > error);
    stolen
        .map(|a| Stolen { start_ticks: a.start_ticks, end_ticks: a.end_ticks, ticks: a.missing as u64 })
        .collect()
}

/// Two events between which the scheduler kept an account.
struct Account {
    start_ticks: u64,
    end_ticks: u64,
    /// Time that is not in the account, ticks.
    missing: f64,
    /// Time of handlers between the events, ticks.
    of_handlers: f64,
}

/// Start and end of each handler that runs inside no other.
fn outermost(spans: &[Span], activity_log: &ActivityLog) -> Vec<(u64, u64)> {
    let mut out: Vec<(u64, u64)> = Vec::new();
    for s in spans {
        let kind = activity_log.source(s.source).map(|s| s.kind);
        let is_handler = matches!(kind, Some(SourceKind::Irq | SourceKind::Softirq | SourceKind::Tick));
        if is_handler && out.last().is_none_or(|(_, end)| s.start_ticks >= *end) {
            out.push((s.start_ticks, s.end_ticks));
        }
    }
    out
}

/// Time of `handlers`, which are in order, between two moments.
fn overlap(handlers: &[(u64, u64)], from: u64, to: u64) -> u64 {
    let first = handlers.partition_point(|h| h.1 <= from);
    let inside = handlers[first..].iter().take_while(|h| h.0 < to);
    inside.map(|h| h.1.min(to).saturating_sub(h.0.max(from))).sum()
}

/// Charges `host` with stolen time: that of an interval goes to the longest gap that overlaps it, if the gap has room for it. A gap that was stolen by more
/// than half is charged to the host.
pub(super) fn charge(stolen: &[Stolen], gaps: &[Gap], host: u32, attributed: &mut [Attributed]) {
    for s in stolen {
        let first = gaps.partition_point(|g| g.end_ticks <= s.start_ticks);
        let overlapping =
            gaps.iter().enumerate().skip(first).take_while(|(_, g)| g.start_ticks < s.end_ticks);
        let length = |g: &Gap| g.end_ticks.min(s.end_ticks) - g.start_ticks.max(s.start_ticks);
        let Some((at, gap)) = overlapping.max_by_key(|(_, g)| length(g)) else { continue };
        if length(gap) >= s.ticks {
            give(&mut attributed[at], gap, host, *s);
        }
    }
}

fn give(to: &mut Attributed, gap: &Gap, host: u32, stolen: Stolen) {
    if let Some(part) = to.parts.iter_mut().find(|p| p.source == host) {
        part.ticks += stolen.ticks;
    } else {
        let start_ticks = stolen.start_ticks.max(gap.start_ticks);
        to.parts.push(Part { source: host, start_ticks, ticks: stolen.ticks });
    }
    // What does not fit beside the others was stolen from them, from the longest first.
    let sum: u64 = to.parts.iter().map(|p| p.ticks).sum();
    let mut excess = sum.saturating_sub(gap.ticks());
    let mut others: Vec<&mut Part> = to.parts.iter_mut().filter(|p| p.source != host).collect();
    others.sort_by_key(|p| std::cmp::Reverse(p.ticks));
    for part in others {
        let taken = excess.min(part.ticks);
        part.ticks -= taken;
        excess -= taken;
    }
    let of_host = to.parts.iter().find(|p| p.source == host).map_or(0, |p| p.ticks);
    if of_host > gap.ticks() / 2 {
        to.main = host;
    }
}

#[cfg(test)]
mod tests {
    use super::super::activity_log::Source;
    use super::*;
    use machmeter_sys::trace::TraceEvent;

    const TICK: u32 = 0;
    const HOST: u32 = 9;

    /// What is stolen according to accounts: moment of each, and the run time since the last one.
    fn told(accounts: &[(u64, u64)], handlers: &[(u64, u64)]) -> Vec<Stolen> {
        let mut activity_log = ActivityLog::none();
        activity_log.intern(Source::new("timer tick", SourceKind::Tick));
        let spans: Vec<Span> = handlers
            .iter()
            .map(|(start_ticks, end_ticks)| Span {
                start_ticks: *start_ticks,
                end_ticks: *end_ticks,
                source: TICK,
                depth: 1,
            })
            .collect();
        let event = |(ticks, runtime_ns): &(u64, u64)| TraceEvent {
            ticks: *ticks,
            cpu: 1,
            kind: EventKind::Ran { pid: 42, runtime_ns: *runtime_ns },
        };
        let log = TraceLog { events: accounts.iter().map(event).collect(), ..TraceLog::default() };
        read(&log, &Meter { cpu: 1, tid: 42, main_tid: 41 }, 1.0, &spans, &activity_log)
    }

    #[test]
    fn what_is_missing_from_an_account_was_stolen_beyond_the_error_of_the_events() {
        // The error is 7, although one account is off by 30: the hypervisor stopped the CPU between an account and its event.
        let mut accounts = vec![(0, 0), (4000, 4007), (8000, 3993), (12_000, 4007), (16_000, 3994)];
        accounts.extend([(50_300, 4100), (54_300, 4000), (58_300, 4030)]);
        let stolen = told(&accounts, &[]);
        assert_eq!(stolen, [Stolen { start_ticks: 16_000, end_ticks: 50_300, ticks: 30_200 }]);
    }

    #[test]
    fn handlers_that_the_kernel_takes_off_the_run_time_are_not_stolen() {
        let handlers: Vec<(u64, u64)> = (0..6).map(|i| (4000 * i, 4000 * i + 50)).collect();
        let on_time: Vec<(u64, u64)> = (0..6).map(|i| (4000 * i + 40, 3950)).collect();
        assert_eq!(told(&on_time, &handlers), []);
        let mut late = on_time;
        late[4].1 -= 700;
        assert_eq!(told(&late, &handlers).iter().map(|s| s.ticks).collect::<Vec<_>>(), [700]);
    }

    #[test]
    fn a_gap_that_was_stolen_is_not_charged_to_what_ran_in_it() {
        let gaps = [Gap { start_ticks: 100, end_ticks: 110 }, Gap { start_ticks: 200, end_ticks: 1200 }];
        let part = |ticks| Part { source: TICK, start_ticks: 210, ticks };
        let of = |ticks: u64, stolen: u64| {
            let tick = Attributed { main: TICK, entry_ticks: 10, exit_ticks: 0, parts: vec![part(ticks)] };
            let mut all = [tick.clone(), tick];
            charge(&[Stolen { start_ticks: 50, end_ticks: 1210, ticks: stolen }], &gaps, HOST, &mut all);
            assert_eq!((all[0].main, all[0].parts.len()), (TICK, 1));
            let ticks: Vec<u64> = all[1].parts.iter().map(|p| p.ticks).collect();
            (all[1].main, ticks)
        };
        // Stopped inside the handler; before it; for a small part; longer than the gap: then the gap is not where it was stolen.
        assert_eq!(of(990, 900), (HOST, vec![100, 900]));
        assert_eq!(of(20, 900), (HOST, vec![20, 900]));
        assert_eq!(of(800, 100), (TICK, vec![800, 100]));
        assert_eq!(of(800, 1001), (TICK, vec![800]));
    }
}
