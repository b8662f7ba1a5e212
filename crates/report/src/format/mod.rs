//! Export formats. Each format is one file and one entry of [`FORMATS`].

mod csv;
mod dot;
mod firings;
mod hlog;
mod loggopsim;
mod loggps;
mod markdown;
mod ng_out;
mod openmetrics;
mod perfetto;
mod protobuf;
mod simgrid;

use std::io;

use machmeter_data::gaps::{GAPS, Gaps, GapsError};
use machmeter_data::{Record, Table};
use thiserror::Error;

/// Reason why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The record's raw samples lack these columns or notes.
    #[error(
        "{format} needs the raw table {} with {needs}: export a run with raw samples (not --raw none)",
        GAPS
    )]
    MissingTable { format: &'static str, needs: &'static str },
    /// The record lacks these figures.
    #[error("{format} needs {needs}, but the record has none")]
    NoFigures { format: &'static str, needs: &'static str },
    /// A row of the raw table, numbered from 0.
    #[error("table {}, row {row}: {what}", GAPS)]
    BadRow { row: usize, what: String },
    #[error(transparent)]
    Write(#[from] io::Error),
}

#[derive(Debug, Clone, Copy)]
pub struct Format {
    pub name: &'static str,
    pub extension: &'static str,
    pub description: &'static str,
    /// True if the format contains figures only. Then `--metric` can select among them.
    pub is_of_figures: bool,
    /// Writes the format. Fails if a required raw table is missing or inconsistent, or the output can't be written.
    pub write: Write,
}

/// Writes a record and its raw tables.
pub type Write = fn(&Record, &[Table], &mut dyn io::Write) -> Result<(), ExportError>;

type Text = &'static str;

const fn of_figures(name: Text, extension: Text, description: Text, write: Write) -> Format {
    Format { name, extension, description, is_of_figures: true, write }
}

const fn of_all(name: Text, extension: Text, description: Text, write: Write) -> Format {
    Format { is_of_figures: false, ..of_figures(name, extension, description, write) }
}

const CSV: &str = "Metrics as comma-separated values: one row per metric with interval, n and unit, one column per parameter.";
const DOT: &str =
    "Dataflow graphs of flow for Graphviz: boxes by schedule, with their share of the time, and queues.";
const HLOG: &str = "Gap durations as an HdrHistogram interval log, one tag per CPU.";
const LOGGOPSIM: &str = "Options -L -o -g -G -S of LogGOPSim and ATLAHS, one line per link.";
const MARKDOWN: &str = "Metrics as a Markdown table of 80 columns, wider only for long names and figures.";
const NG_OUT: &str = "LogGP parameters in the columns of Netgauge (ng.out), link by link, in us.";
const OPENMETRICS: &str =
    "Metrics as OpenMetrics text in SI base units, for Prometheus and its textfile collector.";
const PERFETTO: &str = "A native Perfetto trace: gaps as slices per CPU, gaps under 1 us and windows as counters, firings of dataflow graphs, MPI calls.";
const SIMGRID: &str =
    "A SimGrid platform of two hosts and a link, with smpi/os, smpi/or, factors and thresholds.";

/// All formats, sorted by name.
pub const FORMATS: &[Format] = &[
    of_figures("csv", "csv", CSV, csv::write),
    of_all("dot", "dot", DOT, dot::write),
    of_all("hlog", "hlog", HLOG, hlog::write),
    of_figures("loggopsim", "txt", LOGGOPSIM, loggopsim::write),
    of_figures("markdown", "md", MARKDOWN, markdown::write),
    of_figures("ng-out", "out", NG_OUT, ng_out::write),
    of_figures("openmetrics", "prom", OPENMETRICS, openmetrics::write),
    of_all("perfetto", "pftrace", PERFETTO, perfetto::write),
    of_figures("simgrid", "xml", SIMGRID, simgrid::write),
];

/// The format with this name.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|f| f.name == name)
}

fn gaps<'a>(tables: &'a [Table], format: &'static str) -> Result<Gaps<'a>, ExportError> {
    let backward = || "the gap ends before it starts".to_owned();
    Gaps::find(tables).map_err(|e| match e {
        GapsError::Missing(needs) => ExportError::MissingTable { format, needs },
        GapsError::EndsBeforeStart(row) => ExportError::BadRow { row, what: backward() },
    })
}

/// The bytes that a format writes for a record and its tables.
#[cfg(test)]
pub(crate) fn written(name: &str, record: &Record, tables: &[Table]) -> Result<Vec<u8>, String> {
    let mut out = Vec::new();
    let format = by_name(name).ok_or("no such format")?;
    (format.write)(record, tables, &mut out).map(|()| out).map_err(|e| e.to_string())
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
