//! One recording on all measured CPUs: its schedule, the calibration before it, the threads that run the loops.

use std::sync::mpsc;

use machmeter_engine::placement::Placement;
use machmeter_engine::{Host, ProbeError};
use machmeter_loops::noise::{Unit, bursts};
use machmeter_sys::clock;
use machmeter_sys::facts::kernel_hz;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{self, ScopedPlacedThread, spawn_placed_scoped};

use super::Params;
use super::attendant::{Attendant, attend};
use super::attribute::activity_log::ActivityLog;
use super::attribute::{Meter, Witness};
use super::listing::{listing_ticks, pause_ticks};
use super::on_cpu::{Measuring, Recorded, Start};
use super::own;
use super::run::real_time_share;
use super::samples::{Lengths, Setup};
use machmeter_loops::noise::measure::{Gap, Schedule, threshold_ticks};

/// Time from "all threads ready" to the first window, ns.
pub(super) const LEAD_NS: u64 = 10_000_000;
/// Measuring threads sleep until this long before the first window, then spin.
const SPIN_NS: u64 = 1_000_000;
/// Calibration never goes below this, so that rates of the shortest detours can be compared between runs, ns.
const LEAST_THRESHOLD_NS: f64 = 50.0;
/// A shorter gap is a micro-stall: a neighbor thread's exit to its hypervisor takes 50 to 400 ns, no kernel entry < 500.
const STALL_NS: f64 = 500.0;
/// Pause between clusters of micro-stalls where no first look tells one: it joins 2,500 of them a second by chance in 5 %.
const PAUSE_NS: f64 = 20_000.0;
/// A note writes to at most eight cache lines; from memory, with their translations, that is a microsecond.
const NOTE_NS: f64 = 1_000.0;
/// An interrupt with two switches takes no longer, the exits to a hypervisor in it included (entry lags: `docs/noise/attribution.md`).
const LAG_NS: f64 = 10_000.0;
/// Detours per second for which the list has room: five times those of 1 us or more beside a noisy neighbor.
const LISTED_PER_SECOND: f64 = 5_000.0;
/// Memory for lists of gaps over all CPUs at most, bytes.
const GAP_BYTES: usize = 512 << 20;
/// All buffers together take at most one part in so many of the memory that machine and control groups leave.
const MEMORY_PARTS: u64 = 10;
/// Attribution and figures of a gap take about 250 bytes more: with a third of the room, a quarter of the memory that is left.
const GAP_PARTS: usize = 3;

/// What the windows of all CPUs may take, and as much again each their lists of gaps and the witness's events, bytes.
pub(crate) fn room_bytes() -> u64 {
    let left = MemoryLeft::of_this_process(&FsRoot::host());
    left.map_or(u64::MAX, |left| left.available_bytes) / MEMORY_PARTS / 2
}

pub(super) fn cannot(why: impl std::fmt::Display) -> ProbeError {
    ProbeError::Cannot(why.to_string())
}

/// When the first window begins.
#[derive(Clone, Copy)]
pub(super) enum Begin<'a> {
    /// As soon as all threads are ready.
    Soon,
    /// At a multiple of a window's length.
    Aligned,
    /// When others say, asked when the threads of this process are ready; ticks.
    Agreed(&'a dyn Fn() -> Result<u64, String>),
}

/// What stays the same for all recordings of one measurement.
pub(super) struct Job<'a> {
    pub(super) host: &'a Host<'a>,
    pub(super) params: &'a Params,
    pub(super) cpus: &'a [usize],
    pub(super) placement: &'a Placement,
    pub(super) begin: Begin<'a>,
    /// What gaps take of each window is wanted.
    pub(super) sums: bool,
}

impl Job<'_> {
    pub(super) fn schedule(&self, window_ns: u64, windows: usize, threshold_ticks: u64) -> Schedule {
        let window_ticks = self.host.rate.ticks(window_ns as f64).max(1);
        Schedule::all_listed(0, window_ticks, windows, threshold_ticks)
    }

    /// The schedule with its classes of gaps: micro-stalls, and what the list can hold by a first look of that length.
    pub(super) fn classes(&self, schedule: Schedule, looked: &[Recorded], look: &Schedule) -> Schedule {
        let ticks = |ns: f64| self.host.rate.ticks(ns);
        let stall_ticks = ticks(STALL_NS);
        let look_ticks = look.window_ticks * look.windows as u64;
        let longer = schedule.windows as f64 * schedule.window_ticks as f64 / look_ticks as f64;
        let room = (self.gap_capacity(&schedule) as f64 / 2.0 / longer) as u64;
        let lengths: Vec<&Lengths> = looked.iter().map(|r| &r.samples.lengths).collect();
        let shortest = listing_ticks([STALL_NS, 1e3, 1e4, 1e5, 1e6, 1e7].map(ticks), room, &lengths);
        let pauses = looked.iter().filter_map(|r| pause_ticks(&r.samples.gaps, stall_ticks));
        Schedule {
            stall_ticks,
            pause_ticks: pauses.min().unwrap_or_else(|| ticks(PAUSE_NS)),
            listing_ticks: shortest.max(schedule.threshold_ticks),
            note_ticks: ticks(NOTE_NS),
            ..schedule
        }
    }

    /// What is known of a recording by this schedule.
    pub(super) fn setup(&self, schedule: Schedule, recorded: &[Recorded]) -> Setup {
        Setup {
            quantum: self.params.quantum.name(),
            schedule: Schedule { t0_ticks: recorded.first().map_or(0, |r| r.t0_ticks), ..schedule },
            tick_hz: self.host.rate.hz(),
            rate_error: self.host.clock.rate.as_ref().map_or(0.0, |r| r.error_ppm * 1e-6),
            step_ticks: self.host.clock.step_ticks(),
            policy: self.placement.policy.to_string(),
            kernel_hz: kernel_hz(),
            real_time_share: real_time_share(self.placement),
            has_gaps: true,
            ranks: Vec::new(),
        }
    }

    /// Threshold as given or found by calibration on the first measured CPU.
    pub(super) fn threshold(&self) -> Result<u64, ProbeError> {
        if let Some(ns) = self.params.threshold_ns()? {
            return Ok(self.host.rate.ticks(ns as f64).max(1));
        }
        let step = self.host.clock.step_ticks();
        threshold_ticks(&self.bursts()?, step, self.host.rate.ticks(STALL_NS))
            .map(|t| t.max(self.host.rate.ticks(LEAST_THRESHOLD_NS)))
            .ok_or_else(|| cannot("the calibration of the loop gave no turns"))
    }

    /// Ticks of each turn of some bursts of turns on the first measured CPU.
    pub(super) fn bursts(&self) -> Result<Vec<Vec<u64>>, ProbeError> {
        let bursts = std::thread::scope(|scope| {
            let cpu = self.cpus.first().copied();
            let (source, mut unit) = (self.host.source(), self.unit());
            let work = move || bursts(source, &mut unit);
            spawn_placed_scoped(scope, "mm-calibrate", cpu, Policy::ordinary(), work)
                .map(ScopedPlacedThread::join)
                .map_err(cannot)
        })?;
        bursts.map_err(cannot)
    }

    fn unit(&self) -> Unit {
        self.params.quantum.unit(self.params.sweep_bytes as usize)
    }

    fn gap_capacity(&self, schedule: &Schedule) -> usize {
        let room = room_bytes() as usize / GAP_PARTS;
        let most = GAP_BYTES.min(room) / size_of::<Gap>() / self.cpus.len().max(1);
        let by_time = self.host.rate.ns(schedule.end_ticks()) / 1e9 * LISTED_PER_SECOND;
        let chosen = self.params.gap_capacity.map_or(by_time as usize, |n| n as usize);
        chosen.clamp(16, most.max(16)).max(if self.params.gap_capacity.is_some() { 16 } else { 8192 })
    }
    pub(super) fn record(
        &self,
        schedule: &Schedule,
        witness: Option<Box<dyn Witness>>,
    ) -> Result<(Vec<Recorded>, ActivityLog), ProbeError> {
        let capacity = self.gap_capacity(schedule);
        let (outcome, meters, wake_ups) = std::thread::scope(|scope| {
            let (ready_tx, ready_rx) = mpsc::channel();
            let (running, over) = mpsc::channel();
            let mut starts = Vec::new();
            let mut threads = Vec::new();
            for (index, &cpu) in self.cpus.iter().enumerate() {
                let (start_tx, start) = mpsc::channel();
                let ready = ready_tx.clone();
                let measuring = Measuring {
                    source: self.host.source(),
                    unit: self.unit(),
                    index,
                    cpu,
                    schedule: *schedule,
                    capacity,
                    sums: self.sums,
                    witness: witness.as_deref(),
                    ready,
                    start,
                };
                let running = running.clone();
                let work = move || {
                    let _running = running;
                    measuring.run()
                };
                match spawn_placed_scoped(scope, "mm-noise", Some(cpu), self.placement.policy, work) {
                    Ok(t) => threads.push(t),
                    // Dropping the senders ends the threads that wait.
                    Err(e) => return Err(cannot(e)),
                }
                starts.push(start_tx);
            }
            drop((ready_tx, running));
            for _ in 0..threads.len() {
                if let Ok(Err(e)) = ready_rx.recv() {
                    return Err(cannot(e));
                }
            }
            let meters: Vec<Meter> = threads
                .iter()
                .zip(self.cpus)
                .map(|(t, cpu)| Meter { cpu: *cpu, tid: t.placed().tid, main_tid: thread::tid() })
                .collect();
            let _home = Attendant::settle(self.placement);
            let soon = || Ok(clock::now(self.host.source())? + self.host.rate.ticks(LEAD_NS as f64));
            let t0_ticks = match self.begin {
                Begin::Soon => soon(),
                Begin::Aligned => soon().map(|t: u64| t.next_multiple_of(schedule.window_ticks)),
                Begin::Agreed(agree) => Ok(agree().map_err(cannot)?),
            };
            let t0_ticks = t0_ticks.map_err(|e: machmeter_sys::Refused| cannot(e))?;
            let begun_ns = thread::monotonic_ns();
            let now = clock::now(self.host.source()).map_err(cannot)?;
            let t0_ns = begun_ns + self.host.rate.ns(t0_ticks.saturating_sub(now)) as u64;
            for s in &starts {
                // A thread that died in the meantime is noticed at its join.
                let _ = s.send(Start { t0_ticks, wake_ns: t0_ns - SPIN_NS });
            }
            let length_ns = self.host.rate.ns(schedule.window_ticks * schedule.windows as u64) as u64;
            let until_ns = t0_ns + length_ns;
            let wake_ups = attend(until_ns, self.host.source(), witness.as_deref(), &threads, &over);
            let recorded: Vec<_> = threads.into_iter().map(ScopedPlacedThread::join).collect();
            Ok((recorded, meters, wake_ups))
        })?;
        let begun = |r: Option<Recorded>| r.ok_or_else(|| cannot("a measuring thread could not start"));
        let mut recorded = outcome.into_iter().map(begun).collect::<Result<Vec<_>, _>>()?;
        let lag_ticks = self.host.rate.ticks(LAG_NS);
        for Recorded { samples, t0_ticks } in &mut recorded {
            own::book(samples, &wake_ups, &Schedule { t0_ticks: *t0_ticks, ..*schedule }, lag_ticks);
        }
        let activity_log = witness.map_or_else(ActivityLog::none, |w| w.finish(&meters));
        Ok((recorded, activity_log))
    }
}
