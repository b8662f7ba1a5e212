//! The command tree.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command};

use crate::command;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::{Registries, output};

pub(crate) enum Parsed {
    Run(ArgMatches),
    /// Help or version was asked for and printed.
    Said(Exit),
    Wrong(Failure),
}

const ABOUT: &str = "Measures what this machine's primitive operations cost, and who disturbs them";
const AFTER: &str = "Without a command: a one-minute characterization of this machine, as a page here and as JSON and HTML \
                     in this directory.\nExit codes: 0 done, 1 finding, 2 usage, 3 inconclusive, 4 could not measure, \
                     5 partial, 130/143 interrupted (result saved).";

/// The whole command.
pub(crate) fn command(registries: &Registries) -> Command {
    let mut root = Globals::augment_args(Command::new("machmeter"))
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .after_help(AFTER)
        .disable_help_subcommand(false)
        .args_conflicts_with_subcommands(false)
        .max_term_width(100);
    for probe in registries.probes {
        let info = probe.info;
        let method =
            format!("{}\n\n{}\n\nReferences:\n{}", info.question, info.method, info.references.join("\n"));
        // The parameters' own description would take the place of the question, so the question comes last.
        let sub = (probe.augment)(Command::new(info.name)).about(info.question).long_about(method);
        root = root.subcommand(sub);
    }
    for c in command::COMMANDS {
        root = root.subcommand((c.define)());
    }
    root
}

/// Understands the arguments. A program called by another benchmark's name behaves like it.
pub(crate) fn parse(registries: &Registries, arguments: &[OsString]) -> Parsed {
    let arguments = command::compat_arguments(arguments).unwrap_or_else(|| arguments.to_vec());
    match command(registries).try_get_matches_from(&arguments) {
        Ok(matches) => Parsed::Run(matches),
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = output::print(&e.to_string());
            Parsed::Said(Exit::Fine)
        }
        Err(e) => Parsed::Wrong(failure(&e)),
    }
}

/// Clap's message in our form: what is wrong in one line, the tips and usage as help.
fn failure(e: &clap::Error) -> Failure {
    let text = e.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|l| !l.is_empty());
    let mut what = String::new();
    let mut help = Vec::new();
    for l in lines.by_ref() {
        if let Some(w) = l.strip_prefix("error: ") {
            w.clone_into(&mut what);
        } else if l.starts_with("tip:") || l.starts_with('[') || l.starts_with("Usage:") {
            help.push(l.trim_start_matches("tip: ").to_owned());
        } else if !l.starts_with("For more information") && help.is_empty() {
            what = format!("{what} {l}");
        }
    }
    let failure = Failure::usage(what);
    if help.is_empty() { failure.help("machmeter --help") } else { failure.help(help.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_sound_and_small() {
        let tree = command(&Registries::default());
        tree.clone().debug_assert();
        assert!(tree.get_subcommands().count() <= 20, "at most 20 commands");
    }

    #[test]
    fn short_help_fits_a_screen() {
        let text = command(&Registries::default()).render_help().to_string();
        assert!(text.lines().count() <= 48, "{} lines:\n{text}", text.lines().count());
    }

    #[test]
    fn a_wrong_option_is_one_line_and_a_tip() {
        let arguments: Vec<OsString> = ["machmeter", "noise", "--quantumm", "3"].map(OsString::from).to_vec();
        let Parsed::Wrong(f) = parse(&Registries::default(), &arguments) else { panic!("accepted") };
        assert_eq!(f.exit, Exit::Usage);
        assert!(f.what.contains("--quantumm") && !f.what.contains('\n'), "{f:?}");
        assert!(f.help.is_some_and(|h| h.contains("--quantum")));
    }
}
