//! Readers of other tools' files, and writers of the formats whose programs machmeter replaces.
//!
//! A reader turns files into the tables that the noise analysis uses. It lists gaps of the format as assumptions, and flags every known defect of the
//! writing program. Raw values stay as in the file. Formats with finished figures instead of samples (interbench, ladders of latency) give metrics and
//! pictures instead of tables.
//!
//! | table | columns |
//! | --- | --- |
//! | `noise_windows` | `cpu`, `start_ticks`, `count` |
//! | `noise_gaps` | `cpu`, `start_ticks`, `end_ticks` |
//! | `noise_work` | `cpu`, `index`, `duration_ticks` |
//! | `noise_histogram` | `cpu`, `low_ns`, `high_ns`, `count`; the note `quantity` names the measured quantity |
//! | `noise_summary` | `cpu`, `statistic`, `value_ns` |
//! | `net_rows`, `net_pairs` | as in the net probe; a row holds its time itself (`given_ns`) |
//!
//! Notes of a table: `tick_hz` (a number or `unknown`), `t0_ticks`, and if they apply `window_ticks`, `wall_ticks`,
//! `threshold_ns`. `cpu_is` is `cpu` if the column `cpu` holds CPU numbers, `thread` if it holds only numbers of threads.
//! `axis` of windows: `uniform` (row i of a CPU is its window i), `observed` (some windows are missing), or `nominal`
//! (the file has no times; starts are i times the requested length).

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use machmeter_data::record::{Provenance, Summary, Warning};
use machmeter_data::text::steers;
use machmeter_data::{Dataset, Metric, Table};

use crate::error::{Result, StoreError, sure};

pub mod codes;
mod columns;
mod ftq_2009;
mod ftq_2025;
mod fwq;
mod gedae_table;
mod histogram;
mod interbench_log;
mod ladder;
mod locate;
mod netgauge;
mod side;
mod sysjitter;
mod sysjitter_summary;
mod trains;
pub mod write;

pub use interbench_log::{METRICS as INTERBENCH_METRICS, OUR_MARK as INTERBENCH_MARK};
pub use ladder::METRICS as LADDER_METRICS;
pub use side::SideFacts;

/// A file of another tool, in memory.
#[derive(Debug, Clone)]
pub struct SourceFile {
    /// Its path; readers take thread and CPU numbers from its name.
    pub path: PathBuf,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl SourceFile {
    /// A file from its bytes. Parts of its text are displayed, so control characters become spaces.
    pub fn new(path: impl Into<PathBuf>, bytes: &[u8]) -> Self {
        let is_bad = |c: char| steers(c) && !matches!(c, '\n' | '\r' | '\t');
        Self { path: path.into(), text: String::from_utf8_lossy(bytes).replace(is_bad, " ") }
    }

    fn fault(&self, what: impl Into<String>) -> StoreError {
        StoreError::new(&self.path, what)
    }

    fn fault_at(&self, line: usize, what: impl Into<String>) -> StoreError {
        StoreError::at(&self.path, line, what)
    }

    fn name(&self) -> &str {
        self.path.file_name().and_then(|n| n.to_str()).unwrap_or("")
    }

    /// The rest of the header line that starts with `key`.
    fn header(&self, key: &str) -> Option<&str> {
        self.text.lines().filter(|l| l.starts_with('#')).find_map(|l| l.strip_prefix(key)).map(str::trim)
    }
}

/// The files of one run, with facts in addition to them.
#[derive(Debug, Clone, Default)]
pub struct Input {
    pub files: Vec<SourceFile>,
    /// Facts from the user or from a side file.
    pub known: SideFacts,
}

impl Input {
    fn first(&self) -> Result<&SourceFile> {
        self.files.first().ok_or_else(|| self.fault("no file given"))
    }

    /// The error `what` about the files as a whole.
    fn fault(&self, what: impl Into<String>) -> StoreError {
        StoreError::new(self.files.first().map_or("input".as_ref(), |f| &f.path), what)
    }
}

/// The result of a reader.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Imported {
    /// Raw samples for the analysis of a probe.
    pub tables: Vec<Table>,
    /// Printed figures of formats without samples.
    pub metrics: Vec<Metric>,
    pub datasets: Vec<Dataset>,
    /// The figures as lines of the page.
    pub summary: Summary,
    /// Facts about the run in the files, by name.
    pub notes: Vec<(String, String)>,
    /// Defects and limits that the reader found, with codes of [`codes::CODES`].
    pub warnings: Vec<Warning>,
    pub provenance: Provenance,
}

#[derive(Debug, Clone, Copy)]
pub struct Reader {
    pub name: &'static str,
    pub description: &'static str,
    /// True if the files look like this format.
    pub sniff: fn(&Input) -> bool,
    fill: fn(&Input, &mut Imported) -> Result<()>,
}

impl Reader {
    /// Reads files of this format. The result names them without folders, because records are shared.
    pub fn read(&self, input: &Input) -> Result<Imported> {
        let mut out = Imported::default();
        self.name.clone_into(&mut out.provenance.format);
        out.provenance.files = input.files.iter().map(|f| f.name().to_owned()).collect();
        (self.fill)(input, &mut out)?;
        Ok(out)
    }
}

/// All formats, sorted by name.
pub const READERS: &[Reader] = &[
    histogram::CYCLICTEST,
    ftq_2009::READER,
    ftq_2009::STDOUT_READER,
    ftq_2025::READER,
    fwq::READER,
    gedae_table::READER,
    interbench_log::READER,
    histogram::JITTERDEBUGGER,
    ladder::LAT_MEM_RD,
    trains::NETGAUGE_LOGGP,
    netgauge::READER,
    trains::NETPIPE,
    histogram::OSLAT,
    ladder::RAMLAT,
    ladder::SIZE_NS,
    sysjitter::READER,
    sysjitter_summary::READER,
];

/// Reads files of any known format as one run. Facts from the user override those of a side file (`PREFIX.machmeter.json`).
///
/// A path is a file, one file of a pair (`x_0_counts.dat`), or the common prefix of a run's files (`x`).
/// Errors: one line with the file, the position in it, and the expected content.
pub fn read_knowing(paths: &[PathBuf], known: &SideFacts) -> Result<Imported> {
    known.check(Path::new("given facts"))?;
    let mut input = locate::load(paths)?;
    input.known = known.clone().or(input.known);
    read_input(&input)
}

/// Reads files in memory.
pub fn read_input(input: &Input) -> Result<Imported> {
    if let Some(reader) = READERS.iter().find(|r| (r.sniff)(input)) {
        return reader.read(input);
    }
    let names: Vec<&str> = READERS.iter().map(|r| r.name).collect();
    Err(input.fault(format!("none of the known formats ({})", names.join(", "))))
}

/// True if a file begins as a page, or as JSON with the name of machmeter's format near its beginning.
pub(crate) fn is_ours(path: &Path) -> bool {
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|f| f.take(4096).read_to_end(&mut start));
    let text = String::from_utf8_lossy(&start);
    read.is_ok() && (text.trim_start().starts_with('<') || text.contains(machmeter_data::record::FORMAT))
}

impl Imported {
    fn assume(&mut self, text: impl Into<String>) {
        self.provenance.assumptions.push(text.into());
    }

    fn note(&mut self, key: &str, value: impl Into<String>) {
        self.notes.push((key.to_owned(), value.into()));
    }

    /// The table with this name.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.name == name)
    }
}

#[cfg(test)]
mod tests;
