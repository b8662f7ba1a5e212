//! `machmeter export --to FORMAT RUN`.

use std::io::Write;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
use machmeter_compare::glob_matches;
use machmeter_report::format::FORMATS;
use machmeter_store::parquet;

use super::{CommandEntry, report};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "export", define, takes: &[], run };

fn define() -> Command {
    let mut names: Vec<&'static str> = FORMATS.iter().map(|f| f.name).collect();
    names.push("parquet");
    names.sort_unstable();
    Command::new(ENTRY.name)
        .about("Write a saved run in another format")
        .arg(
            Arg::new("to")
                .long("to")
                .value_name("FORMAT")
                .required(true)
                .value_parser(PossibleValuesParser::new(names))
                .help("Format"),
        )
        .arg(
            Arg::new("output")
                .short('o')
                .long("output")
                .value_name("PATH")
                .value_parser(value_parser!(PathBuf))
                .help("File instead of stdout; for parquet its stem, or a directory"),
        )
        .arg(
            Arg::new("metric")
                .long("metric")
                .value_name("GLOB")
                .help("Only metrics that match; of formats that hold figures"),
        )
        .arg(
            Arg::new("run")
                .value_name("RUN")
                .default_value("last")
                .value_parser(value_parser!(PathBuf))
                .help("last, last~N, a tag, a record or a report"),
        )
}

fn run(_registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let to = matches.get_one::<String>("to").map_or("", String::as_str);
    let name: PathBuf = matches.get_one("run").cloned().unwrap_or_else(|| PathBuf::from("last"));
    let (mut record, path) = report::located(&name)?;
    let tables = report::tables(&record, &path);
    if let Some(glob) = matches.get_one::<String>("metric") {
        if !FORMATS.iter().any(|f| f.name == to && f.is_of_figures) {
            return Err(Failure::usage(format!("--metric chooses among figures: {to} has samples")));
        }
        record.metrics.retain(|m| glob_matches(glob, &m.key()) || glob_matches(glob, &m.id));
        if record.metrics.is_empty() {
            return Err(Failure::usage(format!("--metric '{glob}': no metric of this run matches")));
        }
    }
    let target = globals.output.first();
    if to == "parquet" {
        let tables = tables?;
        if tables.is_empty() {
            return Err(Failure::usage(format!("{}: this run has no raw samples", name.display()))
                .help("measure with --raw all"));
        }
        for t in &tables {
            let file = match target {
                Some(dir) if dir.is_dir() => dir.join(format!("{}.parquet", t.name)),
                Some(stem) => {
                    PathBuf::from(format!("{}.{}.parquet", stem.with_extension("").display(), t.name))
                }
                None => PathBuf::from(format!("{}.parquet", t.name)),
            };
            parquet::write_table(t, &file).map_err(Failure::cannot)?;
            output::say(&format!("{} ({} rows)", file.display(), t.rows()));
        }
        return Ok(Exit::Fine);
    }
    let Some(format) = FORMATS.iter().find(|f| f.name == to) else {
        return Err(Failure::usage(format!("no format '{to}'")));
    };
    let mut bytes = Vec::new();
    // Most formats hold figures only: a record that was mailed without its samples will do.
    let (tables, missing) = tables.map_or_else(|why| (Vec::new(), Some(why)), |t| (t, None));
    (format.write)(&record, &tables, &mut bytes).map_err(|e| missing.unwrap_or_else(|| Failure::usage(e)))?;
    match target {
        None => match std::io::stdout().lock().write_all(&bytes) {
            Err(e) if e.kind() != std::io::ErrorKind::BrokenPipe => {
                return Err(Failure::cannot(format!("stdout: {e}")));
            }
            _ => {}
        },
        Some(path) => machmeter_store::text::write(path, &bytes).map_err(Failure::cannot)?,
    }
    Ok(Exit::Fine)
}
