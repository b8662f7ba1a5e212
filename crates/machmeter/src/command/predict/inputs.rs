//! Interprets the options of a prediction: a traced run, and the costs of a machine.

use std::path::{Path, PathBuf};

use machmeter_data::shape::Shape;
use machmeter_data::trace::EVENTS;
use machmeter_data::{Record, Table, Unit};
use machmeter_simulate::Dialect;
use machmeter_simulate::expr::Sheet;
use machmeter_simulate::machine::{OfLink, of_record};
use machmeter_simulate::patterns::{PATTERNS, PatternInfo, find};
use machmeter_simulate::predict::Variation;
use machmeter_simulate::replay::{BASES, Options, Replay};

use super::Asked;
use crate::Failure;
use crate::command::report;
use crate::command::simulate::names_of;

/// A collective, and the pattern of messages that replaces it.
pub(super) type Algorithm = (&'static str, &'static PatternInfo);

/// One parameter with several factors: `L=0.5x,1x,2x`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variations(pub(super) Vec<Variation>);

pub(super) fn variations(text: &str) -> Result<Variations, String> {
    let (name, factors) = text.split_once('=').unwrap_or((text, ""));
    let all = factors.split(',').map(|factor| format!("{name}={factor}").parse());
    all.collect::<Result<_, _>>().map(Variations)
}

/// Parses a factor of times or bytes.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|x| (0.0..=1e6).contains(x));
    parsed.ok_or_else(|| format!("'{text}' is not a factor from 0 to 1000000"))
}

/// Parses `allreduce=ring`.
pub(super) fn algorithm(text: &str) -> Result<Algorithm, String> {
    let (operation, pattern) = text
        .split_once('=')
        .ok_or_else(|| format!("'{text}' is not an operation with a pattern, such as allreduce=ring"))?;
    let base = BASES.iter().find(|(base, _)| *base == operation);
    let base = base
        .ok_or_else(|| format!("no operation '{operation}'; operations are {}", names_of(BASES, |b| b.0)))?;
    let info = find(pattern);
    let info = info
        .ok_or_else(|| format!("no pattern '{pattern}'; patterns are {}", names_of(PATTERNS, |p| p.name)))?;
    Ok((base.0, info))
}

/// Reads a run with a trace, and its tables.
pub(super) fn traced(run: &Path) -> Result<(Record, Vec<Table>), Failure> {
    let (record, path) = report::located(run)?;
    if record.raw.iter().any(|r| r.table == EVENTS) {
        let tables = report::tables(&record, &path)?;
        return Ok((record, tables));
    }
    let help = if record.metric("mpi.calls", &[("operation", "all")]).is_some() {
        "the run has too many calls to keep them by default: use machmeter trace --raw all"
    } else {
        "record a trace: machmeter trace -- mpirun ..."
    };
    Err(Failure::usage(format!("{}: the run has no trace of an MPI program", run.display())).help(help))
}

/// Costs of the calls on a machine.
pub(super) struct Costs {
    /// Name and record of the link.
    pub(super) name: String,
    pub(super) record: Record,
    pub(super) link: OfLink,
    pub(super) sheet: Sheet,
}

pub(super) fn costs(asked: &Asked) -> Result<Costs, Failure> {
    let on = asked.on.as_ref().ok_or_else(|| {
        Failure::usage("no costs for the prediction")
            .help("give --on RECORD, a run of machmeter mpi or machmeter net")
    })?;
    let names: Vec<&PathBuf> = [on].into_iter().chain(&asked.with).collect();
    let records = report::records(&names)?;
    let of = |record: &Record| match &asked.link {
        Some(wanted) => of_record(record, Some(wanted), Dialect::Machmeter),
        None => of_mpi(record).map_or_else(|| of_record(record, None, Dialect::Machmeter), Ok),
    };
    let wrong = |e: String| {
        Failure::usage(format!("--on {}: {e}", on.display()))
            .help("machmeter mpi measures messages and all collectives of MPI: --parts costs,loggps")
    };
    let has_link = records.iter().position(|record| of(record).is_ok()).unwrap_or(0);
    let link = of(&records[has_link]).map_err(wrong)?;
    let name = names[has_link].display().to_string();
    Ok(Costs { sheet: Sheet::of(&records), record: records[has_link].clone(), link, name })
}

/// Messages of an MPI program have the costs of the `mpi` probe. Of its two links (receive posted or unexpected), the one with fewer assumptions is used.
fn of_mpi(record: &Record) -> Option<OfLink> {
    let links =
        ["mpi posted", "mpi unexpected"].map(|name| of_record(record, Some(name), Dialect::Machmeter));
    links.into_iter().flatten().min_by_key(|link| link.assumptions.len())
}

/// Options of the replay.
pub(super) fn options(asked: &Asked, traced_ranks: u32) -> Result<Options, Failure> {
    let ranks = asked.ranks.unwrap_or(traced_ranks);
    if traced_ranks == 0 || !ranks.is_multiple_of(traced_ranks) {
        let text = format!("--ranks {ranks} is not a multiple of the {traced_ranks} traced ranks");
        let help = format!("{}, {}, ...", traced_ranks.saturating_mul(2), traced_ranks.saturating_mul(4));
        return Err(Failure::usage(text).help(help));
    }
    let Asked { cpu_scale, bytes_scale, .. } = *asked;
    let (copies, algorithms) = (ranks / traced_ranks, asked.algorithm.iter().copied().collect());
    Ok(Options { cpu_scale, bytes_scale, copies, algorithms, others: None })
}

/// The largest message with a measured time, bytes.
pub(super) fn largest_measured(record: &Record, link: &OfLink) -> Option<u64> {
    let transport = link.name.split(' ').next().unwrap_or_default();
    let prefix = if transport == "mpi" { "mpi." } else { "net." };
    let curves = record.datasets.iter().filter(|d| d.id.starts_with(prefix)).filter_map(|d| match &d.shape {
        Shape::Curve(c) if c.x.unit == Unit::Bytes => Some(c),
        _ => None,
    });
    let largest = curves.flat_map(|c| &c.rows).flat_map(|r| &r.x).copied().reduce(f64::max)?;
    Some(largest as u64)
}

/// Statements on the method that the figures do not contain.
pub(super) fn statements(replay: &Replay, options: &Options, traced_ranks: u32) -> Vec<String> {
    let (ranks, copies, rebuilt) = (replay.ranks(), options.copies, replay.rebuilt);
    let repeated = (copies > 1).then(|| {
        format!(
            "{ranks} ranks: messages of {traced_ranks} ranks repeated {copies} times, {rebuilt} collectives of all ranks rebuilt"
        )
    });
    let algorithms = options.algorithms.iter();
    let algorithms = algorithms.map(|(of, info)| format!("{of} replayed as the pattern {}", info.name));
    repeated.into_iter().chain(algorithms).collect()
}
