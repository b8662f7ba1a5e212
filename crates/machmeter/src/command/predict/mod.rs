//! `machmeter predict RUN --on RECORD`: a traced run replayed on the measured costs of a machine.

mod expr;
mod inputs;

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::view;
use inputs::traced;

pub(crate) const ENTRY: CommandEntry = CommandEntry {
    name: "predict",
    define,
    takes: &[
        "cpus", "output", "json", "csv", "md", "tag", "no_save", "dry_run", "quiet", "verbose", "color",
        "ascii",
    ],
    run,
};

/// Predict a traced MPI program on another machine
///
/// Replays a run of `machmeter trace` on the costs of another record (--on, of `machmeter mpi` or `machmeter net`): calculation as traced
/// times --cpu-scale, messages by `LogGPS`, collectives by their measured laws or as a pattern of messages (--algorithm). Says what the time
/// is made of, and how it changes with L, G and o:
/// machmeter predict last --on cluster.json --vary L=1x,2x --cpu-scale 1.3
#[derive(Args)]
struct Asked {
    /// A run of machmeter trace
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Run with the costs of a machine; of machmeter mpi or net
    #[arg(long, value_name = "RECORD")]
    on: Option<PathBuf>,
    /// Instead of a run: an expression over the costs and laws of --on
    #[arg(long, value_name = "EXPR", conflicts_with = "run", requires = "on")]
    expr: Option<String>,
    /// Of --expr: its free variable, P=2-4096
    #[arg(long, value_name = "NAME=A-B", requires = "expr", value_parser = expr::over)]
    over: Option<expr::Over>,
    /// Of --expr: more runs, for names that --on lacks
    #[arg(long, value_name = "RECORD", requires = "expr")]
    with: Vec<PathBuf>,
}

fn define() -> Command {
    Asked::augment_args(Command::new(ENTRY.name))
}

fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    globals.output.iter().try_for_each(|path| view::ending(path, "json").map(|_| ()))?;
    if let Some(text) = &asked.expr {
        let records: Vec<&PathBuf> = asked.on.iter().chain(&asked.with).collect();
        return expr::run(text, asked.over.as_ref(), &records, globals);
    }
    let Some(run) = &asked.run else {
        return Err(
            Failure::usage("nothing to predict").help("predict RUN --on RECORD, RUN of machmeter trace")
        );
    };
    let _ = traced(run)?;
    asked.on.as_ref().ok_or_else(|| {
        Failure::usage("no costs to predict with")
            .help("--on RECORD, a run of machmeter mpi or machmeter net")
    })?;
    Ok(Exit::Fine)
}
