//! `machmeter compat NAME ...`, or the program called by the name itself (a symlink): the options, files and columns of
//! another benchmark, taken by this program's loop. docs/compat.md says what is kept and what differs on purpose.

mod bench;
mod ftq;
mod ftq_2025;
mod fwq;
mod interbench;
mod netgauge;
mod target;

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgMatches, Command, value_parser};
use machmeter_probes::noise::Quantum;

use crate::Registries;
use crate::command::CommandEntry;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "compat", define, run };

/// A benchmark this program stands in for.
#[derive(Debug, Clone, Copy)]
enum Mode {
    /// FTQ as of 2009 (also LLNL's copy).
    Ftq { quantum: Quantum, threaded: bool },
    /// FTQ as of 2025.
    Ftq2025,
    /// LLNL's FWQ.
    Fwq,
    /// Netgauge's noise pattern.
    Selfish,
    /// interbench as of 0.31.
    Interbench,
}

/// Names with what they stand for.
const MODES: &[(&str, Mode)] = &[
    ("ftq", Mode::Ftq { quantum: Quantum::One, threaded: false }),
    ("ftq15", Mode::Ftq { quantum: Quantum::Fifteen, threaded: false }),
    ("ftq31", Mode::Ftq { quantum: Quantum::ThirtyOne, threaded: false }),
    ("ftq63", Mode::Ftq { quantum: Quantum::SixtyThree, threaded: false }),
    ("t_ftq", Mode::Ftq { quantum: Quantum::One, threaded: true }),
    ("t_ftq15", Mode::Ftq { quantum: Quantum::Fifteen, threaded: true }),
    ("t_ftq31", Mode::Ftq { quantum: Quantum::ThirtyOne, threaded: true }),
    ("t_ftq63", Mode::Ftq { quantum: Quantum::SixtyThree, threaded: true }),
    ("ftq25", Mode::Ftq2025),
    ("fwq", Mode::Fwq),
    ("selfish", Mode::Selfish),
    ("interbench", Mode::Interbench),
];

fn define() -> Command {
    let names: Vec<&str> = MODES.iter().map(|m| m.0).collect();
    Command::new(ENTRY.name)
        .about("Behave like another benchmark: ftq, fwq, selfish, interbench")
        .long_about(format!(
            "Takes the options of another benchmark and writes its files: {}. A symlink of such a name to this program does \
             the same. `machmeter compat NAME -h` lists the options of NAME; the global options of machmeter do not apply.",
            names.join(", ")
        ))
        .arg(
            Arg::new("arguments")
                .value_name("NAME [OPTION]...")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("The benchmark and its own options"),
        )
}

fn run(registries: &Registries, _globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let mut arguments = matches.get_many::<OsString>("arguments").into_iter().flatten();
    let asked = arguments.next().map_or(OsStr::new(""), OsString::as_os_str);
    let rest: Vec<&OsString> = arguments.collect();
    let Some((name, mode)) = MODES.iter().find(|m| asked == m.0) else {
        let names: Vec<&str> = MODES.iter().map(|m| m.0).collect();
        return Err(Failure::usage(format!(
            "compat '{}' is no benchmark this program stands in for",
            asked.display()
        ))
        .help(format!("one of {}", names.join(", "))));
    };
    let command = match mode {
        Mode::Ftq { threaded, .. } => ftq::define(name, *threaded),
        Mode::Ftq2025 => ftq_2025::define(name),
        Mode::Fwq => fwq::define(name),
        Mode::Selfish => netgauge::define(name),
        Mode::Interbench => interbench::define(name),
    };
    let Some(matches) = parse(command, &rest)? else { return Ok(Exit::Fine) };
    match mode {
        Mode::Ftq { quantum, .. } => ftq::run(name, *quantum, &matches),
        Mode::Ftq2025 => ftq_2025::run(name, &matches),
        Mode::Fwq => fwq::run(name, &matches),
        Mode::Selfish => netgauge::run(name, &matches),
        Mode::Interbench => interbench::run(name, registries, &matches),
    }
}

/// The options of a benchmark; `None` when its usage was asked for and printed.
fn parse(command: Command, rest: &[&OsString]) -> Result<Option<ArgMatches>, Failure> {
    let name = command.get_name().to_owned();
    match command.no_binary_name(true).try_get_matches_from(rest) {
        Ok(matches) => Ok(Some(matches)),
        Err(e) if e.kind() == ErrorKind::DisplayHelp => {
            output::print(&e.to_string()).map_err(|e| Failure::cannot(format!("stdout: {e}")))?;
            Ok(None)
        }
        Err(e) => {
            let text = e.render().to_string();
            let first = text.lines().next().unwrap_or("wrong options");
            let what = first.strip_prefix("error: ").unwrap_or(first);
            Err(Failure::usage(format!("{name}: {what}")).help(format!("machmeter compat {name} -h")))
        }
    }
}

/// The arguments of `machmeter compat NAME ...` when the program was called by another benchmark's name.
pub(crate) fn arguments(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?;
    let (name, _) = MODES.iter().find(|m| name == m.0)?;
    let mut out: Vec<OsString> = ["machmeter", ENTRY.name, name].map(OsString::from).to_vec();
    out.extend(rest.iter().cloned());
    Some(out)
}

/// `-s`, `-o`, and `-t` as several of the benchmarks have them.
fn common(command: Command, prefix: &'static str) -> Command {
    command
        .arg(
            Arg::new("stdout")
                .short('s')
                .long("stdout")
                .action(clap::ArgAction::SetTrue)
                .help("Write to stdout"),
        )
        .arg(
            Arg::new("outname")
                .short('o')
                .long("outname")
                .value_name("PREFIX")
                .default_value(prefix)
                .value_parser(value_parser!(OsString))
                .help("Prefix of the files"),
        )
}

/// A whole number within bounds, given as `-x N`; a negative one is out of bounds, not an option.
fn number(short: char, long: &'static str, range: std::ops::RangeInclusive<i64>) -> Arg {
    Arg::new(long)
        .short(short)
        .long(long)
        .allow_negative_numbers(true)
        .value_parser(value_parser!(i64).range(range))
}

/// The value of [`number`], which always has one.
fn value_of(matches: &ArgMatches, name: &str) -> u64 {
    matches.get_one::<i64>(name).map_or(0, |v| v.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str]) -> Option<Vec<OsString>> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        arguments(&words)
    }

    #[test]
    fn a_program_called_by_a_known_name_is_that_benchmark() {
        let expected: Vec<OsString> =
            ["machmeter", "compat", "t_ftq63", "-t", "2"].map(OsString::from).to_vec();
        assert_eq!(of(&["/usr/local/bin/t_ftq63", "-t", "2"]), Some(expected));
        assert_eq!(of(&["machmeter", "compat", "ftq"]), None);
        assert_eq!(of(&["ftq64"]), None);
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn every_mode_is_soundly_defined() {
        for (name, mode) in MODES {
            let command = match mode {
                Mode::Ftq { threaded, .. } => ftq::define(name, *threaded),
                Mode::Ftq2025 => ftq_2025::define(name),
                Mode::Fwq => fwq::define(name),
                Mode::Selfish => netgauge::define(name),
                Mode::Interbench => interbench::define(name),
            };
            command.debug_assert();
        }
    }

    #[test]
    fn options_of_the_benchmark_are_not_taken_for_ours() {
        let registries = Registries::default();
        let tree = crate::cli::command(&registries);
        let words = ["machmeter", "compat", "ftq", "-o", "x", "-t", "2", "-h", "-q"];
        let matches = tree.try_get_matches_from(words).unwrap();
        let (_, sub) = matches.subcommand().unwrap();
        let got: Vec<&OsString> = sub.get_many::<OsString>("arguments").unwrap().collect();
        assert_eq!(got, ["ftq", "-o", "x", "-t", "2", "-h", "-q"]);
    }
}
