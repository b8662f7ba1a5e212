//! Exporters: one file per format, one line in the registry.

pub mod csv;
pub mod hlog;
pub mod markdown;
pub mod openmetrics;
pub mod perfetto;
mod protobuf;

use std::io;

use machmeter_data::{Record, Table};
use thiserror::Error;

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The record's raw samples lack what the format needs.
    #[error(
        "{format} needs the raw table {table} with {needs}; export from a run that kept its samples (not --no-raw)"
    )]
    MissingTable {
        /// Format.
        format: &'static str,
        /// Table.
        table: &'static str,
        /// Columns or notes that were looked for.
        needs: &'static str,
    },
    /// Raw samples that contradict themselves.
    #[error("table {table}, row {row}: {what}")]
    BadRow {
        /// Table.
        table: &'static str,
        /// Row, from 0.
        row: usize,
        /// What is wrong.
        what: String,
    },
    /// The output could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// An export format.
#[derive(Debug, Clone, Copy)]
pub struct Format {
    /// Name for `--to`.
    pub name: &'static str,
    /// File extension without the dot.
    pub extension: &'static str,
    /// One sentence.
    pub description: &'static str,
    /// Writes a record and its raw tables.
    ///
    /// # Errors
    /// When a needed raw table is missing or inconsistent, or the output can't be written.
    pub write: fn(&Record, &[Table], &mut dyn io::Write) -> Result<(), ExportError>,
}

/// All formats, sorted by name.
pub const FORMATS: &[Format] =
    &[csv::FORMAT, hlog::FORMAT, markdown::FORMAT, openmetrics::FORMAT, perfetto::FORMAT];

/// The format called `name`.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|f| f.name == name)
}

/// The gaps of a noise recording, found in its raw table.
struct Gaps<'a> {
    cpu: &'a [i32],
    start_ticks: &'a [i64],
    end_ticks: &'a [i64],
    table: &'a Table,
    tick_hz: f64,
    t0_ticks: i64,
}

impl<'a> Gaps<'a> {
    fn find(tables: &'a [Table], format: &'static str) -> Result<Self, ExportError> {
        let needs = "columns cpu, start_ticks, end_ticks and the note tick_hz";
        let missing = || ExportError::MissingTable { format, table: "noise_gaps", needs };
        let table = tables.iter().find(|t| t.name == "noise_gaps").ok_or_else(missing)?;
        let tick_hz: f64 = table.note("tick_hz").and_then(|n| n.parse().ok()).ok_or_else(missing)?;
        if !(tick_hz.is_finite() && tick_hz > 0.0) {
            return Err(missing());
        }
        let start_ticks = table.i64s("start_ticks").ok_or_else(missing)?;
        let t0 = table.note("t0_ticks").and_then(|n| n.parse().ok());
        let gaps = Self {
            cpu: table.i32s("cpu").ok_or_else(missing)?,
            start_ticks,
            end_ticks: table.i64s("end_ticks").ok_or_else(missing)?,
            table,
            tick_hz,
            t0_ticks: t0.or_else(|| start_ticks.iter().min().copied()).unwrap_or(0),
        };
        let bad = (0..start_ticks.len()).find(|i| gaps.end_ticks[*i] < gaps.start_ticks[*i]);
        if let Some(row) = bad {
            return Err(ExportError::BadRow {
                table: "noise_gaps",
                row,
                what: "the gap ends before it starts".into(),
            });
        }
        Ok(gaps)
    }

    /// CPUs that have gaps, ascending.
    fn cpus(&self) -> Vec<i32> {
        let mut cpus = self.cpu.to_vec();
        cpus.sort_unstable();
        cpus.dedup();
        cpus
    }

    fn ns(&self, ticks: i64) -> f64 {
        ticks as f64 * 1e9 / self.tick_hz
    }

    /// Start of gap `i` after the start of the run, ns; never negative.
    fn start_ns(&self, i: usize) -> f64 {
        self.ns(self.start_ticks[i].saturating_sub(self.t0_ticks)).max(0.0)
    }

    fn duration_ns(&self, i: usize) -> f64 {
        self.ns(self.end_ticks[i] - self.start_ticks[i])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_sorted_unique_and_described() {
        assert!(FORMATS.windows(2).all(|w| w[0].name < w[1].name));
        for f in FORMATS {
            assert!(f.description.ends_with('.') && f.description.len() > 20, "{}", f.name);
            assert!(!f.extension.is_empty() && !f.extension.starts_with('.'), "{}", f.name);
            assert_eq!(by_name(f.name).map(|g| g.extension), Some(f.extension));
        }
        assert!(by_name("nothing").is_none());
    }
}
