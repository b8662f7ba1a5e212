//! The witness without privileges: when the measuring threads lost and regained their CPU, by the kernel's records of own
//! threads. It tells "another thread ran" from "an interrupt or the hypervisor", not which.

use std::sync::{Mutex, PoisonError};

use machmeter_sys::clock::{MonotonicRaw, SourceId, TickRate, TickSource, WithSource, dispatch};
use machmeter_sys::perf::{Switch, SwitchLog, TickMap};

use super::activity_log::{ActivityLog, Sight, Source, SourceKind, Span};
use super::totals::Totals;
use super::{Meter, Witness};

/// Pages of each record buffer: 64 kB, about 1,600 records between two drains.
const PAGES: usize = 16;

#[derive(Default)]
struct Watched {
    log: Option<SwitchLog>,
    seen: Vec<Switch>,
    trouble: Option<String>,
}

pub(super) struct Switches {
    threads: Vec<Mutex<Watched>>,
    totals: Totals,
    map: TickMap,
}

impl Switches {
    /// Makes sure that the system permits it, on the calling thread. `source` and `rate` are those of the loop.
    pub(super) fn start(cpus: &[usize], source: SourceId, rate: TickRate) -> Result<Self, String> {
        let map = dispatch(source, Bracketed { rate }).map_err(|e| e.to_string())?;
        drop(SwitchLog::open_for_current_thread(1, map).map_err(|e| format!("context-switch records: {e}"))?);
        let threads = cpus.iter().map(|_| Mutex::new(Watched::default())).collect();
        Ok(Self { threads, totals: Totals::start(), map })
    }
}

/// Finds out what the kernel's raw clock shows at a tick: the tightest of many reads, since any may be interrupted.
struct Bracketed {
    rate: TickRate,
}

const BRACKETS: usize = 200;

impl WithSource for Bracketed {
    type Output = TickMap;

    fn run<S: TickSource>(self) -> TickMap {
        let bracket = || {
            let before = S::now();
            let raw_ns = MonotonicRaw::now();
            let after = S::now();
            (after.saturating_sub(before), raw_ns, before)
        };
        let (mut width, mut raw_ns, mut ticks) = bracket();
        for _ in 0..BRACKETS {
            let (w, r, t) = bracket();
            if w < width {
                (width, raw_ns, ticks) = (w, r, t);
            }
        }
        TickMap { raw_ns, ticks: ticks + width / 2, ticks_per_ns: 1.0 / self.rate.ns_per_tick() }
    }
}

fn locked(m: &Mutex<Watched>) -> std::sync::MutexGuard<'_, Watched> {
    m.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Witness for Switches {
    fn attach(&self, index: usize) {
        let Some(slot) = self.threads.get(index) else { return };
        match SwitchLog::open_for_current_thread(PAGES, self.map) {
            Ok(log) => locked(slot).log = Some(log),
            Err(e) => locked(slot).trouble = Some(e.to_string()),
        }
    }

    fn drain(&self) {
        for slot in &self.threads {
            let watched = &mut *locked(slot);
            if let Some(log) = &mut watched.log {
                log.drain(&mut watched.seen);
            }
        }
    }

    fn finish(self: Box<Self>, meters: &[Meter]) -> ActivityLog {
        let mut t = ActivityLog {
            witness: "context-switch records".to_owned(),
            sight: Sight::Switches,
            ..ActivityLog::none()
        };
        let source = t.intern(Source::new("other threads", SourceKind::Thread));
        for slot in self.threads {
            let Watched { log, mut seen, trouble } =
                slot.into_inner().unwrap_or_else(PoisonError::into_inner);
            // A thread that could not be watched is blind: one event counts as lost.
            let mut lost = u64::from(log.is_none());
            if let Some(log) = log {
                let (rest, missed) = log.stop();
                seen.extend(rest);
                lost += missed;
            }
            t.notes.extend(trouble);
            t.spans.push(away(&seen, source));
            t.lost.push(lost);
        }
        self.totals.add_to(&mut t, meters);
        t
    }
}

/// Spans between a switch out and the next switch in.
fn away(switches: &[Switch], source: u32) -> Vec<Span> {
    let mut out = None;
    let mut spans = Vec::new();
    for s in switches {
        match (s.out, out) {
            (true, _) => out = Some(s.ticks),
            (false, Some(start_ticks)) => {
                spans.push(Span { start_ticks, end_ticks: s.ticks, source, depth: 0 });
                out = None;
            }
            (false, None) => {}
        }
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_lasts_from_out_to_in() {
        let s = |ticks, out| Switch { ticks, out, preempted: out, cpu: 0 };
        let spans = away(
            &[s(5, false), s(10, true), s(20, false), s(30, true), s(31, true), s(40, false), s(50, true)],
            3,
        );
        assert_eq!(
            spans.iter().map(|s| (s.start_ticks, s.end_ticks)).collect::<Vec<_>>(),
            [(10, 20), (31, 40)]
        );
    }
}
