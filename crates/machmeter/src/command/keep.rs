//! Stores a record and chooses the exit code: files, history, page.

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use machmeter_data::record::Record;
use machmeter_data::{CheckState, Table};
use machmeter_engine::probe::Output;
use machmeter_report::usual;
use machmeter_store::{History, atomic, history, json};
use machmeter_sys::guard::signals;

use super::reference;
use crate::globals::Raw;
use crate::session::warning;
use crate::{Exit, Globals, output, state, view};

/// Raw samples with more rows are stored on request only.
pub(super) const MANY_ROWS: usize = 5_000_000;
const KEEP_RUNS: usize = 200;
/// Most bytes of the history's records and samples together.
const KEEP_BYTES: u64 = 1 << 30;

/// Calls [`keep`] for a calculated record, which has no samples.
pub(super) fn keep_figures(record: Record, globals: &Globals) -> Exit {
    keep(record, Vec::new(), state::history(), Vec::new(), None, globals)
}

/// Stores the record in all requested places, shows it, and chooses the exit code. A failure in one place does not affect the rest. The places are the
/// history (or the reason why there is none), the files of the options, and the files that parameters request. A record and a report in this directory
/// have names that begin with `stem`. The history also stores their raw tables.
pub(super) fn keep(
    mut record: Record,
    tables: Vec<Table>,
    history: Result<History, String>,
    outputs: Vec<Output>,
    stem: Option<&str>,
    globals: &Globals,
) -> Exit {
    usual::fill(&reference::grown(), &mut record);
    let rows: usize = tables.iter().map(Table::rows).sum();
    let is_kept = globals.raw == Raw::All || (globals.raw == Raw::Auto && rows <= MANY_ROWS);
    let tables = if is_kept { tables } else { Vec::new() };
    let (mut saved, mut trouble) = (Vec::new(), Vec::new());
    let made: Vec<_> = outputs.into_iter().map(|output| write_output(&mut record, output)).collect();
    for written in made.into_iter().chain(write_all(&mut record, &tables, stem, globals)) {
        match written {
            Ok(name) => saved.push(name),
            Err(why) => trouble.push(why),
        }
    }
    if !globals.no_save {
        let kept = history.and_then(|h| {
            let kept = h.save(&mut record, &tables).map_err(|e| e.to_string());
            let _ = h.prune(KEEP_RUNS, KEEP_BYTES);
            kept
        });
        match kept {
            Ok(s) => {
                if globals.runs > 1 || (stem.is_none() && globals.output.is_empty()) {
                    saved.push(format!("run {} (machmeter report last)", s.name));
                }
            }
            Err(e) => record.warn(warning(
                "W901",
                format!("the run was not saved in the history: {e}"),
                "make the state directory writable, name a file with -o, or give --no-save",
            )),
        }
    }
    if globals.runs > 1 {
        trouble.extend(saved.iter().filter_map(|name| output::print(&format!("saved {name}")).err()));
    } else {
        trouble.extend(view::show(&record, &tables, globals, &saved));
    }
    // The exit codes of signals promise that the result was saved.
    match (output::tell(&trouble), signals::stop_requested()) {
        (Exit::Fine, None) => exit(&record, globals),
        (Exit::Fine, Some(signal)) => signal.into(),
        (failed, _) => failed,
    }
}

/// Paths of a record and a report in this directory under `stem`, or `stem-2`, `stem-3` and so on if runs of the same second use it. An empty record
/// reserves the name.
fn free_files(stem: &str) -> [PathBuf; 2] {
    for n in 1..1000 {
        let stem = if n == 1 { stem.to_owned() } else { format!("{stem}-{n}") };
        let files = ["json", "html"].map(|e| PathBuf::from(format!("{stem}.{e}")));
        if files[1].symlink_metadata().is_ok() {
            continue;
        }
        match File::create_new(&files[0]) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            // Writing the record will report any other error.
            _ => return files,
        }
    }
    // A thousand runs in one second do not occur; the process id makes the name unique in any case.
    ["json", "html"].map(|e| PathBuf::from(format!("{stem}-{}.{e}", std::process::id())))
}

/// The page's text about a written file, or the error.
type Written = Result<String, String>;

/// Writes a file that a parameter requests.
fn write_output(record: &mut Record, Output { path, content }: Output) -> Written {
    let bytes = content.map_err(|why| format!("{}: not written: {why}", path.display()))?;
    atomic::write(&path, &bytes).map_err(|e| e.to_string())?;
    record.run.side_effects.push(format!("wrote {:?}", path.to_string_lossy()));
    Ok(format!("{} ({} kB)", path.display(), bytes.len().div_ceil(1000)))
}

/// Writes the files of `stem`, with raw tables only under `--raw all`, and the files of `-o`.
fn write_all(record: &mut Record, tables: &[Table], stem: Option<&str>, globals: &Globals) -> Vec<Written> {
    let files = stem.map(free_files);
    let beside = if globals.raw == Raw::All { tables } else { &[] };
    let mut written: Vec<Written> = files.iter().flatten().map(|path| write(record, beside, path)).collect();
    written.extend(globals.output.iter().map(|path| write(record, tables, path)));
    // Record and report of one stem share a line.
    if let (Some([_, html]), [Ok(record), Ok(report), ..]) = (&files, written.as_slice()) {
        let size = report.strip_prefix(&html.display().to_string()).unwrap_or_default();
        let line = format!("{record}, .html{size}");
        written.splice(..2, [Ok(line)]);
    }
    if let Some([held, _]) = &files
        && held.metadata().is_ok_and(|m| m.len() == 0)
    {
        let _ = std::fs::remove_file(held);
    }
    written
}

/// Writes one file in the format of its extension.
fn write(record: &mut Record, tables: &[Table], path: &Path) -> Written {
    let ending = view::ending(path, "json").unwrap_or("json");
    let mut beside = String::new();
    if ending == "json" {
        match history::save_as(record, tables, path) {
            Ok(saved) if saved.raw.is_empty() => {}
            Ok(saved) => beside = format!(", {} raw tables beside it", saved.raw.len()),
            Err(e) if tables.is_empty() => return Err(e.to_string()),
            // The figures are worth more than the samples: without space for both, keep the record.
            Err(e) => {
                json::write(record, path).map_err(|again| again.to_string())?;
                let text = format!("raw samples were not saved: {e}");
                record.warn(warning("W902", text, "free disk space, or give --raw none"));
            }
        }
    } else {
        return view::write(path, ending, record);
    }
    let size = path.metadata().map_or(String::new(), |m| format!(" ({} kB)", m.len().div_ceil(1000)));
    Ok(format!("{}{size}{beside}", path.display()))
}

/// The exit code of a complete run that was not stopped.
fn exit(record: &Record, globals: &Globals) -> Exit {
    if globals.strict && record.checks.iter().any(|c| c.state == CheckState::Fail) {
        return Exit::Inconclusive;
    }
    if record.complete { Exit::Fine } else { Exit::Partial }
}
