//! `machmeter export --to FORMAT RUN`.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, builder::PossibleValuesParser};
use machmeter_compare::glob_matches;
use machmeter_data::Table;
use machmeter_report::format::FORMATS;
use machmeter_store::parquet;

use super::{CommandEntry, report};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "export", define, takes: &[], run };

/// Write a saved run in another format
#[derive(Args)]
struct Asked {
    /// Format
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats()))]
    to: String,
    /// File instead of stdout; for parquet its stem, or a directory
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Only metrics that match; of formats that hold figures
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// last, last~N, a tag, a record or a report
    #[arg(value_name = "RUN", default_value = "last")]
    run: PathBuf,
}

fn formats() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = FORMATS.iter().map(|f| f.name).chain(["parquet"]).collect();
    names.sort_unstable();
    names
}

fn define() -> Command {
    Asked::augment_args(Command::new(ENTRY.name))
}

fn run(_registries: &Registries, _globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let (mut record, path) = report::located(&asked.run)?;
    let tables = report::tables(&record, &path);
    let format = FORMATS.iter().find(|f| f.name == asked.to);
    if let Some(glob) = &asked.metric {
        if !format.is_some_and(|f| f.is_of_figures) {
            return Err(Failure::usage(format!(
                "--metric chooses among figures: {} holds samples or graphs",
                asked.to
            )));
        }
        record.metrics.retain(|m| glob_matches(glob, &m.key()) || glob_matches(glob, &m.id));
        if record.metrics.is_empty() {
            return Err(Failure::usage(format!("--metric '{glob}': no metric of this run matches")));
        }
    }
    let Some(format) = format else { return parquets(&asked, &tables?) };
    let mut bytes = Vec::new();
    // Most formats hold figures only: a record that was mailed without its samples will do.
    let (tables, missing) = tables.map_or_else(|why| (Vec::new(), Some(why)), |t| (t, None));
    (format.write)(&record, &tables, &mut bytes).map_err(|e| missing.unwrap_or_else(|| Failure::usage(e)))?;
    match &asked.output {
        None => output::write(&bytes).map_err(Failure::cannot)?,
        Some(path) => machmeter_store::text::write(path, &bytes).map_err(Failure::cannot)?,
    }
    Ok(Exit::Fine)
}

/// A file of each table of samples.
fn parquets(asked: &Asked, tables: &[Table]) -> Result<Exit, Failure> {
    if tables.is_empty() {
        return Err(Failure::usage(format!("{}: this run has no raw samples", asked.run.display()))
            .help("measure with --raw all"));
    }
    for t in tables {
        let own = PathBuf::from(format!("{}.parquet", t.name));
        let file = match &asked.output {
            Some(dir) if dir.is_dir() => dir.join(own),
            Some(stem) => PathBuf::from(format!("{}.{}", stem.with_extension("").display(), own.display())),
            None => own,
        };
        parquet::write_table(t, &file).map_err(Failure::cannot)?;
        output::say(&format!("{} ({} rows)", file.display(), t.rows()));
    }
    Ok(Exit::Fine)
}
