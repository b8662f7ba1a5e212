//! Every parser of untrusted bytes, as a function of bytes. For any input it must not panic, hang, or allocate without bound.

use std::path::Path;

use machmeter_data::metric::params;
use machmeter_data::{Interval, Metric, MetricInfo, Params, Record, Unit};
use machmeter_store::foreign::{Input, READERS, SideFacts, SourceFile};
use machmeter_store::{json, mpi_trace, parquet};

use crate::{Registries, job};

pub type Parser = fn(&[u8]);

/// Parsers by name: the name of the fuzz target and of the folder with its seeds.
pub const PARSERS: [(&str, Parser); 9] = [
    ("expression", expression),
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

/// Expressions over costs. If an expression has a value, the value is within its interval.
pub fn expression(bytes: &[u8]) {
    use machmeter_simulate::expr::{Sheet, bind, parse};
    let Ok(expr) = parse(&String::from_utf8_lossy(bytes)) else { return };
    let sheet = Sheet::of(&[costs()]);
    let Ok(bound) = bind(&expr, &sheet, Some("P")) else { return };
    for variable in [1.0, 7.0, 4096.0] {
        let Ok(answer) = bound.at(variable) else { continue };
        assert!(answer.value.is_finite(), "a value");
        let holds = |(low, high): (f64, f64)| (low..=high).contains(&answer.value);
        assert!(answer.interval.is_none_or(holds), "{answer:?}");
        let _ = answer.outside.lines(&sheet);
    }
}

/// A law, a cost at two numbers of ranks and a bandwidth.
fn costs() -> Record {
    let mut record = Record::default();
    let mut push = |id: &'static str, unit: Unit, keys: Params, value: f64| {
        let ci = Interval::new(0.95, 0.9 * value, 1.2 * value, "planted");
        record.metrics.push(Metric::new(&MetricInfo::of(id, unit), keys, value, "planted", 9).with_ci(ci));
    };
    let name = |name: &str| ("operation", name.into());
    for (term, value) in [("1", 300.0), ("log(p)", 40.0), ("d", 0.5)] {
        let keys = params([name("allreduce"), ("term", term.into()), ("from_bytes", 0i64.into())]);
        push("mpi.coefficient", Unit::Nanoseconds, keys, value);
    }
    for (operation, ranks, bytes) in
        [("allreduce", 2i64, 8i64), ("allreduce", 64, 4096), ("barrier", 2, 0), ("barrier", 4, 0)]
    {
        let keys = params([name(operation), ("ranks", ranks.into()), ("size_bytes", bytes.into())]);
        push("mpi.cost", Unit::Nanoseconds, keys, 500.0);
    }
    push("ops.cost", Unit::Nanoseconds, params([name("getppid"), ("code", "libc".into())]), 80.0);
    push("memory.bandwidth", Unit::BytesPerSecond, params([("cpus", 1i64.into())]), 1e10);
    record
}

/// Files of other tools: every reader, whether or not it recognizes the file, and the analysis of the result.
pub fn foreign(bytes: &[u8]) {
    let input = Input { files: vec![SourceFile::new(NAME, bytes)], known: SideFacts::default() };
    for reader in READERS {
        let _ = (reader.sniff)(&input);
        let _ = reader.read(&input);
    }
}

/// Messages from a peer to `machmeter serve`, and from `serve` to its peer.
pub fn frames(bytes: &[u8]) {
    machmeter_net::frames(bytes);
}

/// Schedules, text and binary. A schedule that was read ends or deadlocks, and writing restores it.
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
        let _ = job::asked_for(&parts);
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

/// Traces of MPI programs, and the analysis of accepted ones.
pub fn trace(bytes: &[u8]) {
    let _ = mpi_trace::analyze(Path::new("."), &[(NAME.into(), bytes.to_vec())], usize::MAX);
}
