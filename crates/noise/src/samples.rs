//! Raw samples of the noise probe, as taken and as stored.

use machmeter_data::quantity::Unit;
use machmeter_data::{Column, Dataset, Table, Values};
use machmeter_engine::ProbeError;
use machmeter_stats::histogram::LogHistogram;

use super::attribute::testimony::{Source, SourceKind, Testimony};
use super::measure::{Gap, Schedule};

/// Everything one recording holds.
#[derive(Debug, Clone)]
pub struct Samples {
    /// How it was taken.
    pub setup: Setup,
    /// One per measured CPU, in order.
    pub cpus: Vec<CpuSamples>,
    /// What witnesses saw meanwhile.
    pub testimony: Testimony,
    /// Effective speed of each CPU, alone and with the others at work.
    pub speed: Vec<SpeedSample>,
    /// What the speed can be compared with from outside this run.
    pub references: References,
    /// Pictures of what an imported file holds beside windows and gaps.
    pub imported: Vec<Dataset>,
}

/// How a recording was taken.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Name of the work unit: `1`, `15`, `31`, `63`, `cache`.
    pub quantum: String,
    /// Windows and threshold.
    pub schedule: Schedule,
    /// Ticks per second; 0 when an imported file does not say.
    pub tick_hz: f64,
    /// Smallest step of the clock, ticks.
    pub step_ticks: u64,
    /// Policy the measuring threads had.
    pub policy: String,
    /// Mechanisms that take time from the measuring threads on purpose, in words: the price of a real-time policy.
    pub real_time_share: Vec<String>,
    /// Whether gaps were recorded; an imported series of counts has none, which is not the same as none having happened.
    pub has_gaps: bool,
}

impl Setup {
    /// Nanoseconds per tick.
    pub fn ns_per_tick(&self) -> f64 {
        if self.tick_hz > 0.0 { 1e9 / self.tick_hz } else { 1.0 }
    }

    /// Length of a window, ns.
    pub fn window_ns(&self) -> f64 {
        self.schedule.window_ticks as f64 * self.ns_per_tick()
    }
}

/// What one CPU's loop recorded.
#[derive(Debug, Clone)]
pub struct CpuSamples {
    /// The CPU.
    pub cpu: usize,
    /// Turns per closed window.
    pub counts: Vec<u32>,
    /// Gaps in order of time.
    pub gaps: Vec<Gap>,
    /// Lengths of all gaps, ticks; dropped ones included.
    pub histogram: LogHistogram,
    /// Gaps that did not fit the list.
    pub gaps_dropped: u64,
    /// What the kernel says of the thread meanwhile; `None` where it was not asked (imports).
    pub thread: Option<ThreadFacts>,
}

/// What the kernel counted for the measuring thread during the recording.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ThreadFacts {
    /// Time on the run queue without running, ns; `None` when the kernel does not say.
    pub run_delay_ns: Option<u64>,
    /// Involuntary context switches.
    pub preemptions: u64,
    /// Page faults; 0 in a sound recording.
    pub page_faults: u64,
    /// CPU the thread was on at the end, to notice a migration.
    pub ended_on_cpu: Option<usize>,
}

/// Under what circumstances a speed was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeedPhase {
    /// The other measured CPUs were left idle by us.
    Alone,
    /// All measured CPUs worked at once.
    Together,
    /// After the recording, all at once.
    After,
}

/// Time of one dependent addition on a CPU: the inverse of its effective clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SpeedSample {
    /// The CPU.
    pub cpu: usize,
    /// Circumstances.
    pub phase: SpeedPhase,
    /// Smallest time of an addition over many chains, ns.
    pub best_ns: f64,
    /// Median time, ns.
    pub median_ns: f64,
    /// Chains timed.
    pub n: usize,
}

/// What this run's speed can be compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct References {
    /// Shortest addition ever stored for this kind of machine, ns.
    pub best_ever_add_ns: Option<f64>,
    /// Highest clock the processor is sold with, Hz, where the system says.
    pub nominal_hz: Option<f64>,
    /// Where `nominal_hz` is from.
    pub nominal_source: String,
}

/// Windows into which an imported list of gaps is divided.
const IMPORTED_WINDOWS: usize = 1000;

pub use machmeter_data::gaps::{GAPS, WINDOWS};

/// Name of the table of sources that the gap table's `source` column indexes.
pub const SOURCES: &str = "noise_sources";

/// The samples as tables; `source_of` gives each CPU's gaps the index of their main source.
pub fn to_tables(samples: &Samples, source_of: &[Vec<u32>]) -> Vec<Table> {
    let s = &samples.setup.schedule;
    let notes = vec![
        ("tick_hz".to_owned(), format!("{}", samples.setup.tick_hz)),
        ("t0_ticks".to_owned(), s.t0_ticks.to_string()),
        ("window_ticks".to_owned(), s.window_ticks.to_string()),
        ("threshold_ticks".to_owned(), s.threshold_ticks.to_string()),
        ("step_ticks".to_owned(), samples.setup.step_ticks.to_string()),
        ("quantum".to_owned(), samples.setup.quantum.clone()),
        ("policy".to_owned(), samples.setup.policy.clone()),
    ];
    let (mut cpu, mut start, mut count) = (Vec::new(), Vec::new(), Vec::new());
    let (mut gap_cpu, mut gap_start, mut gap_end, mut gap_source) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (i, c) in samples.cpus.iter().enumerate() {
        for (k, &n) in c.counts.iter().enumerate() {
            cpu.push(c.cpu as i32);
            start.push((s.t0_ticks + k as u64 * s.window_ticks) as i64);
            count.push(n as i32);
        }
        for (k, g) in c.gaps.iter().enumerate() {
            gap_cpu.push(c.cpu as i32);
            gap_start.push(g.start_ticks as i64);
            gap_end.push(g.end_ticks as i64);
            gap_source.push(source_of.get(i).and_then(|v| v.get(k)).map_or(-1, |s| *s as i32));
        }
    }
    let column = |name: &str, unit: Unit, values: Values| Column { name: name.to_owned(), unit, values };
    let sources = &samples.testimony.sources;
    let tables = [
        Table {
            name: WINDOWS.to_owned(),
            notes: notes.clone(),
            columns: vec![
                column("cpu", Unit::Count, Values::I32(cpu)),
                column("start_ticks", Unit::Ticks, Values::I64(start)),
                column("count", Unit::Count, Values::I32(count)),
            ],
        },
        Table {
            name: GAPS.to_owned(),
            notes,
            columns: vec![
                column("cpu", Unit::Count, Values::I32(gap_cpu)),
                column("start_ticks", Unit::Ticks, Values::I64(gap_start)),
                column("end_ticks", Unit::Ticks, Values::I64(gap_end)),
                column("source", Unit::Count, Values::I32(gap_source)),
            ],
        },
        Table {
            name: SOURCES.to_owned(),
            notes: Vec::new(),
            columns: vec![
                column("name", Unit::Count, Values::Text(sources.iter().map(|s| s.name.clone()).collect())),
                column(
                    "kind",
                    Unit::Count,
                    Values::Text(sources.iter().map(|s| s.kind.name().to_owned()).collect()),
                ),
            ],
        },
    ];
    tables.into_iter().collect()
}

/// Samples from tables: our own, or those of an imported file. Gaps without windows (selfish, sysjitter) and windows
/// without gaps (FTQ) are both accepted.
///
/// # Errors
/// When neither table is there, or a table lacks a column or a note that is needed.
pub fn from_tables(tables: &[Table]) -> Result<Samples, ProbeError> {
    let find = |name: &str| tables.iter().find(|t| t.name == name);
    let (windows, gaps) = (find(WINDOWS), find(GAPS));
    let imported = super::import::datasets(tables);
    let Some(any) = windows.or(gaps).or(tables.first().filter(|_| !imported.is_empty())) else {
        return Err(ProbeError::Usage(format!("no table called {WINDOWS} or {GAPS} to analyse as noise")));
    };
    let number = |key: &str| any.note(key).and_then(|v| v.parse::<f64>().ok());
    let missing = |t: &str, c: &str| ProbeError::Usage(format!("table {t}: column {c} is missing"));
    let mut cpus: Vec<CpuSamples> = Vec::new();
    let of = |cpu: i32, cpus: &mut Vec<CpuSamples>| -> usize {
        let cpu = usize::try_from(cpu).unwrap_or(0);
        cpus.iter().position(|c| c.cpu == cpu).unwrap_or_else(|| {
            cpus.push(CpuSamples {
                cpu,
                counts: Vec::new(),
                gaps: Vec::new(),
                histogram: LogHistogram::new(),
                gaps_dropped: 0,
                thread: None,
            });
            cpus.len() - 1
        })
    };
    let mut t0 = number("t0_ticks").map(|v| v as u64);
    if let Some(w) = windows {
        let (ids, starts) = (
            w.i32s("cpu").ok_or_else(|| missing(WINDOWS, "cpu"))?,
            w.i64s("start_ticks").ok_or_else(|| missing(WINDOWS, "start_ticks"))?,
        );
        let counts = w.i32s("count").ok_or_else(|| missing(WINDOWS, "count"))?;
        t0 = t0.or(starts.iter().min().map(|s| *s as u64));
        for (cpu, count) in ids.iter().zip(counts) {
            let i = of(*cpu, &mut cpus);
            cpus[i].counts.push(u32::try_from(*count).unwrap_or(0));
        }
    }
    let mut spans_ticks = 0;
    if let Some(g) = gaps {
        let (ids, starts) = (
            g.i32s("cpu").ok_or_else(|| missing(GAPS, "cpu"))?,
            g.i64s("start_ticks").ok_or_else(|| missing(GAPS, "start_ticks"))?,
        );
        let ends = g.i64s("end_ticks").ok_or_else(|| missing(GAPS, "end_ticks"))?;
        t0 = t0.or(starts.iter().min().map(|s| *s as u64));
        for ((cpu, start), end) in ids.iter().zip(starts).zip(ends) {
            let i = of(*cpu, &mut cpus);
            let gap = Gap { start_ticks: *start as u64, end_ticks: *end as u64 };
            cpus[i].histogram.record(gap.ticks());
            cpus[i].gaps.push(gap);
            spans_ticks = spans_ticks.max(gap.end_ticks);
        }
    }
    let t0_ticks = t0.unwrap_or(0);
    cpus.sort_by_key(|c| c.cpu);
    let mut count = cpus.iter().map(|c| c.counts.len()).max().unwrap_or(0);
    let mut window_ticks = number("window_ticks").map_or(0, |v| v as u64);
    if count == 0 {
        // A gap list alone: its wall time, or else its last event, says how long it is.
        let wall = number("wall_ticks").map_or(spans_ticks.saturating_sub(t0_ticks), |w| w as u64);
        count = IMPORTED_WINDOWS;
        window_ticks = wall.div_ceil(IMPORTED_WINDOWS as u64);
    }
    let sources = find(SOURCES)
        .and_then(|t| Some((t.texts("name")?, t.texts("kind")?)))
        .map(|(n, k)| {
            n.iter().zip(k).map(|(n, k)| Source { name: n.clone(), kind: SourceKind::named(k) }).collect()
        })
        .unwrap_or_default();
    Ok(Samples {
        setup: Setup {
            quantum: any.note("quantum").unwrap_or("unknown").to_owned(),
            schedule: Schedule {
                t0_ticks,
                window_ticks: window_ticks.max(1),
                windows: count,
                threshold_ticks: number("threshold_ticks").map_or(0, |v| v as u64),
            },
            tick_hz: number("tick_hz").unwrap_or(0.0),
            step_ticks: number("step_ticks").map_or(1, |v| v as u64),
            policy: any.note("policy").unwrap_or("unknown").to_owned(),
            real_time_share: Vec::new(),
            has_gaps: gaps.is_some(),
        },
        cpus,
        testimony: Testimony { sources, ..Testimony::none() },
        speed: Vec::new(),
        references: References::default(),
        imported,
    })
}
