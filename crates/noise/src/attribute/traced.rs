//! The best witness: the kernel's own events in a private trace instance, stamped with the loop's clock.

use std::sync::{Mutex, PoisonError};

use machmeter_sys::clock::SourceId;
use machmeter_sys::topology::CpuSet;
use machmeter_sys::trace::{TraceClock, TraceConfig, TraceSession};

use super::testimony::{Sight, Testimony};
use super::totals::Totals;
use super::{Meter, Witness, spans};

/// Buffer per CPU and second of recording: 4,000 events a second of about 48 bytes.
const BYTES_PER_SECOND: f64 = 200_000.0;
/// Buffer per CPU, bytes.
const BUFFER_BYTES: std::ops::RangeInclusive<f64> = 8e6..=32e6;

/// A running trace.
pub(super) struct Traced {
    session: Mutex<Option<TraceSession>>,
    totals: Totals,
    trouble: Mutex<Option<String>>,
}

impl Traced {
    /// Starts the trace on `cpus`.
    pub(super) fn start(cpus: &[usize], seconds: f64) -> Result<Self, String> {
        let mut config = TraceConfig::on(cpus.iter().copied().collect::<CpuSet>());
        config.buffer_bytes_per_cpu =
            (seconds * BYTES_PER_SECOND).clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end()) as usize;
        let session = TraceSession::start(&config).map_err(|e| format!("kernel trace: {e}"))?;
        let same_clock = match session.clock() {
            TraceClock::X86Tsc => {
                matches!(SourceId::best(), SourceId::Rdtsc | SourceId::LfenceRdtsc | SourceId::Rdtscp)
            }
            TraceClock::MonoRaw => SourceId::best() == SourceId::MonotonicRaw,
            _ => false,
        };
        if !same_clock {
            return Err(format!(
                "kernel trace: its clock {} is not the one the loop reads ({})",
                session.clock(),
                SourceId::best()
            ));
        }
        Ok(Self { session: Mutex::new(Some(session)), totals: Totals::start(), trouble: Mutex::new(None) })
    }
}

impl Witness for Traced {
    fn attach(&self, _index: usize) -> Result<(), String> {
        Ok(())
    }

    fn drain(&self) {
        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Err(e)) = session.as_mut().map(TraceSession::drain) {
            *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(e.to_string());
        }
    }

    fn finish(self: Box<Self>, meters: &[Meter]) -> Testimony {
        let mut t =
            Testimony { witness: "kernel trace".to_owned(), sight: Sight::Everything, ..Testimony::none() };
        let session = self.session.into_inner().unwrap_or_else(PoisonError::into_inner);
        let stopped = session.map(TraceSession::stop);
        match stopped {
            Some(Ok(log)) => {
                let ns_per_tick = match log.clock {
                    Some(TraceClock::X86Tsc) => {
                        machmeter_sys::clock::kernel_rate().map_or(1.0, |r| 1e9 / r.rate_hz)
                    }
                    _ => 1.0,
                };
                for m in meters {
                    spans::add(&log, m, ns_per_tick, &mut t);
                    let lost = log.dropped.iter().filter(|d| d.cpu == m.cpu).map(|d| d.events).sum::<u64>();
                    t.lost.push(lost + log.malformed_records);
                }
                for s in &log.skipped_events {
                    t.notes.push(format!("the kernel does not trace {}: {}", s.event, s.why));
                }
            }
            Some(Err(e)) => {
                t.sight = Sight::Nothing;
                t.notes.push(format!("kernel trace: {e}"));
            }
            None => t.sight = Sight::Nothing,
        }
        t.spans.resize(meters.len(), Vec::new());
        t.lost.resize(meters.len(), 0);
        t.notes.extend(self.trouble.into_inner().unwrap_or_else(PoisonError::into_inner));
        self.totals.add_to(&mut t, meters);
        t
    }
}
