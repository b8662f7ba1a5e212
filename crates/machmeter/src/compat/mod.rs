//! compat
use std::ffi::OsString;

use clap::{ArgMatches, Command};

use crate::Registries;
use crate::command::CommandEntry;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "compat", define, run };

fn define() -> Command {
    Command::new(ENTRY.name).about("Behave like another benchmark: ftq, fwq, selfish")
}

fn run(_registries: &Registries, _globals: &Globals, _matches: &ArgMatches) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}

/// x
pub(crate) fn arguments(_arguments: &[OsString]) -> Option<Vec<OsString>> {
    None
}
