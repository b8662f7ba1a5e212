//! The commands that are not probes, one file each.

mod compare;
pub(crate) mod doctor;
mod explain;
mod export;
mod list;
mod measure;
mod reference;
mod report;
mod schema;
mod selftest;
mod serve;

use std::path::Path;

use clap::{ArgMatches, Command, FromArgMatches};
use machmeter_engine::Stored;

use crate::Registries;
use crate::compat;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

pub(crate) struct CommandEntry {
    pub(crate) name: &'static str,
    pub(crate) define: fn() -> Command,
    /// Ids of the options of [`Globals`] that act on it.
    pub(crate) takes: &'static [&'static str],
    pub(crate) run: fn(&Registries, &Globals, &ArgMatches) -> Result<Exit, Failure>,
}

/// All commands, sorted by name.
pub(crate) const COMMANDS: &[CommandEntry] = &[
    compare::ENTRY,
    compat::ENTRY,
    doctor::ENTRY,
    explain::ENTRY,
    export::ENTRY,
    list::ENTRY,
    reference::ENTRY,
    report::ENTRY,
    schema::ENTRY,
    selftest::ENTRY,
    serve::ENTRY,
];

pub(crate) fn run(registries: &Registries, matches: &ArgMatches) -> Result<Exit, Failure> {
    // Global options may stand before or after the command; clap has propagated them to the innermost one.
    let given = matches.subcommand().map_or(matches, |(_, sub)| sub);
    let mut globals = Globals::from_arg_matches(given).map_err(Failure::usage)?;
    globals.check()?;
    globals.quiet |= globals.dry_run;
    let Some((name, _)) = matches.subcommand() else { return measure::page(registries, &globals) };
    if let Some(probe) = registries.probes.iter().find(|p| p.info.name == name) {
        return measure::probe(registries, probe, &globals, given);
    }
    match COMMANDS.iter().find(|c| c.name == name) {
        Some(c) => (c.run)(registries, &globals, given),
        None => Err(Failure::usage(format!("no command '{name}'"))),
    }
}

/// A stored run with its raw samples, for a probe that builds on an earlier one.
pub(crate) fn open_stored(name: &str) -> Result<Stored, String> {
    let (record, path) = report::located(Path::new(name)).map_err(|f| f.what)?;
    let tables = report::tables(&record, &path).map_err(|f| f.what)?;
    Ok(Stored { record, tables })
}
