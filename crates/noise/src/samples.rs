//! Raw samples of the noise probe. How they are stored: [`super::tables`].

use machmeter_data::Dataset;
use machmeter_stats::histogram::{Bucket, LogHistogram};
use serde::{Deserialize, Serialize};

use super::attribute::activity_log::ActivityLog;
use super::attribute::matching::Attributed;
use super::attribute::unlisted::Traced;
use super::ranks::{CollectiveSamples, Place};
use machmeter_loops::noise::measure::{Gap, Raise, Schedule, Sums};

/// Written as JSON they are all that is not in the columns of tables.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Samples {
    pub setup: Setup,
    /// One per measured CPU, in order.
    pub cpus: Vec<CpuSamples>,
    pub activity_log: ActivityLog,
    /// Effective speed of each CPU, alone and with the others at work.
    pub speed: Vec<SpeedSample>,
    /// What the speed can be compared with from outside this run.
    pub references: References,
    /// Collective operations among the ranks, where there are several.
    #[serde(skip)]
    pub collectives: Vec<CollectiveSamples>,
    /// Pictures of what an imported file holds beside windows and gaps.
    #[serde(skip)]
    pub imported: Vec<Dataset>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Setup {
    /// Name of the work unit: `1`, `15`, `31`, `63`, `cache`.
    pub quantum: String,
    pub schedule: Schedule,
    /// Ticks per second; 0 when an imported file does not say.
    pub tick_hz: f64,
    /// By which share of it that may be wrong.
    #[serde(default)]
    pub rate_error: f64,
    /// Smallest step of the clock, ticks.
    pub step_ticks: u64,
    pub policy: String,
    /// Rate of the scheduler's tick, Hz; unknown for files of other tools.
    #[serde(default)]
    pub kernel_hz: Option<u32>,
    /// Mechanisms that take time from the measuring threads on purpose, in words: the price of a real-time policy.
    pub real_time_share: Vec<String>,
    /// Where the ranks of a launcher are that stand in the place of CPUs; empty where CPUs of this machine were measured.
    #[serde(default)]
    pub ranks: Vec<Place>,
    /// Whether gaps were recorded; an imported series of counts has none, which is not the same as none having happened.
    pub has_gaps: bool,
}

impl Setup {
    pub fn ns_per_tick(&self) -> f64 {
        if self.tick_hz > 0.0 { 1e9 / self.tick_hz } else { 1.0 }
    }

    /// `CPU 3`, or `rank 17 (node c04)`.
    pub fn name(&self, cpu: usize) -> String {
        match self.ranks.get(cpu) {
            Some(place) => format!("rank {cpu} ({}, CPU {})", place.node, place.cpu),
            None => format!("CPU {cpu}"),
        }
    }

    /// Length of a window, ns.
    pub fn window_ns(&self) -> f64 {
        self.schedule.window_ticks as f64 * self.ns_per_tick()
    }
}
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSamples {
    pub cpu: usize,
    /// Turns per closed window.
    #[serde(skip)]
    pub counts: Vec<u32>,
    #[serde(skip)]
    pub sums: Vec<Sums>,
    #[serde(skip)]
    pub gaps: Vec<Gap>,
    /// What each of them consisted of; empty where nobody asked.
    #[serde(skip)]
    pub attributed: Vec<Attributed>,
    /// What the trace shows beside the list; empty without a trace.
    #[serde(skip)]
    pub traced: Traced,
    /// When the list began to take longer detours only.
    pub raises: Vec<Raise>,
    #[serde(flatten)]
    pub lengths: Lengths,
    /// What the kernel says of the thread meanwhile; `None` where it was not asked (imports).
    pub thread: Option<ThreadFacts>,
}

impl CpuSamples {
    /// Gaps that are not in the list.
    pub fn unlisted_gaps(&self) -> u64 {
        self.lengths.count.saturating_sub(self.gaps.len() as u64)
    }

    /// Shortest detour that is listed wherever it happened, ticks; `None` when the list was full in the end.
    pub fn complete_from_ticks(&self, schedule: &Schedule) -> Option<u64> {
        let last = self.raises.last().map_or(schedule.listing_ticks, |r| r.listing_ticks);
        (last < u64::MAX).then_some(last)
    }
}

/// How many gaps were how long, micro-stalls included.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Lengths {
    #[serde(skip)]
    pub count: u64,
    pub sum_ticks: u64,
    pub longest_ticks: u64,
    /// How many in which bucket, ascending.
    #[serde(skip)]
    pub buckets: Vec<Bucket>,
}

impl Lengths {
    pub fn of(histogram: &LogHistogram) -> Self {
        Self {
            count: histogram.count(),
            sum_ticks: u64::try_from(histogram.sum()).unwrap_or(u64::MAX),
            longest_ticks: histogram.max().unwrap_or(0),
            buckets: histogram.iter().collect(),
        }
    }

    pub fn of_gaps(gaps: &[Gap]) -> Self {
        let mut histogram = LogHistogram::new();
        for g in gaps {
            histogram.record(g.ticks());
        }
        Self::of(&histogram)
    }
}

/// What the kernel counted for the measuring thread during the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadFacts {
    /// Time on the run queue without running, ns; `None` when the kernel does not say.
    pub run_delay_ns: Option<u64>,
    pub preemptions: u64,
    /// Switches that the thread asked for; it never does, so that each is a stop by a signal or a debugger.
    pub stops: u64,
    /// Page faults; 0 in a sound recording.
    pub page_faults: u64,
    /// CPU the thread was on at the end, to notice a migration.
    pub ended_on_cpu: Option<usize>,
}

/// Under what circumstances a speed was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SpeedPhase {
    /// The other measured CPUs were left idle by us.
    Alone,
    Together,
    After,
}

/// Time of one dependent addition on a CPU: the inverse of its effective clock.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpeedSample {
    pub cpu: usize,
    pub phase: SpeedPhase,
    /// Smallest time of an addition over many chains, ns.
    pub best_ns: f64,
    pub median_ns: f64,
    pub n: usize,
}

/// What this run's speed can be compared with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct References {
    /// Shortest addition ever stored for this kind of machine, ns.
    pub best_ever_add_ns: Option<f64>,
    /// Highest clock the processor is sold with, Hz, where the system says.
    pub nominal_hz: Option<f64>,
    /// Where `nominal_hz` is from.
    pub nominal_source: String,
}
