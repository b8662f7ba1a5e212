//! `machmeter doctor`.
use clap::{ArgMatches, Command};
use machmeter_data::{Check, Facts};
use machmeter_sys::clock::Qualification;
use machmeter_sys::topology::CpuSet;

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "doctor", define, run };

fn define() -> Command {
    Command::new(ENTRY.name).about("Is this machine fit to be measured? Changes nothing")
}

fn run(_registries: &Registries, _globals: &Globals, _matches: &ArgMatches) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}

/// checks
pub(crate) fn checks(_b: &Facts, _a: &Facts, _c: &Qualification, _s: &CpuSet, _l: Option<()>) -> Vec<Check> {
    Vec::new()
}
