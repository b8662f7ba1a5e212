//! Every parser of bytes that somebody else may have written, as a function of bytes: whatever they are, it may not panic, hang, or
//! take memory without bound.

use std::path::Path;

use machmeter_store::foreign::{Input, READERS, SideFacts, SourceFile};
use machmeter_store::{json, mpi_trace, parquet};

use crate::{Registries, job};

pub type Parser = fn(&[u8]);

/// By name, which is that of the fuzz target and of the folder with its seeds.
pub const PARSERS: [(&str, Parser); 8] = [
    ("foreign", foreign),
    ("frames", frames),
    ("goal", goal),
    ("job", job),
    ("orders", orders),
    ("parquet", parquet),
    ("record", record),
    ("trace", trace),
];

const NAME: &str = "fuzz_0_times.dat";

/// Files of other tools: every reader, whether the file looks like its format or not, and the analysis of what it read.
pub fn foreign(bytes: &[u8]) {
    let input = Input { files: vec![SourceFile::new(NAME, bytes)], known: SideFacts::default() };
    for reader in READERS {
        let _ = (reader.sniff)(&input);
        let _ = reader.read(&input);
    }
}

/// What a peer sends to `machmeter serve`, and `serve` to it.
pub fn frames(bytes: &[u8]) {
    machmeter_net::frames(bytes);
}

/// Schedules, text and binary: what is read ends or deadlocks, and is written as it was read.
pub fn goal(bytes: &[u8]) {
    use machmeter_simulate::{Dialect, Line, Params, goal, noise, run};
    let Ok(schedule) = goal::read(bytes) else { return };
    let mut binary = Vec::new();
    let written = goal::write_binary(&schedule, &mut binary);
    assert!(written.is_ok() && goal::read_binary(&binary).as_ref() == Ok(&schedule), "binary form");
    let line = Line { first_ps: 1000, per_byte: 1024 };
    for dialect in [Dialect::Machmeter, Dialect::LogGopSim] {
        let params = Params::simple(line, line, 1000, 1000, dialect);
        let mut program = goal::Schedule::new(&schedule);
        let _ = run::<u64, _, _>(&mut program, &params, &mut noise::Quiet, &|| false);
    }
}

/// Job files.
pub fn job(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(parts) = job::parse(&Registries::default(), &text) {
        let _ = (job::commands(&parts), job::destinations(&parts));
    }
}

/// Messages between the processes of a run.
pub fn orders(bytes: &[u8]) {
    machmeter_interactive::worker::orders(bytes);
    machmeter_loads::orders(bytes);
}

/// Files of samples.
pub fn parquet(bytes: &[u8]) {
    let _ = parquet::from_bytes(bytes, Path::new(NAME));
}

/// Records and report pages.
pub fn record(bytes: &[u8]) {
    let _ = json::from_bytes(bytes, Path::new(NAME));
}

/// Traces of MPI programs, and the analysis of what is believed.
pub fn trace(bytes: &[u8]) {
    let _ = mpi_trace::analyze(Path::new("."), &[(NAME.into(), bytes.to_vec())], usize::MAX);
}
