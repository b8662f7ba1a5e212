//! The commands that are not probes, one file each.

mod ab;
mod compare;
pub(crate) mod doctor;
mod explain;
mod export;
mod keep;
mod list;
mod measure;
mod predict;
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

use crate::Registries;
use crate::compat;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) struct CommandEntry {
    pub(crate) name: &'static str,
    /// The command of that name.
    pub(crate) define: fn(&'static str) -> Command,
    /// Ids of the options of [`Globals`] that act on it.
    pub(crate) takes: &'static [&'static str],
    pub(crate) run: fn(&Registries, &Globals, &ArgMatches) -> Result<Exit, Failure>,
}

/// Options that act on what is calculated.
const SIMULATED: &[&str] = &[
    "cpus", "output", "json", "csv", "md", "tag", "no_save", "dry_run", "quiet", "verbose", "color", "ascii",
];

/// A command whose options are those of a structure.
fn options_of<A: Args>(name: &'static str) -> Command {
    A::augment_args(Command::new(name))
}

/// All commands, sorted by name.
pub(crate) const COMMANDS: &[CommandEntry] = &[
    ab::ENTRY,
    compare::ENTRY,
    compat::ENTRY,
    doctor::ENTRY,
    explain::ENTRY,
    export::ENTRY,
    list::ENTRY,
    predict::ENTRY,
    reference::ENTRY,
    report::ENTRY,
    schema::ENTRY,
    selftest::ENTRY,
    serve::ENTRY,
    trace::ENTRY,
    simulate::ENTRY,
];

pub(crate) fn run(registries: &Registries, matches: &ArgMatches) -> Result<Exit, Failure> {
    // Global options may stand before or after the command; clap has propagated them to the innermost one.
    let given = matches.subcommand().map_or(matches, |(_, sub)| sub);
    let mut globals = Globals::from_arg_matches(given).map_err(Failure::usage)?;
    // An option of that name that a command has for itself says nothing of repetitions.
    let own = matches.subcommand().and_then(|(name, _)| COMMANDS.iter().find(|c| c.name == name));
    if own.is_some_and(|c| !c.takes.contains(&"runs")) {
        globals.runs = 1;
    }
    globals.check()?;
    globals.quiet |= globals.dry_run;
    machmeter_sys::abandoned::sweep_machine();
    let Some((name, _)) = matches.subcommand() else {
        return repeated(&globals, || measure::page(registries, &globals));
    };
    if let Some(probe) = registries.probes.iter().find(|p| p.info.name == name) {
        return repeated(&globals, || measure::probe(registries, probe, &globals, given));
    }
    match COMMANDS.iter().find(|c| c.name == name) {
        Some(c) => (c.run)(registries, &globals, given),
        None => Err(Failure::usage(format!("no command '{name}'"))),
    }
}

/// The runs of `-n`, to the end or a signal: the first exit code that is not fine.
fn repeated(globals: &Globals, run: impl Fn() -> Result<Exit, Failure>) -> Result<Exit, Failure> {
    let runs = if globals.dry_run { 1 } else { globals.runs };
    let mut first = Exit::Fine;
    for i in 1..=runs {
        if runs > 1 && !globals.quiet {
            output::say(&format!("run {i} of {runs}"));
        }
        let exit = run()?;
        if signals::stop_requested().is_some() {
            return Ok(exit);
        }
        first = if first == Exit::Fine { exit } else { first };
    }
    Ok(first)
}

/// A stored run with its raw samples, for a probe that builds on an earlier one.
pub(crate) fn open_stored(name: &str) -> Result<Stored, String> {
    let (record, tables) = report::with_tables(Path::new(name)).map_err(|f| f.what)?;
    Ok(Stored { record, tables })
}
