//! `machmeter man [DIR]`: writes the manual pages, one for the program and one for each verb.

use std::fs;
use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use clap_mangen::Man;

use crate::{Exit, Failure, Globals, Registries, Result, command_line, output};

/// Write the manual pages to a directory
///
/// Writes machmeter.1 and a page for each verb (machmeter-noise.1) to DIR. Without DIR, prints the main page:
/// machmeter man | man -l -
#[derive(Args)]
pub(super) struct Asked {
    /// Directory for all pages; created if it does not exist
    #[arg(value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let command = command_line(registries);
    if let Some(dir) = &asked.dir {
        let wrong = |e| Failure::usage(format!("{}: {e}", dir.display()));
        fs::create_dir_all(dir).map_err(wrong)?;
        clap_mangen::generate_to(command, dir).map_err(wrong)?;
        return Ok(Exit::Fine);
    }
    let mut page = Vec::new();
    Man::new(command).render(&mut page).map_err(Failure::cannot)?;
    output::write(&page).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}
