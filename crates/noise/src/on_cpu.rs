//! What runs on a measured CPU: calibration, preparation, and the loop, compiled once per tick source and work unit.

use std::marker::PhantomData;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;

use machmeter_stats::histogram::LogHistogram;
use machmeter_sys::clock::{TickSource, WithSource};
use machmeter_sys::memory::{LockedBuf, MemoryError};
use machmeter_sys::{affinity, guard, thread};

use super::Quantum;
use super::attribute::Witness;
use super::kernel::{CacheSweep, Quantum1, Quantum15, Quantum31, Quantum63};
use super::measure::{Buffers, Gap, Schedule, Sums, WorkUnit, record, sample_bursts};
use super::samples::{CpuSamples, Lengths, ThreadFacts};
use super::speed::SourceClock;

pub(super) struct Recorded {
    pub(super) samples: CpuSamples,
    pub(super) t0_ticks: u64,
}

pub(super) struct Start {
    pub(super) t0_ticks: u64,
    pub(super) wake_ns: u64,
}

/// Work that is generic over the tick source and the work unit.
pub(super) trait WithUnit {
    type Output;
    fn run<S: TickSource, W: WorkUnit>(self, unit: W) -> Self::Output;
}

/// Work with the unit of a quantum.
pub(super) struct OfQuantum<F> {
    pub(super) quantum: Quantum,
    pub(super) sweep_bytes: usize,
    pub(super) work: F,
}

impl<F: WithUnit> WithSource for OfQuantum<F> {
    type Output = F::Output;

    fn run<S: TickSource>(self) -> F::Output {
        match self.quantum {
            Quantum::One => self.work.run::<S, _>(Quantum1::default()),
            Quantum::Fifteen => self.work.run::<S, _>(Quantum15::default()),
            Quantum::ThirtyOne => self.work.run::<S, _>(Quantum31::default()),
            Quantum::SixtyThree => self.work.run::<S, _>(Quantum63::default()),
            Quantum::Cache => self.work.run::<S, _>(CacheSweep::new(self.sweep_bytes)),
        }
    }
}

/// Ticks of each turn of some bursts.
pub(super) struct Calibrate;

impl WithUnit for Calibrate {
    type Output = Vec<Vec<u64>>;

    fn run<S: TickSource, W: WorkUnit>(self, mut unit: W) -> Vec<Vec<u64>> {
        sample_bursts(&mut SourceClock::<S>(PhantomData), &mut unit)
    }
}

pub(super) struct Measuring<'a> {
    pub(super) index: usize,
    pub(super) cpu: usize,
    pub(super) schedule: Schedule,
    pub(super) capacity: usize,
    pub(super) sums: bool,
    pub(super) witness: Option<&'a dyn Witness>,
    pub(super) ready: mpsc::Sender<Result<(), String>>,
    pub(super) start: mpsc::Receiver<Start>,
}

impl WithUnit for Measuring<'_> {
    type Output = Option<Recorded>;

    fn run<S: TickSource, W: WorkUnit>(self, mut unit: W) -> Option<Recorded> {
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
        let mut clock = SourceClock::<S>(PhantomData);
        warm_up(&mut clock, &mut unit, &mut histogram);
        let _ = self.ready.send(Ok(()));
        let Start { t0_ticks, wake_ns } = self.start.recv().ok()?;
        let schedule = Schedule { t0_ticks, ..self.schedule };
        thread::nanosleep_until(wake_ns);
        let usage = thread::Usage::of_current_thread();
        let waited = thread::schedstat().ok();
        let stop: &AtomicBool = guard::stop_flag();
        let places = (counts.as_mut_slice(), sums.as_mut_slice(), gaps.as_mut_slice());
        let mut out = Buffers::new(&schedule, places.0, places.1, places.2, &mut histogram);
        let ended = record(&mut clock, &mut unit, &schedule, &mut out, stop);
        let (listed, raises) = (out.listed(), out.raises().to_vec());
        let used = thread::Usage::of_current_thread().since(&usage);
        let waited = waited.and_then(|w| Some(thread::schedstat().ok()?.since(&w).wait_ns));
        Some(Recorded {
            samples: CpuSamples {
                cpu: self.cpu,
                counts: counts.as_slice()[..ended.windows_closed].to_vec(),
                sums: sums.as_slice()[..ended.windows_closed.min(sums.as_slice().len())].to_vec(),
                gaps: gaps.as_slice()[..listed].to_vec(),
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
fn warm_up<C: machmeter_engine::Clock, W: WorkUnit>(
    clock: &mut C,
    unit: &mut W,
    histogram: &mut LogHistogram,
) {
    let (mut counts, mut sums, mut gaps) = ([0_u32; 8], [Sums::default(); 8], [Gap::default(); 8]);
    let schedule = Schedule::all_listed(clock.now(), 50_000, 8, 1);
    let mut buffers = Buffers::new(&schedule, &mut counts, &mut sums, &mut gaps, histogram);
    record(clock, unit, &schedule, &mut buffers, &AtomicBool::new(false));
    histogram.clear();
}
