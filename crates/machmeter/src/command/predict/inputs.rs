//! What the options of a prediction mean: a traced run, costs of a machine.

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

/// A collective that becomes messages.
pub(super) type Algorithm = (&'static str, &'static PatternInfo);

/// `L=0.5x,1x,2x`: one parameter, several factors.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variations(pub(super) Vec<Variation>);

pub(super) fn variations(text: &str) -> Result<Variations, String> {
    let (name, factors) = text.split_once('=').unwrap_or((text, ""));
    let all = factors.split(',').map(|factor| format!("{name}={factor}").parse());
    all.collect::<Result<_, _>>().map(Variations)
}

/// A factor of times or bytes.
pub(super) fn scale(text: &str) -> Result<f64, String> {
    let parsed = text.parse::<f64>().ok().filter(|x| (0.0..=1e6).contains(x));
    parsed.ok_or_else(|| format!("'{text}' is no factor from 0 to 1000000"))
}

/// `allreduce=ring`
pub(super) fn algorithm(text: &str) -> Result<Algorithm, String> {
    let (operation, pattern) = text
        .split_once('=')
        .ok_or_else(|| format!("'{text}' is no operation with its pattern, as allreduce=ring"))?;
    let base = BASES.iter().find(|(base, _)| *base == operation);
    let base = base.ok_or_else(|| format!("no operation '{operation}': {}", names_of(BASES, |b| b.0)))?;
    let info = find(pattern);
    let info = info.ok_or_else(|| format!("no pattern '{pattern}': {}", names_of(PATTERNS, |p| p.name)))?;
    Ok((base.0, info))
}

/// A run with a trace, and its tables.
pub(super) fn traced(run: &Path) -> Result<(Record, Vec<Table>), Failure> {
    let (record, path) = report::located(run)?;
    if record.raw.iter().any(|r| r.table == EVENTS) {
        let tables = report::tables(&record, &path)?;
        return Ok((record, tables));
    }
    let help = if record.metric("mpi.calls", &[("operation", "all")]).is_some() {
        "the run has too many calls for its table: machmeter trace --raw all keeps them"
    } else {
        "machmeter trace -- mpirun ... records one"
    };
    Err(Failure::usage(format!("{}: no trace of an MPI program", run.display())).help(help))
}

/// What a machine's calls cost.
pub(super) struct Costs {
    /// The record of the link, and its name.
    pub(super) name: String,
    pub(super) record: Record,
    pub(super) link: OfLink,
    pub(super) sheet: Sheet,
}

pub(super) fn costs(asked: &Asked) -> Result<Costs, Failure> {
    let on = asked.on.as_ref().ok_or_else(|| {
        Failure::usage("no costs to predict with")
            .help("--on RECORD, a run of machmeter mpi or machmeter net")
    })?;
    let names: Vec<&PathBuf> = [on].into_iter().chain(&asked.with).collect();
    let records = report::records(&names)?;
    let of = |record: &Record| match &asked.link {
        Some(wanted) => of_record(record, Some(wanted), Dialect::Machmeter),
        None => of_mpi(record).map_or_else(|| of_record(record, None, Dialect::Machmeter), Ok),
    };
    let wrong = |e: String| {
        Failure::usage(format!("--on {}: {e}", on.display()))
            .help("machmeter mpi measures messages of MPI and all its collectives: --parts costs,loggps")
    };
    let has_link = records.iter().position(|record| of(record).is_ok()).unwrap_or(0);
    let link = of(&records[has_link]).map_err(wrong)?;
    let name = names[has_link].display().to_string();
    Ok(Costs { sheet: Sheet::of(&records), record: records[has_link].clone(), link, name })
}

/// Messages of a program of MPI cost what they cost there: of receives posted or unexpected the link of which less is assumed.
fn of_mpi(record: &Record) -> Option<OfLink> {
    let links =
        ["mpi posted", "mpi unexpected"].map(|name| of_record(record, Some(name), Dialect::Machmeter));
    links.into_iter().flatten().min_by_key(|link| link.assumptions.len())
}

/// What becomes of the traced program.
pub(super) fn options(asked: &Asked, traced_ranks: u32) -> Result<Options, Failure> {
    let ranks = asked.ranks.unwrap_or(traced_ranks);
    if traced_ranks == 0 || !ranks.is_multiple_of(traced_ranks) {
        let text = format!("--ranks {ranks} is no multiple of the {traced_ranks} ranks that were traced");
        let help = format!("{}, {}, ...", traced_ranks.saturating_mul(2), traced_ranks.saturating_mul(4));
        return Err(Failure::usage(text).help(help));
    }
    let Asked { cpu_scale, bytes_scale, .. } = *asked;
    let (copies, algorithms) = (ranks / traced_ranks, asked.algorithm.iter().copied().collect());
    Ok(Options { cpu_scale, bytes_scale, copies, algorithms, others: None })
}

/// The largest message whose time was measured, bytes.
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

/// How it was made that the figures do not say.
pub(super) fn statements(replay: &Replay, options: &Options, traced_ranks: u32) -> Vec<String> {
    let (ranks, copies, rebuilt) = (replay.ranks(), options.copies, replay.rebuilt);
    let repeated = (copies > 1).then(|| {
        format!(
            "{ranks} ranks: messages of {traced_ranks} ranks {copies} times, {rebuilt} collectives of all rebuilt for more ranks"
        )
    });
    let algorithms = options.algorithms.iter();
    let algorithms = algorithms.map(|(of, info)| format!("{of} as messages of the pattern {}", info.name));
    repeated.into_iter().chain(algorithms).collect()
}
