//! `machmeter compare A B`: what changed between two runs, and what could have been seen.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, builder::PossibleValuesParser, value_parser};
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

fn define() -> Command {
    Command::new(ENTRY.name)
        .about("What changed between two runs, and what could have been seen")
        .arg(run_arg("a", "A", "First run: last~1, a tag, a record or a report"))
        .arg(run_arg("b", "B", "Second run"))
        .arg(
            Arg::new("min-effect")
                .long("min-effect")
                .value_name("SHARE")
                .default_value("2%")
                .value_parser(share)
                .help("Smallest change worth a verdict"),
        )
        .arg(Arg::new("metric").long("metric").value_name("GLOB").help("Only metrics that match"))
        .arg(
            Arg::new("fail-on")
                .long("fail-on")
                .value_name("WHAT")
                .default_value("worse")
                .value_parser(PossibleValuesParser::new(["worse", "any", "none"]))
                .help("What makes exit code 1"),
        )
        .arg(
            Arg::new("history")
                .long("no-history")
                .action(ArgAction::SetFalse)
                .help("Do not learn the run-to-run spread from earlier runs"),
        )
}

fn run_arg(id: &'static str, name: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(name).required(true).value_parser(value_parser!(PathBuf)).help(help)
}

fn share(text: &str) -> Result<f64, String> {
    let (number, scale) = text.strip_suffix('%').map_or((text, 1.0), |t| (t, 0.01));
    match number.trim().parse::<f64>() {
        Ok(v) if (0.0..=10.0).contains(&(v * scale)) => Ok(v * scale),
        _ => Err(format!("'{text}' is not a share such as 2% or 0.02")),
    }
}

fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let side = |id: &str| -> Result<Record, Failure> {
        let name = matches.get_one::<PathBuf>(id).cloned().unwrap_or_default();
        report::load(registries, &[name], &SideFacts::default())
    };
    let (a, b) = (side("a")?, side("b")?);
    let earlier = if matches.get_flag("history") { earlier(&a) } else { Vec::new() };
    let earlier: Vec<&Record> = earlier.iter().collect();
    let options = Options {
        min_effect: matches.get_one::<f64>("min-effect").copied().unwrap_or(0.02),
        metric_glob: matches.get_one::<String>("metric").cloned(),
        history: &earlier,
        ..Options::default()
    };
    let comparison = compare(&a, &b, &options);
    let keys = comparison.rows.len() + comparison.only_a.len() + comparison.only_b.len();
    if let Some(glob) = options.metric_glob.filter(|_| keys == 0) {
        return Err(Failure::usage(format!("--metric '{glob}': no metric of these runs matches")));
    }
    show(&comparison, globals)?;
    let fail_on = match matches.get_one::<String>("fail-on").map(String::as_str) {
        Some("any") => FailOn::Any,
        Some("none") => FailOn::None,
        _ => FailOn::Worse,
    };
    Ok(match exit_code(&comparison, fail_on) {
        1 => Exit::Finding,
        3 => Exit::Inconclusive,
        _ => Exit::Fine,
    })
}

fn show(comparison: &Comparison, globals: &Globals) -> Result<(), Failure> {
    let json = || serde_json::to_string_pretty(comparison).map_err(Failure::cannot);
    let put = |target: &PathBuf, text: &str| output::put(target, text).map_err(Failure::cannot);
    if let Some(t) = &globals.json {
        put(t, &json()?)?;
    }
    if let Some(t) = &globals.csv {
        put(t, &csv(comparison))?;
    }
    if let Some(t) = &globals.md {
        put(t, &markdown(comparison))?;
    }
    if !globals.stdout_is_taken() {
        put(&PathBuf::from("-"), &text(comparison, view::style(globals).width))?;
    }
    Ok(())
}

/// Earlier runs in the history, for the spread between runs.
fn earlier(a: &Record) -> Vec<Record> {
    state::history().map_or_else(|_| Vec::new(), |h| past::like(&h, a, MAX_HISTORY, usize::MAX))
}
