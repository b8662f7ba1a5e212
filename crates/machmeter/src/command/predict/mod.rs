//! `machmeter predict RUN --on RECORD`: replays a traced run with the measured costs of a machine.
//!
//! A trace holds the MPI calls of a program. Computation between calls is scaled; messages and collectives get the costs of the record.

mod expr;
mod inputs;
mod replayed;

use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_simulate::predict::{RUNS, Variation};

use crate::{Exit, Failure, Globals, Registries, view};
use inputs::Algorithm;

/// Advice for extrapolated costs.
const MEASURE_THERE: &str =
    "measure there: machmeter mpi with more ranks or sizes, or machmeter simulate --table";

/// Predict the time of a traced MPI program on another machine
///
/// Replays a run of `machmeter trace` with the costs of another record (--on, of `machmeter mpi` or `machmeter net`). Computation takes the
/// traced time times --cpu-scale. Messages follow `LogGPS`; collectives follow their measured laws, or a pattern of messages (--algorithm).
/// Reports the parts of the predicted time, and how it changes with L, G and o:
/// machmeter predict last --on cluster.json --vary L=1x,2x --cpu-scale 1.3
#[derive(Args)]
pub(super) struct Asked {
    /// Run of machmeter trace
    #[arg(value_name = "RUN")]
    run: Option<PathBuf>,
    /// Run with the costs of a machine; from machmeter mpi or net
    #[arg(long, value_name = "RECORD")]
    on: Option<PathBuf>,
    /// Link of that run: mpi, shm, tcp, 'tcp back'
    #[arg(long, value_name = "NAME")]
    link: Option<String>,
    /// More runs, for costs missing in --on
    #[arg(long, value_name = "RECORD", requires = "on")]
    with: Vec<PathBuf>,
    /// Factor for the time of all computation
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = inputs::scale)]
    cpu_scale: f64,
    /// Factor for the bytes of all messages and collectives
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = inputs::scale)]
    bytes_scale: f64,
    /// Ranks, a multiple of the traced ones; messages are repeated, collectives rebuilt
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    ranks: Option<u32>,
    /// Replay a collective as a pattern: allreduce=ring; patterns: machmeter simulate --pattern list
    #[arg(long, value_name = "OP=PATTERN", value_delimiter = ',', value_parser = inputs::algorithm)]
    algorithm: Vec<Algorithm>,
    /// Also with one parameter changed: L=0.5x,1x,2x; also o, g, G; repeatable
    #[arg(long, value_name = "P=Fx,...", value_parser = inputs::variations)]
    vary: Vec<inputs::Variations>,
    /// Run with gaps, period=1ms,duration=10us, or rate=100,duration=10us (per second); append ,exponential for exponential durations
    #[arg(long, value_name = "RUN|SPEC")]
    noise: Option<String>,
    /// Start all machines at the same place of the noise
    #[arg(long, requires = "noise")]
    coincident: bool,
    /// Number of runs, each with random costs and noise; one run if nothing is random
    #[arg(id = "runs", long = "runs", value_name = "N", default_value_t = RUNS, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// Expression over the costs and laws of --on, instead of a run; --expr list prints the names
    #[arg(long, value_name = "EXPR", conflicts_with = "run", requires = "on")]
    expr: Option<String>,
    /// Free variable of --expr and its range: P=2-4096
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
