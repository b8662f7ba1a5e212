//! A recording whose windows have an exact length in ticks, without the witness and speed samples of [`super::Noise`].

use machmeter_engine::{Host, ProbeError};

use super::attribute::Attribution;
use super::job::{Begin, Job, cannot};
use super::run::place;
use super::samples::Samples;
use super::{Params, Quantum};
use machmeter_loops::noise::measure::{Schedule, threshold_ticks};

/// What the loop costs where it runs undisturbed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Turn {
    /// Mean length of a turn in the quietest of several bursts, ticks.
    pub mean_ticks: f64,
    /// A turn of at least this many ticks is a gap.
    pub threshold_ticks: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowRequest {
    pub quantum: Quantum,
    pub window_ticks: u64,
    pub windows: usize,
    /// Begin at a multiple of the window's length, so that windows of all runs share boundaries.
    pub align: bool,
    /// A turn of at least this many ticks is a gap; [`Turn::threshold_ticks`] unless asked otherwise.
    pub threshold_ticks: u64,
    /// Gaps kept one by one per CPU; more are counted but not listed.
    pub gap_capacity: usize,
}

/// Times the loop on the first of the host's CPUs, about 10 ms. Errors: no thread to be placed, a clock gives nothing.
pub fn calibrate(host: &Host<'_>, quantum: Quantum) -> Result<Turn, ProbeError> {
    let (cpus, placement) = (host.cpus.to_vec(), place(host));
    let params = Params::of(quantum, Attribution::None, Some(0));
    let job =
        Job { host, params: &params, cpus: &cpus, placement: &placement, begin: Begin::Soon, sums: false };
    let bursts = job.bursts()?;
    let step = host.clock.step_ticks();
    let nothing = || cannot("the calibration of the loop gave no turns");
    let mean_ticks = bursts
        .iter()
        .filter(|b| !b.is_empty())
        .map(|b| b.iter().sum::<u64>() as f64 / b.len() as f64)
        .min_by(f64::total_cmp)
        .filter(|mean| *mean > 0.0)
        .ok_or_else(nothing)?;
    Ok(Turn { mean_ticks, threshold_ticks: threshold_ticks(&bursts, step, u64::MAX).ok_or_else(nothing)? })
}

/// Records the windows on all of the host's CPUs at once, until the last or a signal; counts are of closed windows.
/// Errors: a request that cannot be; memory or threads that cannot be had.
pub fn record_windows(host: &Host<'_>, request: &WindowRequest) -> Result<Samples, ProbeError> {
    let WindowRequest { quantum, window_ticks, windows, align, threshold_ticks, gap_capacity } = *request;
    if window_ticks == 0 || windows == 0 || threshold_ticks == 0 {
        return Err(ProbeError::Usage(
            "a recording needs windows, a length and a threshold above 0".to_owned(),
        ));
    }
    let (cpus, placement) = (host.cpus.to_vec(), place(host));
    let begin = if align { Begin::Aligned } else { Begin::Soon };
    let params = Params::of(quantum, Attribution::None, Some(gap_capacity as u64));
    let job = Job { host, params: &params, cpus: &cpus, placement: &placement, begin, sums: false };
    let schedule = Schedule::all_listed(0, window_ticks, windows, threshold_ticks);
    let (recorded, activity_log) = job.record(&schedule, None)?;
    Ok(Samples {
        setup: job.setup(schedule, &recorded),
        cpus: recorded.into_iter().map(|r| r.samples).collect(),
        activity_log,
        ..Samples::default()
    })
}
