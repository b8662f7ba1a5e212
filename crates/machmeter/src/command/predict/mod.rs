//! `machmeter predict RUN --on RECORD`: a traced run replayed on the measured costs of a machine.

mod expr;
mod inputs;
mod replayed;

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_simulate::predict::{RUNS, Variation};

use crate::{Exit, Failure, Globals, Registries, view};
use inputs::Algorithm;

/// What to do where a cost was extrapolated.
const MEASURE_THERE: &str =
    "measure there: machmeter mpi with more ranks or sizes; or machmeter simulate --table";

/// Predict a traced MPI program on another machine
///
/// Replays a run of `machmeter trace` on the costs of another record (--on, of `machmeter mpi` or `machmeter net`): calculation as traced
/// times --cpu-scale, messages by `LogGPS`, collectives by their measured laws or as a pattern of messages (--algorithm). Says what the time
/// is made of, and how it changes with L, G and o:
/// machmeter predict last --on cluster.json --vary L=1x,2x --cpu-scale 1.3
#[derive(Args)]
pub(super) struct Asked {
    /// A run of machmeter trace
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Run with the costs of a machine; of machmeter mpi or net
    #[arg(long, value_name = "RECORD")]
    on: Option<PathBuf>,
    /// Link of that run: mpi, shm, tcp, 'tcp back'
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// More runs, for costs that --on lacks
    #[arg(long, value_name = "RECORD", requires = "on")]
    with: Vec<PathBuf>,
    /// Time of all calculation, times this
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = inputs::scale)]
    cpu_scale: f64,
    /// Bytes of all messages and collectives, times this
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = inputs::scale)]
    bytes_scale: f64,
    /// Ranks, a multiple of those traced: messages repeated, collectives rebuilt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    ranks: Option<u32>,
    /// A collective as messages of a pattern: allreduce=ring; patterns: machmeter simulate --pattern list
    #[arg(long, value_name = "OP=PATTERN", value_delimiter = ',', value_parser = inputs::algorithm)]
    algorithm: Vec<Algorithm>,
    /// Also with one parameter changed: L=0.5x,1x,2x; also o, g, G; again for others
    #[arg(long, value_name = "P=Fx,...", value_parser = inputs::variations)]
    vary: Vec<inputs::Variations>,
    /// Run with gaps, or period=1ms,duration=10us, or rate=100,duration=10us (per second; also exponential)
    #[arg(long, value_name = "RUN|SPEC")]
    noise: Option<String>,
    /// All machines are at one place of the noise
    #[arg(long, requires = "noise")]
    coincident: bool,
    /// Runs, each with costs and noise drawn; one where nothing differs
    #[arg(id = "runs", long = "runs", value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Instead of a run: an expression over the costs and laws of --on; its names: --expr list
    #[arg(long, value_name = "EXPR", conflicts_with = "run", requires = "on")]
    expr: Option<String>,
    /// Of --expr: its free variable, P=2-4096
    #[arg(long, value_name = "NAME=A-B", requires = "expr", value_parser = expr::over)]
    over: Option<expr::Over>,
}

impl Asked {
    fn variations(&self) -> Vec<Variation> {
        self.vary.iter().flat_map(|v| v.0.iter().copied()).collect()
    }
}

pub(super) fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    view::writable(globals)?;
    if let Some(text) = &asked.expr {
        let records: Vec<&PathBuf> = asked.on.iter().chain(&asked.with).collect();
        return expr::run(text, asked.over.as_ref(), &records, globals);
    }
    replayed::run(&asked, globals)
}
