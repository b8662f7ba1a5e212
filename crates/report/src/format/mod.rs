//! Exporters: one file per format, one line in the registry.

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

/// Why an export failed.
#[derive(Debug, Error)]
pub enum ExportError {
    /// The record's raw samples lack these columns or notes.
    #[error(
        "{format} needs the raw table {} with {needs}; export from a run that kept its samples (not --no-raw)",
        GAPS
    )]
    MissingTable { format: &'static str, needs: &'static str },
    /// The record lacks these figures.
    #[error("{format} needs {needs}, and the record has none")]
    NoFigures { format: &'static str, needs: &'static str },
    /// A row, from 0.
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
    /// Whether it holds figures alone, so that `--metric` can choose among them.
    pub is_of_figures: bool,
    /// Writes a record and its raw tables.
    /// Errors: when a needed raw table is missing or inconsistent, or the output can't be written.
    pub write: fn(&Record, &[Table], &mut dyn io::Write) -> Result<(), ExportError>,
}

/// All formats, sorted by name.
pub const FORMATS: &[Format] = &[
    Format {
        name: "csv",
        extension: "csv",
        description: "Metrics as comma-separated values, one row each with interval, n and unit, a column per parameter.",
        is_of_figures: true,
        write: csv::write,
    },
    Format {
        name: "dot",
        extension: "dot",
        description: "Graphs of flow for Graphviz, one digraph each: boxes by schedule with their shares of the time, queues.",
        is_of_figures: false,
        write: dot::write,
    },
    Format {
        name: "hlog",
        extension: "hlog",
        description: "Gap durations as an HdrHistogram interval log, one tag per CPU.",
        is_of_figures: false,
        write: hlog::write,
    },
    Format {
        name: "loggopsim",
        extension: "txt",
        description: "Options -L -o -g -G -S of LogGOPSim and ATLAHS, a line for each link.",
        is_of_figures: true,
        write: loggopsim::write,
    },
    Format {
        name: "markdown",
        extension: "md",
        description: "Metrics as a Markdown table of at most 80 columns, for mails and issues.",
        is_of_figures: true,
        write: markdown::write,
    },
    Format {
        name: "ng-out",
        extension: "out",
        description: "Netgauge's columns of LogGP (ng.out), one link after the other, in us.",
        is_of_figures: true,
        write: ng_out::write,
    },
    Format {
        name: "openmetrics",
        extension: "prom",
        description: "Metrics as OpenMetrics text in SI base units, for Prometheus and its textfile collector.",
        is_of_figures: true,
        write: openmetrics::write,
    },
    Format {
        name: "perfetto",
        extension: "pftrace",
        description: "Gaps as slices per CPU, those under 1 us and windows as counters, firings of dataflow graphs, MPI calls: a native Perfetto trace.",
        is_of_figures: false,
        write: perfetto::write,
    },
    Format {
        name: "simgrid",
        extension: "xml",
        description: "A SimGrid platform of two hosts and a link: smpi/os, smpi/or, factors, thresholds.",
        is_of_figures: true,
        write: simgrid::write,
    },
];

/// The format called `name`.
pub fn by_name(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|f| f.name == name)
}

fn gaps<'a>(tables: &'a [Table], format: &'static str) -> Result<Gaps<'a>, ExportError> {
    Gaps::find(tables).map_err(|e| match e {
        GapsError::Missing(needs) => ExportError::MissingTable { format, needs },
        GapsError::EndsBeforeStart(row) => {
            ExportError::BadRow { row, what: "the gap ends before it starts".into() }
        }
    })
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
