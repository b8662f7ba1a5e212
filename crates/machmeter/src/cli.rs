//! Builds the command tree from the registries, and parses command lines.
//!
//! Each verb takes only the options that act on it. The parser knows all options, so that it can name an option that does not act on the given verb.

use std::ffi::OsString;
use std::sync::LazyLock;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgMatches, Args, Command};

use crate::command::{COMMANDS, beside};
use crate::globals::options;
use crate::{Failure, Registries, Result, compat, output};

const ABOUT: &str = "Measures the cost of this machine's operations, and what disturbs them";
const AFTER: &str = "Without a command: one minute, a page, JSON and HTML. Exit codes: see --help.";
const AFTER_LONG: &str = "Without a command: one minute; prints a page, writes JSON and HTML here.\n\
                          Exit codes: 0 success, 1 finding, 2 usage, 3 inconclusive, 4 could not measure,\n\
                          5 partial, 130/143/129/152 interrupted (result saved).\n\
                          For packagers: machmeter completions bash, machmeter man DIR.";

/// The template of clap without the empty line before the usage, so that `-h` fits on one screen.
const TEMPLATE: &str = "{before-help}{about-with-newline}{usage-heading} {usage}\n\n{all-args}{after-help}";

/// Verbs that only `--help` lists, at its end. They are called once, and `-h` is one screen.
const FOR_PACKAGERS: [&str; 2] = ["completions", "man"];

/// Options of the bare command only.
const BARE_ONLY: [&str; 2] = ["job", "allow_commands"];

/// The complete command: each verb with the options that act on it.
pub(crate) fn command(registries: &Registries) -> Command {
    let mut root = Command::new("machmeter")
        .version(VERSION.as_str())
        .about(ABOUT)
        .after_help(AFTER)
        .after_long_help(AFTER_LONG)
        .help_template(TEMPLATE)
        .max_term_width(100)
        .args(options().into_iter().map(|o| o.help_heading(None::<&str>)))
        .disable_version_flag(true)
        .arg(version());
    for probe in registries.probes {
        let info = probe.info;
        let method =
            format!("{}\n\n{}\n\nReferences:\n{}", info.question, info.method, info.references.join("\n"));
        // `long_about` would replace the question by the description of the parameters, so the question is set last.
        let sub = (probe.augment)(Command::new(info.name)).about(info.question).long_about(method);
        let sub = if info.name == beside::VERB { beside::Asked::augment_args(sub) } else { sub };
        let letters: Vec<char> = sub.get_arguments().filter_map(Arg::get_short).collect();
        // If a probe uses the letter itself (ranks in `mpi -n 2`), the global option has no letter there.
        let own =
            |o: Arg| if o.get_short().is_some_and(|s| letters.contains(&s)) { o.short(None) } else { o };
        root =
            root.subcommand(sub.args(options().into_iter().filter(|o| !BARE_ONLY.contains(&id(o))).map(own)));
    }
    for c in COMMANDS {
        let taken = options().into_iter().filter(|o| c.takes().any(|taken| taken == id(o)));
        let verb = (c.define)(c.name).args(taken);
        let writes_a_plot = ["ab", "compare"].contains(&c.name);
        let plot = |o: Arg| o.help("Also write the forest plot to PATH.html");
        let verb = verb.hide(FOR_PACKAGERS.contains(&c.name));
        root = root.subcommand(if writes_a_plot { verb.mut_arg("output", plot) } else { verb });
    }
    root.mut_args(option).mut_subcommands(|verb| verb.mut_args(option))
}

/// The commit that the program was built from, if the environment of the build names it, as `make` does.
pub(crate) fn commit() -> Option<&'static str> {
    option_env!("MACHMETER_COMMIT").filter(|c| !c.is_empty())
}

/// `0.1.0`, or with the commit `0.1.0 (9cf268c01234)`.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = commit().map_or_else(String::new, |c| format!(" ({c})"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
});

fn version() -> Arg {
    let option = Arg::new("version").short('V').long("version").action(ArgAction::Version);
    option.help("Print version").hide_short_help(true)
}

/// Adapts an option to the tree: `-h` shows its help up to the first semicolon, and `-5s` is a wrong time instead of an option.
fn option(given: Arg) -> Arg {
    let is_time = given.get_value_names().is_some_and(|names| names.iter().any(|n| n == "DUR"));
    let text = given.get_help().map(ToString::to_string).unwrap_or_default();
    let given = if is_time { given.allow_hyphen_values(true) } else { given };
    match text.split_once("; ") {
        Some((short, _)) => given.help(short.to_owned()).long_help(text),
        None => given,
    }
}

fn id(option: &Arg) -> &str {
    option.get_id().as_str()
}

/// Like [`command`], but options may precede the verb. Each verb has the options that do not act on it as hidden ones, so that it rejects them by name.
fn parser(registries: &Registries) -> Command {
    command(registries)
        .mut_args(|a| {
            let everywhere = id(&a) != "version";
            a.global(everywhere)
        })
        .mut_subcommands(|verb| {
            let takes = |o: &Arg| verb.get_arguments().any(|a| a.get_id() == o.get_id());
            let idle: Vec<Arg> = options().into_iter().filter(|o| !takes(o)).collect();
            verb.args(idle.into_iter().map(|o| o.hide(true)))
        })
}

/// Parses the arguments; `None` if it printed help or the version. A program called by the name of another benchmark behaves like that benchmark.
pub(crate) fn parse(registries: &Registries, arguments: &[OsString]) -> Result<Option<ArgMatches>> {
    let arguments = compat::arguments(arguments).unwrap_or_else(|| arguments.to_vec());
    let mut parser = parser(registries);
    match parser.try_get_matches_from_mut(&arguments) {
        Ok(matches) => idle(&parser, &matches).map_or(Ok(Some(matches)), Err),
        Err(e) if matches!(e.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = output::print(&e.to_string());
            Ok(None)
        }
        Err(e) => Err(failure(&e)),
    }
}

/// The failure that names given options without effect on the verb; `None` if all have an effect.
fn idle(parser: &Command, matches: &ArgMatches) -> Option<Failure> {
    let (name, given) = matches.subcommand()?;
    let hidden = parser.find_subcommand(name)?.get_arguments().filter(|a| a.is_hide_set());
    let idle = hidden.filter(|a| given.value_source(id(a)) == Some(ValueSource::CommandLine));
    let idle: Vec<String> = idle.filter_map(Arg::get_long).map(|l| format!("--{l}")).collect();
    (!idle.is_empty()).then(|| Failure::usage(format!("{name} takes no {}", idle.join(", no "))))
}

/// The command that prints help on the requested verb.
pub(crate) fn help_of(registries: &Registries, arguments: &[OsString]) -> String {
    let verbs = registries.probes.iter().map(|p| p.info.name).chain(COMMANDS.iter().map(|c| c.name));
    let verb = arguments.iter().skip(1).find_map(|a| verbs.clone().find(|v| a == v));
    verb.map_or_else(|| "machmeter --help".to_owned(), |v| format!("machmeter {v} --help"))
}

/// Converts clap's message: the error in one line, the tips as help.
pub(crate) fn failure(e: &clap::Error) -> Failure {
    let text = e.render().to_string();
    let mut what = String::new();
    let mut help = Vec::new();
    for l in text.lines().map(str::trim).take_while(|l| !l.starts_with("Usage:")) {
        if let Some(w) = l.strip_prefix("error: ") {
            w.clone_into(&mut what);
        } else if l.starts_with("tip:") || l.starts_with("[possible") {
            help.push(l.trim_start_matches("tip: ").to_owned());
        } else if !l.is_empty() && !l.starts_with("For more information") && help.is_empty() {
            what = format!("{what} {l}");
        }
    }
    // Clap lists the most likely one last.
    if let Some(ContextValue::Strings(names)) = e.get(ContextKind::SuggestedSubcommand) {
        let names: Vec<&str> = names.iter().rev().map(String::as_str).collect();
        help = vec![format!("similar: {}", names.join(", "))];
    }
    let failure = Failure::usage(what);
    if help.is_empty() { failure } else { failure.help(help.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandEntry;

    #[test]
    fn the_tree_is_sound_and_small() {
        for tree in [command(&Registries::default()), parser(&Registries::default())] {
            tree.clone().debug_assert();
            // Eight probes. Recorder and simulator measure nothing themselves and take a program and a record. A prediction takes two records, and its options have
            // no meaning for a simulation.
            let shown = tree.get_subcommands().filter(|verb| !verb.is_hide_set());
            assert!(shown.count() <= 23, "at most 23 commands");
        }
        for taken in COMMANDS.iter().flat_map(CommandEntry::takes).chain(BARE_ONLY) {
            assert!(options().iter().any(|o| id(o) == taken), "no option {taken}");
        }
    }
}
