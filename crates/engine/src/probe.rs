//! The probe: measuring takes samples on the host; analysis is pure, so saved samples can be analyzed again.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::code::Code;
use machmeter_data::record::{Finding, Summary, Warning};
use machmeter_data::summary::RowInfo;
use machmeter_data::{Dataset, Metric, MetricInfo, Table};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::host::Host;
use crate::level::Level;
use crate::part::Pooled;
use crate::selftest::SelfTest;

#[derive(Debug)]
pub struct Info {
    /// Verb on the command line.
    pub name: &'static str,
    pub question: &'static str,
    /// A paragraph: method and sources of error.
    pub method: &'static str,
    pub references: &'static [&'static str],
    /// Metrics it reports, part by part.
    pub metrics: &'static [&'static [MetricInfo]],
    /// Its rows of the page, at most three.
    pub rows: &'static [RowInfo],
    /// Whether a figure stands for the machine and not for what happened meanwhile: then earlier runs tell its spread.
    pub lasting: fn(&Metric) -> bool,
    /// Warnings it can give, part by part.
    pub codes: &'static [&'static [Code]],
    pub example_job: &'static str,
}

impl Info {
    pub fn metrics(&self) -> impl Iterator<Item = &'static MetricInfo> + use<> {
        self.metrics.iter().copied().flatten()
    }

    pub fn codes(&self) -> impl Iterator<Item = &'static Code> + use<> {
        self.codes.iter().copied().flatten()
    }
}

/// A probe's part of the one-page characterization.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Parts run and stand on the page in the order of their places.
    pub place: u8,
    /// Parameters that differ from the defaults, as a JSON object.
    pub parameters: &'static str,
    /// Time below which these give no figure, ns; 0 where any time gives some.
    pub least_ns: u64,
    /// Its share of the time beside those of others: [`Page::EQUAL`], or less where less suffices; 0 is not on the page.
    pub weight: u64,
}

impl Page {
    /// Weight of a probe that gets as much as others: 12 s of a minute beside four like it.
    pub const EQUAL: u64 = 12;

    /// Of a probe with default parameters and an equal share of the time.
    pub const fn at(place: u8) -> Self {
        Self { place, parameters: "{}", least_ns: 0, weight: Self::EQUAL }
    }
}

/// Time for the first of parts of (least, weight): its share of `left_ns`, at least its least, less for others' needs, ns.
pub fn page_share_ns(left_ns: u64, parts: &[(u64, u64)]) -> u64 {
    let all = parts.iter().map(|p| p.1).sum::<u64>().max(1);
    let share_ns = |weight: u64| left_ns / all * weight + left_ns % all * weight / all;
    let Some((own_ns, weight)) = parts.first().copied() else { return left_ns };
    if own_ns >= share_ns(weight) {
        return own_ns.min(left_ns);
    }
    let missing_ns: u64 = parts.iter().map(|(least, w)| least.saturating_sub(share_ns(*w))).sum();
    let givers: u64 = parts.iter().filter(|(least, w)| *least < share_ns(*w)).map(|p| p.1).sum();
    share_ns(weight).saturating_sub(missing_ns * weight / givers.max(1)).max(own_ns)
}

/// Why a probe could not do its work.
#[derive(Debug, Error)]
pub enum ProbeError {
    /// The request itself is wrong.
    #[error("{0}")]
    Usage(String),
    /// The system would not let it.
    #[error("{0}")]
    Cannot(String),
    /// The request is possible, and was not to be carried out: see [`Host::begin`].
    #[error("a dry run measures nothing")]
    DryRun,
}

/// What came out of the analysis of one probe's samples.
#[derive(Debug, Clone, Default)]
pub struct Analysis {
    pub metrics: Vec<Metric>,
    pub datasets: Vec<Dataset>,
    pub findings: Vec<Finding>,
    pub warnings: Vec<Warning>,
    pub summary: Summary,
    /// Figures worth remembering as the best ever seen on this kind of machine: key and ns.
    pub remember: Vec<(String, f64)>,
}

/// Samples of a probe together with how they were taken.
pub struct Measured<S> {
    pub samples: S,
    /// Policy the measuring threads really had.
    pub policy: String,
    /// What was changed on the machine meanwhile, and undone.
    pub side_effects: Vec<String>,
    /// False when it ended before its plan.
    pub complete: bool,
    pub outputs: Vec<Output>,
}

/// A file that parameters ask for, with its bytes.
pub struct Output {
    pub path: PathBuf,
    /// Or why there are none, in one line.
    pub content: Result<Vec<u8>, String>,
}

/// What parameters ask for beside measuring: a program to run, or a file to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked<T> {
    /// Probe and key in a job file: `ops.exec_target`, `flow.out`.
    pub key: String,
    pub what: T,
}

/// A program, by its command line.
pub type Command = Asked<String>;
pub type Destination = Asked<PathBuf>;

impl<T: AsRef<OsStr>> std::fmt::Display for Asked<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Quoted and escaped: it may come from a file of somebody else.
        write!(f, "{:?} ({})", self.what.as_ref().to_string_lossy(), self.key)
    }
}

/// Where parameters come from.
#[derive(Debug)]
pub enum Parameters<'a> {
    /// The command line.
    Given(&'a ArgMatches),
    /// A table of a job file, or an empty object for the defaults.
    Job(&'a serde_json::Value),
}

pub trait Probe {
    const INFO: Info;
    /// Its parameters: flags, job-file keys, schema and record in one struct.
    type Params: Args + Serialize + DeserializeOwned + JsonSchema;
    type Samples;

    /// Wall time at `level` when no time is given, ns.
    fn default_ns(_params: &Self::Params, level: Level) -> Result<u64, ProbeError> {
        Ok(level.probe_seconds() * 1_000_000_000)
    }

    /// Keys of the parameters that have a program run, each with what is run. A job file with any needs `--allow-commands`.
    fn commands(_params: &Self::Params) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// Keys of the parameters that have a file written, each with its path. The caller writes what [`Measured::outputs`] holds.
    fn destinations(_params: &Self::Params) -> Vec<(&'static str, &Path)> {
        Vec::new()
    }

    /// As one of several processes of a launcher: `None` where it holds the session, else whether it took part throughout.
    fn attend(_params: &Self::Params) -> Option<bool> {
        None
    }

    /// Ends the others where the session failed before it led them.
    fn give_up(_params: &Self::Params) {}

    const PAGE: Page = Page::at(100);

    /// With parameters from a JSON object, to be measured in one pool with others; `None` for a probe that needs the machine to itself.
    const POOLED: Option<Pool> = None;

    const SELFTEST: SelfTest;

    /// Takes samples on the host within `host.budget`. Where it refuses, nothing has been changed.
    fn measure(host: &Host<'_>, params: &Self::Params) -> Result<Measured<Self::Samples>, ProbeError>;

    /// Computes everything that can be said from samples. Pure.
    fn analyze(params: &Self::Params, samples: &Self::Samples, seed: u64) -> Analysis;

    fn tables(samples: &Self::Samples) -> Vec<Table>;

    /// Samples from stored or imported tables.
    fn from_tables(tables: &[Table]) -> Result<Self::Samples, ProbeError>;
}

/// Makes a probe with parameters from a JSON object ready for a pool.
pub type Pool = fn(&serde_json::Value) -> Result<Box<dyn Pooled>, ProbeError>;

/// What a type-erased run of a probe gives.
pub struct Outcome {
    pub analysis: Analysis,
    pub tables: Vec<Table>,
    pub parameters: serde_json::Value,
    pub policy: String,
    pub side_effects: Vec<String>,
    pub complete: bool,
    pub outputs: Vec<Output>,
}

/// A registered probe: the same functions for every probe, without its types.
#[derive(Debug)]
pub struct Entry {
    pub info: &'static Info,
    /// Adds its flags to a command.
    pub augment: fn(clap::Command) -> clap::Command,
    /// Wall time when none is given, ns.
    pub default_ns: fn(&Parameters<'_>, Level) -> Result<u64, ProbeError>,
    pub page: Page,
    pub attend: fn(&Parameters<'_>) -> Result<Option<bool>, ProbeError>,
    pub give_up: fn(&Parameters<'_>) -> Result<(), ProbeError>,
    pub commands: fn(&Parameters<'_>) -> Result<Vec<Command>, ProbeError>,
    pub destinations: fn(&Parameters<'_>) -> Result<Vec<Destination>, ProbeError>,
    /// Measures and analyzes.
    pub run: fn(&Host<'_>, &Parameters<'_>) -> Result<Outcome, ProbeError>,
    pub pooled: Option<Pool>,
    /// Analyses stored or imported tables with default parameters.
    pub reanalyze: fn(&[Table], u64) -> Result<Analysis, ProbeError>,
    pub selftest: SelfTest,
    pub schema: fn() -> serde_json::Value,
}

impl Entry {
    pub const fn of<P: Probe>() -> Self
    where
        P::Params: 'static,
    {
        Self {
            info: &P::INFO,
            augment: |c| P::Params::augment_args(c),
            default_ns: |given, level| P::default_ns(&given.of::<P>()?, level),
            page: P::PAGE,
            attend: |given| Ok(P::attend(&given.of::<P>()?)),
            give_up: |given| given.of::<P>().map(|params| P::give_up(&params)),
            commands: |given| Ok(asked::<P, str>(P::commands(&given.of::<P>()?))),
            destinations: |given| Ok(asked::<P, Path>(P::destinations(&given.of::<P>()?))),
            run: execute::<P>,
            pooled: P::POOLED,
            reanalyze: |tables, seed| {
                let params = parameters::<P>(&serde_json::Value::Object(serde_json::Map::new()))?;
                Ok(P::analyze(&params, &P::from_tables(tables)?, seed))
            },
            selftest: P::SELFTEST,
            schema: || schemars::schema_for!(P::Params).to_value(),
        }
    }
}

impl Parameters<'_> {
    fn of<P: Probe>(&self) -> Result<P::Params, ProbeError> {
        match self {
            Self::Given(matches) => {
                P::Params::from_arg_matches(matches).map_err(|e| ProbeError::Usage(e.to_string()))
            }
            Self::Job(value) => parameters::<P>(value),
        }
    }
}

/// Parameters from a JSON object; keys that are not given take the defaults of the command line.
pub fn parameters<P: Probe>(value: &serde_json::Value) -> Result<P::Params, ProbeError> {
    let command = P::Params::augment_args(clap::Command::new(P::INFO.name).no_binary_name(true));
    let matches = command.try_get_matches_from(std::iter::empty::<String>());
    let defaults = matches.and_then(|m| P::Params::from_arg_matches(&m));
    let defaults = defaults.map_err(|e| ProbeError::Usage(e.to_string()))?;
    let mut merged = serde_json::to_value(&defaults).map_err(|e| ProbeError::Usage(e.to_string()))?;
    if let (Some(into), Some(from)) = (merged.as_object_mut(), value.as_object()) {
        for (k, v) in from {
            into.insert(k.clone(), v.clone());
        }
    }
    serde_json::from_value(merged).map_err(|e| ProbeError::Usage(format!("{}: {e}", P::INFO.name)))
}

fn asked<P: Probe, T: ToOwned + ?Sized>(all: Vec<(&'static str, &T)>) -> Vec<Asked<T::Owned>> {
    let whole = |(key, what): (&str, &T)| {
        let key = format!("{}.{key}", P::INFO.name);
        Asked { key, what: what.to_owned() }
    };
    all.into_iter().map(whole).collect()
}

fn execute<P: Probe>(host: &Host<'_>, given: &Parameters<'_>) -> Result<Outcome, ProbeError> {
    let params = given.of::<P>()?;
    outcome::<P>(&params, P::measure(host, &params)?, host.seed)
}

/// Analyzes what was measured.
pub(crate) fn outcome<P: Probe>(
    params: &P::Params,
    measured: Measured<P::Samples>,
    seed: u64,
) -> Result<Outcome, ProbeError> {
    Ok(Outcome {
        analysis: P::analyze(params, &measured.samples, seed),
        tables: P::tables(&measured.samples),
        parameters: serde_json::to_value(params).map_err(|e| ProbeError::Usage(e.to_string()))?,
        policy: measured.policy,
        side_effects: measured.side_effects,
        complete: measured.complete,
        outputs: measured.outputs,
    })
}

#[cfg(test)]
mod tests {
    use super::page_share_ns;

    #[test]
    fn parts_that_need_more_than_an_equal_share_get_it_from_the_others() {
        let share = |left_ns, least: &[u64]| {
            page_share_ns(left_ns, &least.iter().map(|l| (*l, 12)).collect::<Vec<_>>())
        };
        assert_eq!(share(10, &[0, 0]), 5);
        assert_eq!(share(10, &[0, 3, 0, 0, 0]), 2, "one less for each giver is less than a unit");
        assert_eq!(share(1_000, &[0, 300, 0, 0, 0]), 175);
        assert_eq!(share(825, &[300, 0, 0, 0]), 300);
        assert_eq!(share(525, &[0, 0, 0]), 175);
        assert_eq!(share(100, &[300, 0]), 100, "no more than there is");
        assert_eq!(share(100, &[]), 100);
    }

    #[test]
    fn who_needs_less_weighs_less() {
        let weights = [(0, 12), (0, 12), (0, 12), (0, 12), (0, 12), (0, 5)];
        assert_eq!(page_share_ns(65_000, &weights), 12_000);
        assert_eq!(page_share_ns(65_000 - 5 * 12_000, &weights[5..]), 5_000);
        assert_eq!(page_share_ns(65, &[(0, 5), (36, 60)]), 5);
        assert_eq!(page_share_ns(65, &[(0, 5), (62, 60)]), 3, "what others miss is taken from it");
    }
}
