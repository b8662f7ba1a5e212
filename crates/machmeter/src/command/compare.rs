//! `machmeter compare A B`: what changed between two runs, and what could have been seen.

use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command, FromArgMatches};
use machmeter_compare::{Comparison, FailOn, Options, compare, csv, exit_code, markdown, text};
use machmeter_data::Record;
use machmeter_store::foreign::SideFacts;

use super::{CommandEntry, report};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::{output, past, state, view};

pub(crate) const ENTRY: CommandEntry =
    CommandEntry { name: "compare", define, takes: &["json", "csv", "md"], run };

/// Earlier runs of the same kind of machine that are looked at for the run-to-run spread at most.
const MAX_HISTORY: usize = 30;

/// What changed between two runs, and what could have been seen
#[derive(Args)]
struct Asked {
    /// First run: last~1, a tag, a record or a report
    #[arg(value_name = "A")]
    a: PathBuf,
    /// Second run
    #[arg(value_name = "B")]
    b: PathBuf,
    /// Smallest change worth a verdict
    #[arg(long, value_name = "SHARE", default_value = "2%", value_parser = share)]
    min_effect: f64,
    /// Only metrics that match
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// What makes exit code 1
    #[arg(long, value_name = "WHAT", default_value = "worse", value_parser = ["worse", "any", "none"])]
    fail_on: String,
    /// Do not learn the run-to-run spread from earlier runs
    #[arg(long)]
    no_history: bool,
}

fn define() -> Command {
    Asked::augment_args(Command::new(ENTRY.name))
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |t| (t, 0.01));
    match number.trim().parse::<f64>() {
        Ok(v) if (0.0..=10.0).contains(&(v * scale)) => Ok(v * scale),
        _ => Err(format!("'{text}' is not a share such as 2% or 0.02")),
    }
}

fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let side = |name| report::load(registries, &[name], &SideFacts::default());
    let (a, b) = (side(asked.a)?, side(asked.b)?);
    let earlier = if asked.no_history { Vec::new() } else { earlier(&a) };
    let options = Options {
        min_effect: asked.min_effect,
        metric_glob: asked.metric,
        history: &earlier.iter().collect::<Vec<_>>(),
        ..Options::default()
    };
    let comparison = compare(&a, &b, &options);
    let keys = comparison.rows.len() + comparison.only_a.len() + comparison.only_b.len();
    if let Some(glob) = options.metric_glob.filter(|_| keys == 0) {
        return Err(Failure::usage(format!("--metric '{glob}': no metric of these runs matches")));
    }
    show(&comparison, globals)?;
    let fail_on = match asked.fail_on.as_str() {
        "any" => FailOn::Any,
        "none" => FailOn::None,
        _ => FailOn::Worse,
    };
    Ok(match exit_code(&comparison, fail_on) {
        1 => Exit::Finding,
        3 => Exit::Inconclusive,
        _ => Exit::Fine,
    })
}

fn show(comparison: &Comparison, globals: &Globals) -> Result<(), Failure> {
    let put = |target: &Path, text: &str| output::put(target, text).map_err(Failure::cannot);
    if let Some(t) = &globals.json {
        put(t, &serde_json::to_string_pretty(comparison).map_err(Failure::cannot)?)?;
    }
    if let Some(t) = &globals.csv {
        put(t, &csv(comparison))?;
    }
    if let Some(t) = &globals.md {
        put(t, &markdown(comparison))?;
    }
    if !globals.stdout_is_taken() {
        put(Path::new("-"), &text(comparison, view::style(globals).width))?;
    }
    Ok(())
}

/// Earlier runs in the history, for the spread between runs.
fn earlier(a: &Record) -> Vec<Record> {
    state::history().map_or_else(|_| Vec::new(), |h| past::like(&h, a, MAX_HISTORY, usize::MAX))
}
