//! One measuring thread: it locks its buffers, warms the loop up, waits for the common start and records.

use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use machmeter_stats::histogram::LogHistogram;
use machmeter_sys::Refused;
use machmeter_sys::clock::{self, SourceId};
use machmeter_sys::memory::{LockedBuf, MemoryError};
use machmeter_sys::{affinity, guard, thread};

use super::attribute::Witness;
use super::attribute::unlisted::Traced;
use super::samples::{CpuSamples, Lengths, ThreadFacts};
use machmeter_loops::noise::measure::{Buffers, Gap, Schedule, Sums};
use machmeter_loops::noise::{Unit, record_unit};

pub(super) struct Recorded {
    pub(super) samples: CpuSamples,
    pub(super) t0_ticks: u64,
}

pub(super) struct Start {
    pub(super) t0_ticks: u64,
    pub(super) wake_ns: u64,
}

pub(super) struct Measuring<'a> {
    pub(super) source: SourceId,
    pub(super) unit: Unit,
    pub(super) index: usize,
    pub(super) cpu: usize,
    pub(super) schedule: Schedule,
    pub(super) capacity: usize,
    pub(super) sums: bool,
    pub(super) witness: Option<&'a dyn Witness>,
    pub(super) ready: mpsc::Sender<Result<(), String>>,
    pub(super) start: mpsc::Receiver<Start>,
}

impl Measuring<'_> {
    /// Prepares, waits for the start and records, on the calling thread. `None` if a buffer, the source or the start is missing.
    pub(super) fn run(self) -> Option<Recorded> {
        let (source, mut unit) = (self.source, self.unit);
        let buffers = LockedBuf::<u32>::new(self.schedule.windows).and_then(|counts| {
            let sums = LockedBuf::<Sums>::new(if self.sums { self.schedule.windows } else { 0 })?;
            Ok((counts, sums, LockedBuf::<Gap>::new(self.capacity)?))
        });
        let (mut counts, mut sums, mut gaps) = match buffers {
            Ok(b) => b,
            Err(MemoryError::Stopped) => {
                let _ = self.ready.send(Ok(()));
                let t0_ticks = self.start.recv().ok()?.t0_ticks;
                let thread = Some(ThreadFacts::default());
                let samples = CpuSamples { cpu: self.cpu, thread, ..CpuSamples::default() };
                return Some(Recorded { samples, t0_ticks });
            }
            Err(e) => {
                let _ = self.ready.send(Err(e.to_string()));
                return None;
            }
        };
        let mut histogram = LogHistogram::new();
        if let Some(w) = self.witness {
            w.attach(self.index);
        }
        if let Err(e) = warm_up(source, &mut unit, &mut histogram) {
            let _ = self.ready.send(Err(e.to_string()));
            return None;
        }
        let _ = self.ready.send(Ok(()));
        let Start { t0_ticks, wake_ns } = self.start.recv().ok()?;
        let schedule = Schedule { t0_ticks, ..self.schedule };
        thread::nanosleep_until(wake_ns);
        let usage = thread::Usage::of_current_thread();
        let waited = thread::schedstat().ok();
        let stop: &AtomicBool = guard::stop_flag();
        let places = (counts.as_mut_slice(), sums.as_mut_slice(), gaps.as_mut_slice());
        let mut out = Buffers::new(&schedule, places.0, places.1, places.2, &mut histogram);
        let ended = record_unit(source, &mut unit, &schedule, &mut out, stop).ok()?;
        let (listed, raises) = (out.listed(), out.raises().to_vec());
        let used = thread::Usage::of_current_thread().since(&usage);
        let waited = waited.and_then(|w| Some(thread::schedstat().ok()?.since(&w).wait_ns));
        Some(Recorded {
            samples: CpuSamples {
                cpu: self.cpu,
                counts: counts.as_slice()[..ended.windows_closed].to_vec(),
                sums: sums.as_slice()[..ended.windows_closed.min(sums.as_slice().len())].to_vec(),
                gaps: gaps.as_slice()[..listed].to_vec(),
                traced: Traced::default(),
                attributed: Vec::new(),
                lengths: Lengths::of(&histogram),
                raises,
                thread: Some(ThreadFacts {
                    run_delay_ns: waited,
                    preemptions: used.involuntary_switches,
                    stops: used.voluntary_switches,
                    page_faults: used.minor_faults + used.major_faults,
                    ended_on_cpu: affinity::current_cpu(),
                }),
            },
            t0_ticks,
        })
    }
}

/// Runs the loop for a moment with the same code: its pages, caches and branch predictors are warm then.
fn warm_up(source: SourceId, unit: &mut Unit, histogram: &mut LogHistogram) -> Result<(), Refused> {
    let (mut counts, mut sums, mut gaps) = ([0_u32; 8], [Sums::default(); 8], [Gap::default(); 8]);
    let schedule = Schedule::all_listed(clock::now(source)?, 50_000, 8, 1);
    let mut buffers = Buffers::new(&schedule, &mut counts, &mut sums, &mut gaps, histogram);
    record_unit(source, unit, &schedule, &mut buffers, &AtomicBool::new(false))?;
    histogram.clear();
    Ok(())
}
