//! The best witness: the kernel's own events in a private trace instance, stamped with the loop's clock.

use std::sync::{Mutex, PoisonError};

use machmeter_sys::clock::SourceId;
use machmeter_sys::topology::CpuSet;
use machmeter_sys::trace::{
    ACCOUNTS, EventKind, TraceClock, TraceConfig, TraceEvent, TraceSession, functions,
};

use super::activity_log::{ActivityLog, Sight};
use super::spans::{self, Kernel};
use super::totals::Totals;
use super::{Meter, Witness};
use crate::job::room_bytes;

/// Buffer per CPU and second of recording: 4,000 events a second of about 48 bytes.
const BYTES_PER_SECOND: f64 = 200_000.0;
/// Buffer per CPU, bytes.
const BUFFER_BYTES: std::ops::RangeInclusive<f64> = 8e6..=32e6;
struct Running {
    session: TraceSession,
    kernel: Kernel,
    /// Events looked at per CPU.
    looked_at: Vec<usize>,
    /// Events of all CPUs that are kept at most.
    most_events: usize,
    /// Why the buffers could not be emptied the last time that this failed.
    trouble: Option<String>,
}

impl Running {
    fn drain(&mut self) {
        // The kernel's buffers fill up then, and it counts what it loses.
        if self.looked_at.iter().sum::<usize>() >= self.most_events {
            return;
        }
        if let Err(e) = self.session.drain() {
            self.trouble = Some(e.to_string());
        }
        self.name_processes();
    }

    /// Names the processes of threads that came since the last time, while they live.
    fn name_processes(&mut self) {
        for (lane, events) in self.session.recorded().enumerate() {
            self.looked_at.resize(self.looked_at.len().max(lane + 1), 0);
            for e in &events[self.looked_at[lane]..] {
                if let EventKind::SwitchTo { next_pid, .. } = e.kind
                    && next_pid != 0
                    && !self.kernel.processes.contains_key(&next_pid)
                    && let Some(name) = process_name(next_pid)
                {
                    self.kernel.processes.insert(next_pid, name);
                }
            }
            self.looked_at[lane] = events.len();
        }
    }
}
fn process_name(thread_id: i32) -> Option<String> {
    let status = std::fs::read_to_string(format!("/proc/{thread_id}/status")).ok()?;
    let process_id: i32 = status.lines().find_map(|l| l.strip_prefix("Tgid:"))?.trim().parse().ok()?;
    let name = std::fs::read(format!("/proc/{process_id}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.strip_suffix(b"\n").unwrap_or(&name)).into_owned())
}

pub(super) struct Traced {
    running: Mutex<Running>,
    totals: Totals,
    ns_per_tick: f64,
}

impl Traced {
    /// `ns_per_tick` is of the loop's clock, which the trace must have, too.
    pub(super) fn start(cpus: &[usize], seconds: f64, ns_per_tick: f64) -> Result<Self, String> {
        let totals = Totals::start();
        let mut config = TraceConfig::on(cpus.iter().copied().collect::<CpuSet>());
        let wanted = (seconds * BYTES_PER_SECOND).clamp(*BUFFER_BYTES.start(), *BUFFER_BYTES.end());
        let room = room_bytes() as usize;
        config.buffer_bytes_per_cpu = (wanted as usize).min(room / cpus.len().max(1));
        if totals.has_steal(cpus) {
            config.events.push(ACCOUNTS.to_owned());
        }
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
        let most_events = room / size_of::<TraceEvent>();
        let running =
            Running { session, kernel: Kernel::default(), looked_at: Vec::new(), most_events, trouble: None };
        Ok(Self { running: Mutex::new(running), totals, ns_per_tick })
    }
}

impl Witness for Traced {
    fn drain(&self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).drain();
    }

    fn finish(self: Box<Self>, meters: &[Meter]) -> ActivityLog {
        let mut t = ActivityLog {
            witness: "kernel trace".to_owned(),
            sight: Sight::Everything,
            ..ActivityLog::none()
        };
        let mut running = self.running.into_inner().unwrap_or_else(PoisonError::into_inner);
        // What fails here fails again below, and is noted there.
        let _ = running.session.drain();
        running.name_processes();
        // They were renamed over time: tick_sched_timer, tick_nohz_highres_handler, tick_nohz_handler.
        running.kernel.tick_functions = functions("tick_");
        match running.session.stop() {
            Ok(log) => {
                for m in meters {
                    spans::add(&log, m, self.ns_per_tick, &running.kernel, &mut t);
                    let lost = log.dropped.iter().filter(|d| d.cpu == m.cpu).map(|d| d.events).sum::<u64>();
                    t.lost.push(lost + log.malformed_records);
                }
                for s in &log.skipped_events {
                    t.notes.push(format!("the kernel does not trace {}: {}", s.event, s.why));
                }
            }
            Err(e) => {
                t.sight = Sight::Nothing;
                t.notes.push(format!("kernel trace: {e}"));
            }
        }
        t.spans.resize(meters.len(), Vec::new());
        t.lost.resize(meters.len(), 0);
        t.notes.extend(running.trouble);
        self.totals.add_to(&mut t, meters);
        t
    }
}
