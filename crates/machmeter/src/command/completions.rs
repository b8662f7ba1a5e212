//! `machmeter completions SHELL`: a script by which a shell completes commands and options, on stdout.

use clap::{ArgMatches, Args, FromArgMatches};
use clap_complete::Shell;

use crate::{Exit, Failure, Globals, Registries, Result, command_line, output};

/// Completions for a shell, on stdout
///
/// Prints a script by which the shell completes verbs, options and their values. bash: write it to
/// ~/.local/share/bash-completion/completions/machmeter; fish: ~/.config/fish/completions/machmeter.fish; zsh: a file named _machmeter in
/// a folder of fpath.
#[derive(Args)]
pub(super) struct Asked {
    /// The shell
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
