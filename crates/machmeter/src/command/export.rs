//! `machmeter export --to FORMAT RUN`: writes a stored run in another format.

use std::io;
use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches, builder::PossibleValuesParser};
use machmeter_compare::glob_matches;
use machmeter_data::Table;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::trace::EVENTS;
use machmeter_report::format::FORMATS;
use machmeter_simulate::goal::{Goal, write_binary, write_smpi, write_text};
use machmeter_simulate::replay::{Calls, operations, schedule};
use machmeter_store::parquet;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;

use super::report;
use crate::{Exit, Failure, Globals, Registries, Result, output};

/// A format of schedules, which exist for traced runs only.
pub(super) struct ScheduleFormat {
    pub(super) name: &'static str,
    pub(super) extension: &'static str,
    pub(super) description: &'static str,
    write: fn(&Goal, &mut Vec<u8>) -> io::Result<()>,
}

pub(super) const SCHEDULES: [ScheduleFormat; 3] = [
    ScheduleFormat {
        name: "goal",
        extension: "goal",
        description: "A traced MPI program as a schedule in GOAL: computation, messages, collectives as messages.",
        write: write_text,
    },
    ScheduleFormat {
        name: "goal-binary",
        extension: "bin",
        description: "The same schedule in the binary form of LogGOPSim.",
        write: write_binary,
    },
    ScheduleFormat {
        name: "smpi",
        extension: "txt",
        description: "The same schedule as a time-independent trace for SimGrid's SMPI, all ranks in one file. One flop is one nanosecond.",
        write: write_smpi,
    },
];
/// Memory to build and write an operation of a schedule, bytes; 315,000 operations took 72 MB.
const OPERATION_BYTES: u64 = 250;

/// Write a saved run in another format
#[derive(Args)]
pub(super) struct Asked {
    /// Format
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats()))]
    to: String,
    /// Output file instead of stdout; for parquet a file stem or a directory
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only matching metrics; for formats with figures
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// last, last~N, a tag, a record or a report
    #[arg(value_name = "RUN", default_value = "last")]
    run: PathBuf,
}

fn formats() -> Vec<&'static str> {
    let schedules = SCHEDULES.iter().map(|f| f.name);
    let mut names: Vec<&'static str> =
        FORMATS.iter().map(|f| f.name).chain(schedules).chain(["parquet"]).collect();
    names.sort_unstable();
    names
}

pub(super) fn run(_: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let (mut record, path) = report::located(&asked.run)?;
    let format = FORMATS.iter().find(|f| f.name == asked.to);
    if let Some(glob) = &asked.metric {
        if !format.is_some_and(|f| f.is_of_figures) {
            let what = format!("--metric selects figures, but {} contains samples or graphs", asked.to);
            return Err(Failure::usage(what));
        }
        record.metrics.retain(|m| glob_matches(glob, &m.key()) || glob_matches(glob, &m.id));
        if record.metrics.is_empty() {
            return Err(Failure::usage(format!("--metric '{glob}': no metric of this run matches")));
        }
    }
    if let Some(format) = SCHEDULES.iter().find(|f| f.name == asked.to) {
        // For a run without calls, the missing calls are the error, not a missing file.
        let has_calls = record.raw.iter().any(|r| r.table == EVENTS);
        let tables = if has_calls { report::tables(&record, &path)? } else { Vec::new() };
        return traced(&asked, format, &tables);
    }
    let tables = report::tables(&record, &path);
    let Some(format) = format else { return parquets(&asked, &tables?) };
    let mut bytes = Vec::new();
    // Most formats hold figures only, so a record without its samples is sufficient.
    let (tables, missing) = tables.map_or_else(|why| (Vec::new(), Some(why)), |t| (t, None));
    (format.write)(&record, &tables, &mut bytes).map_err(|e| {
        let failure = Failure::usage(e);
        match missing {
            Some(why) => failure.help(format!("the samples must be beside the record: {}", why.what)),
            None => failure,
        }
    })?;
    put(&asked, &bytes)
}

fn put(asked: &Asked, bytes: &[u8]) -> Result<Exit> {
    match &asked.output {
        None => output::write(bytes).map_err(Failure::cannot)?,
        Some(path) => machmeter_store::atomic::write(path, bytes).map_err(Failure::cannot)?,
    }
    Ok(Exit::Fine)
}

/// Writes the schedule of a traced program.
fn traced(asked: &Asked, format: &ScheduleFormat, tables: &[Table]) -> Result<Exit> {
    let wrong = |e: String| Failure::usage(format!("{}: {e}", asked.run.display()));
    let calls = Calls::find(tables).map_err(|e| {
        wrong(e).help("export a run of machmeter trace -- mpirun ...; with many calls, a run with --raw all")
    })?;
    let left = MemoryLeft::of_this_process(&FsRoot::host()).map_err(Failure::cannot)?;
    let bytes = operations(&calls).saturating_mul(OPERATION_BYTES);
    if bytes > left.available_bytes {
        let [needed, left] = [bytes, left.available_bytes].map(|b| human(b as f64, Unit::Bytes));
        return Err(wrong(format!("its schedule needs about {needed} of memory, but only {left} are free"))
            .help("trace a shorter run or fewer ranks"));
    }
    let (goal, replay) = schedule(&calls).map_err(wrong)?;
    for (name, count) in &replay.left_out {
        output::say(&format!("left out: {count} {name}"));
    }
    let mut bytes = Vec::new();
    (format.write)(&goal, &mut bytes).map_err(|e| wrong(e.to_string()))?;
    put(asked, &bytes)
}

/// Writes a file per table of samples.
fn parquets(asked: &Asked, tables: &[Table]) -> Result<Exit> {
    if tables.is_empty() {
        return Err(Failure::usage(format!("{}: this run has no raw samples", asked.run.display()))
            .help("measure with --raw all"));
    }
    if let Some(dir) =
        asked.output.as_ref().filter(|o| o.as_os_str().as_encoded_bytes().ends_with(b"/") && !o.is_dir())
    {
        return Err(Failure::cannot(format!("{}: no such directory", dir.display())));
    }
    for t in tables {
        let own = PathBuf::from(format!("{}.parquet", t.name));
        let file = match &asked.output {
            Some(dir) if dir.is_dir() => dir.join(own),
            Some(stem) => {
                let mut file = if stem.extension().is_some_and(|e| e == "parquet" || e == "json") {
                    stem.with_extension("").into_os_string()
                } else {
                    stem.clone().into_os_string()
                };
                file.push(".");
                file.push(&own);
                file.into()
            }
            None => own,
        };
        parquet::write_table(t, &file).map_err(Failure::cannot)?;
        output::say(&format!("{} ({} rows)", file.display(), t.rows()));
    }
    Ok(Exit::Fine)
}
