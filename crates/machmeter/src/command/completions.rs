//! `machmeter completions SHELL`: prints a script that completes commands and options in a shell.

use clap::{ArgMatches, Args, FromArgMatches};
use clap_complete::Shell;

use crate::{Exit, Failure, Globals, Registries, Result, command_line, output};

/// Print completions for a shell
///
/// Prints a script that completes verbs, options and their values. bash: write it to
/// ~/.local/share/bash-completion/completions/machmeter; fish: ~/.config/fish/completions/machmeter.fish; zsh: a file named _machmeter in
/// a directory of fpath.
#[derive(Args)]
pub(super) struct Asked {
    /// Shell
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let mut script = Vec::new();
    clap_complete::generate(asked.shell, &mut command_line(registries), "machmeter", &mut script);
    output::write(&script).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}
