//! `machmeter report RUN`: shows a saved run, a report, or files of another tool.

use std::fs;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::Record;
use machmeter_data::summary::{self, RowInfo};
use machmeter_report::usual;
use machmeter_store::document::{self, Document};
use machmeter_store::foreign::{self, SideFacts};
use machmeter_store::{history, json};

use super::{reference, trend};
use crate::session::{self, empty_record};
use crate::{Exit, Failure, Globals, Registries, Result, output, state, view};

/// Show a saved run, or another tool's files; -o writes HTML or card
///
/// Shows the page of a saved run (last, last~1, a tag, a file, - for stdin) or of files of FTQ, FWQ, Netgauge, sysjitter,
/// oslat, cyclictest, interbench, ramlat, `lat_mem_rd`, multichase or `NetPIPE`. Writes files only with -o: the report (.html), the
/// one-page card (.svg) or the record (.json).
#[derive(Args)]
pub(super) struct Asked {
    /// last, last~N, a tag, a record, a report, or foreign files
    #[arg(value_name = "RUN|FILE", num_args = 1.., default_value = "last")]
    run: Vec<PathBuf>,
    /// Show a metric over all stored runs of this machine, with its changes
    #[arg(long, value_name = "METRIC", conflicts_with = "run")]
    history: Option<String>,
    /// Write the one-page card (SVG) to the file of -o
    #[arg(long, requires = "output")]
    card: bool,
    /// Clock ticks per second, for a file without them
    #[arg(long, value_name = "HZ")]
    tick_hz: Option<f64>,
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let known = SideFacts { tick_hz: asked.tick_hz, ..SideFacts::default() };
    let bare = if asked.card { "svg" } else { "html" };
    let endings = globals.output.iter().map(|path| view::ending(path, bare));
    let endings = endings.collect::<Result<Vec<_>, _>>()?;
    if bare == "svg" && endings.iter().any(|e| *e != bare) {
        return Err(Failure::usage("--card writes .svg"));
    }
    let record = match &asked.history {
        Some(metric) => trend::record(metric)?,
        None => load(registries, &asked.run, &known)?,
    };
    let mut saved = Vec::new();
    for (path, ending) in globals.output.iter().zip(endings) {
        saved.push(view::write(path, ending, &record).map_err(Failure::cannot)?);
    }
    let mut globals = globals.clone();
    // The picture is the result, so it is printed without -v.
    globals.verbose = globals.verbose.max(u8::from(asked.history.is_some()));
    Ok(output::tell(&view::show(&record, &[], &globals, &saved)))
}

/// The record under these names, with its usual ranges: a run of this program, or one made from foreign files.
pub(super) fn load(registries: &Registries, names: &[PathBuf], known: &SideFacts) -> Result<Record> {
    let mut record = read(registries, names, known)?;
    usual::fill(&reference::grown(), &mut record);
    Ok(record)
}

fn read(registries: &Registries, names: &[PathBuf], known: &SideFacts) -> Result<Record> {
    let mut no_run = None;
    if let [one] = names {
        if one.as_os_str() == "-" {
            return json::read_from(&mut std::io::stdin().lock(), Path::new("-")).map_err(Failure::usage);
        }
        if fs::metadata(one).is_ok_and(|m| !m.is_file() && !m.is_dir()) {
            return json::read(one).map_err(Failure::usage);
        }
        if !one.exists()
            && let Ok(history) = state::past()
        {
            let name = one.to_string_lossy();
            match history.resolve(&name) {
                Ok(path) => return json::read(&path).map_err(Failure::usage),
                // The name may be that of another tool's files. The error about runs is kept if the name begins like a run.
                Err(e) => {
                    let is_of_runs = |runs: Vec<String>| runs.iter().any(|r| r.starts_with(&*name));
                    let is_ours = name.starts_with("last") || history.list().map_or(true, is_of_runs);
                    no_run = Some(e).filter(|_| is_ours);
                }
            }
        }
    }
    let opened = document::open(names, known);
    let mut record = match opened.map_err(|e| Failure::usage(no_run.unwrap_or(e)))? {
        Document::Record(record) => *record,
        Document::Foreign(imported) => record_of(registries, *imported),
    };
    // Records of other tools, and of versions without rows.
    if record.summary.rows.is_empty() {
        let infos: Vec<RowInfo> = registries.probes.iter().flat_map(|p| p.info.rows).copied().collect();
        record.summary.rows = summary::rows(&infos, &record.metrics);
    }
    Ok(record)
}

/// Finds a run of this program by name or file; returns its record and its file.
pub(super) fn located(name: &Path) -> Result<(Record, PathBuf)> {
    let path = if name.exists() {
        name.to_owned()
    } else {
        let history = state::past().map_err(Failure::usage)?;
        history.resolve(&name.to_string_lossy()).map_err(Failure::usage)?
    };
    Ok((json::read(&path).map_err(Failure::usage)?, path))
}

/// Reads runs of this program by name or file.
pub(super) fn records(names: &[&PathBuf]) -> Result<Vec<Record>> {
    names.iter().map(|name| located(name).map(|(record, _)| record)).collect()
}

/// Reads a run of this program with its raw tables.
pub(super) fn with_tables(name: &Path) -> Result<(Record, Vec<machmeter_data::Table>)> {
    let (record, path) = located(name)?;
    let tables = tables(&record, &path)?;
    Ok((record, tables))
}

/// Reads the raw tables of a run: from beside the record, or beside its copy in the state directory.
pub(super) fn tables(record: &Record, path: &Path) -> Result<Vec<machmeter_data::Table>> {
    let copy = record.raw.is_empty().then(|| state::past().ok()?.copy_of(record)).flatten();
    let read = |path: &Path| history::raw_tables(&json::read(path)?, path);
    copy.map_or_else(|| history::raw_tables(record, path), |copy| read(&copy)).map_err(Failure::usage)
}

fn record_of(registries: &Registries, imported: foreign::Imported) -> Record {
    let mut record = empty_record();
    record.complete = true;
    "import".clone_into(&mut record.run.verb);
    "end of file".clone_into(&mut record.stopped_by);
    for p in registries.probes {
        if let Ok(analysis) = (p.reanalyze)(&imported.tables, 1) {
            session::add(&mut record, analysis);
        }
    }
    record.metrics.extend(imported.metrics);
    record.datasets.extend(imported.datasets);
    record.summary.lines.extend(imported.summary.lines);
    record.warnings.extend(imported.warnings);
    for (key, value) in imported.notes {
        record.extra.insert(key, serde_json::Value::String(value));
    }
    record.provenance = Some(imported.provenance);
    record
}
