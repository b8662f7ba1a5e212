//! The commands that are not probes, one file each.

mod ab;
pub(crate) mod beside;
mod compare;
mod completions;
pub(crate) mod doctor;
mod explain;
mod export;
mod keep;
mod list;
mod man;
mod measure;
mod predict;
mod program;
mod reference;
mod report;
mod schema;
mod selftest;
mod serve;
mod simulate;
pub(crate) mod trace;
mod trend;

use std::path::Path;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use machmeter_engine::Stored;
use machmeter_sys::guard::signals;

use crate::{Exit, Failure, Globals, Registries, Result, compat};
pub(crate) use measure::attended;

pub(crate) struct CommandEntry {
    pub(crate) name: &'static str,
    /// Builds the command of that name.
    pub(crate) define: fn(&'static str) -> Command,
    takes: &'static str,
    run: Run,
}

type Run = fn(&Registries, &Globals, &ArgMatches) -> Result<Exit>;

/// `takes`: ids of the options in [`Globals`] that act on the command, separated by spaces.
const fn entry(
    name: &'static str,
    define: fn(&'static str) -> Command,
    takes: &'static str,
    run: Run,
) -> CommandEntry {
    CommandEntry { name, define, takes, run }
}

impl CommandEntry {
    /// Ids of the options in [`Globals`] that act on the command.
    pub(crate) fn takes(&self) -> impl Iterator<Item = &'static str> {
        self.takes.split_whitespace()
    }
}

/// Options that act on calculations.
const SIMULATED: &str = "cpus output json csv md tag no_save dry_run quiet verbose color ascii";
/// Options that act on traces.
const TRACED: &str = "output json csv md raw name tag no_save quiet verbose color ascii";

/// A command with the options of a structure.
fn options_of<A: Args>(name: &'static str) -> Command {
    A::augment_args(Command::new(name))
}

/// All commands, sorted by name.
pub(crate) const COMMANDS: &[CommandEntry] = &[
    entry("ab", options_of::<ab::Asked>, "time seed output json csv md verbose quiet", ab::run),
    entry("compare", options_of::<compare::Asked>, "output json csv md verbose", compare::run),
    entry("compat", compat::define, "", compat::run),
    entry("completions", options_of::<completions::Asked>, "", completions::run),
    entry("doctor", options_of::<doctor::Asked>, "json dry_run verbose color ascii", doctor::run),
    entry("explain", explain::define, "", explain::run),
    entry("export", options_of::<export::Asked>, "", export::run),
    entry("list", list::define, "json", list::run),
    entry("man", options_of::<man::Asked>, "", man::run),
    entry("predict", options_of::<predict::Asked>, SIMULATED, predict::run),
    entry("reference", reference::define, "", reference::run),
    entry("report", options_of::<report::Asked>, "output json csv md verbose color ascii", report::run),
    entry("schema", schema::define, "", schema::run),
    entry(
        "selftest",
        options_of::<selftest::Asked>,
        "time cpus output json tag seed dry_run quiet",
        selftest::run,
    ),
    entry("serve", options_of::<serve::Asked>, "cpus time quiet", serve::run),
    entry("trace", options_of::<trace::Asked>, TRACED, trace::run),
    entry("simulate", options_of::<simulate::Asked>, SIMULATED, simulate::run),
];

pub(crate) fn run(registries: &Registries, matches: &ArgMatches) -> Result<Exit> {
    // Global options may precede or follow the command; clap has copied them to the innermost one.
    let verb = matches.subcommand();
    let given = verb.map_or(matches, |(_, sub)| sub);
    let mut globals = Globals::from_arg_matches(given).map_err(Failure::usage)?;
    // A command may have its own option of this name, which does not mean repetitions.
    let own = verb.and_then(|(name, _)| COMMANDS.iter().find(|c| c.name == name));
    if own.is_some() {
        globals.runs = 1;
    }
    globals.check()?;
    globals.quiet |= globals.dry_run;
    machmeter_sys::abandoned::sweep_machine();
    let Some((name, _)) = verb else {
        return repeated(&globals, || measure::page(registries, &globals));
    };
    if let Some(probe) = registries.probes.iter().find(|p| p.info.name == name) {
        return match if name == beside::VERB { beside::asked(given)? } else { None } {
            Some(asked) => beside::run(registries, &globals, &asked),
            None => repeated(&globals, || measure::probe(registries, probe, &globals, given)),
        };
    }
    let own = own.ok_or_else(|| Failure::usage(format!("no command '{name}'")))?;
    (own.run)(registries, &globals, given)
}

/// Makes the runs of `-n`, until the end or a signal. Returns the first exit code that is not 0.
fn repeated(globals: &Globals, run: impl Fn() -> Result<Exit>) -> Result<Exit> {
    let runs = if globals.dry_run { 1 } else { globals.runs };
    let mut first = Exit::Fine;
    for i in 1..=runs {
        if runs > 1 {
            globals.say(&format!("run {i} of {runs}"));
        }
        let exit = run()?;
        if signals::stop_requested().is_some() {
            return Ok(exit);
        }
        first = if first == Exit::Fine { exit } else { first };
    }
    Ok(first)
}

/// Opens a stored run with its raw samples, for a probe that uses an earlier run.
pub(crate) fn open_stored(name: &str) -> Result<Stored, String> {
    let (record, tables) = report::with_tables(Path::new(name)).map_err(|f| f.what)?;
    Ok(Stored { record, tables })
}
