//! The list of gaps of a noise recording in its raw tables; exporters draw it and predictions replay it.
//!
//! A gap is a time in which the measuring loop did not run. A window is a fixed span of the recording.

use crate::samples::Table;

/// Name of the table of gaps.
pub const GAPS: &str = "noise_gaps";
/// Name of the table of windows.
pub const WINDOWS: &str = "noise_windows";
/// Source of gaps in which the kernel kept the meter off its CPU while no other thread ran.
pub const HELD_BACK: &str = "nobody (meter held back)";

/// Reason why tables give no list of gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GapsError {
    /// A column or note is missing; the text names what is needed.
    Missing(&'static str),
    /// A gap ends before it starts; its row, from 0.
    EndsBeforeStart(usize),
}

/// The gaps of all CPUs, one per row.
#[derive(Debug, Clone, Copy)]
pub struct Gaps<'a> {
    /// CPU of each gap.
    pub cpu: &'a [i32],
    /// Tick count read before each gap.
    pub start_ticks: &'a [i64],
    /// Tick count read after each gap.
    pub end_ticks: &'a [i64],
    /// The table itself, for further columns and notes.
    pub table: &'a Table,
    windows: Option<&'a Table>,
    tick_hz: f64,
    t0_ticks: i64,
}

impl<'a> Gaps<'a> {
    /// Finds the gaps in `tables`.
    /// Errors: the table, a column or the clock's rate is missing, or a gap ends before it starts.
    pub fn find(tables: &'a [Table]) -> Result<Self, GapsError> {
        let missing = || GapsError::Missing("columns cpu, start_ticks, end_ticks and the note tick_hz");
        let named = |name: &str| tables.iter().find(|t| t.name == name);
        let table = named(GAPS).ok_or_else(missing)?;
        let tick_hz: f64 = table.note("tick_hz").and_then(|n| n.parse().ok()).ok_or_else(missing)?;
        if !(tick_hz.is_finite() && tick_hz > 0.0) {
            return Err(missing());
        }
        let start_ticks = table.i64s("start_ticks").ok_or_else(missing)?;
        let end_ticks = table.i64s("end_ticks").ok_or_else(missing)?;
        let t0 = table.note("t0_ticks").and_then(|n| n.parse().ok());
        if let Some(row) = start_ticks.iter().zip(end_ticks).position(|(start, end)| end < start) {
            return Err(GapsError::EndsBeforeStart(row));
        }
        Ok(Self {
            cpu: table.i32s("cpu").ok_or_else(missing)?,
            start_ticks,
            end_ticks,
            table,
            windows: named(WINDOWS),
            tick_hz,
            t0_ticks: t0.or_else(|| start_ticks.iter().min().copied()).unwrap_or(0),
        })
    }

    /// CPUs that have gaps or windows, ascending.
    pub fn cpus(&self) -> Vec<i32> {
        let mut cpus = self.cpu.to_vec();
        cpus.extend(self.windows.and_then(|w| w.i32s("cpu")).unwrap_or_default());
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.tick_hz
    }

    /// Start of gap `i`, ns after the start of the run; never negative.
    pub fn start_ns(&self, i: usize) -> f64 {
        self.ns(self.start_ticks[i].saturating_sub(self.t0_ticks)).max(0.0)
    }

    /// Length of gap `i`, ns.
    pub fn duration_ns(&self, i: usize) -> f64 {
        self.ns(self.end_ticks[i].saturating_sub(self.start_ticks[i]))
    }

    /// Length from which the list is complete, ns; shorter gaps are only counted. `None` if the table has no such note.
    pub fn listed_from_ns(&self) -> Option<f64> {
        let ticks = i64::try_from(self.table.note("listing_ticks")?.parse::<u64>().ok()?).ok()?;
        Some(self.ns(ticks))
    }

    /// Duration of the recording on `cpu`, ns: from its windows, else from those of any CPU, the noted wall time, or the last gap.
    pub fn recorded_ns(&self, cpu: i32) -> f64 {
        let note = |key: &str| self.table.note(key).and_then(|v| v.parse::<f64>().ok());
        let of = |id: i32| {
            let ids = self.windows.and_then(|w| w.i32s("cpu")).unwrap_or_default();
            ids.iter().filter(|c| **c == id).count()
        };
        let windows = match of(cpu) {
            0 => self.cpus().into_iter().map(of).max().unwrap_or(0),
            n => n,
        };
        let ticks = match (windows, note("window_ticks")) {
            (1.., Some(ticks)) => windows as f64 * ticks,
            _ => note("wall_ticks").unwrap_or_else(|| {
                let last = self.end_ticks.iter().max().copied().unwrap_or(self.t0_ticks);
                last.saturating_sub(self.t0_ticks) as f64
            }),
        };
        ticks.max(0.0) * 1e9 / self.tick_hz
    }
}
