//! `machmeter compat NAME ...`, or a symlink with that name: the options, files and columns of another benchmark, measured by this program's loop.
//!
//! docs/compat.md lists the properties that are kept and the intended differences.

mod bench;
mod ftq;
mod ftq_2025;
mod fwq;
mod interbench;
mod netgauge;
mod netgauge_loggp;
mod target;

use std::ffi::{OsStr, OsString};
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;

use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use machmeter_data::quantity::parse_duration_ns;
use machmeter_sys::guard::signals;

use crate::cli::failure;
use crate::{Exit, Failure, Globals, Registries, Result, output};

/// A benchmark that this program replaces.
struct Mode {
    names: &'static [&'static str],
    define: fn(&'static str) -> Command,
    run: fn(&str, &Registries, &ArgMatches) -> Result<Exit>,
}

const MODES: [Mode; 6] = [
    Mode { names: ftq::NAMES, define: ftq::define, run: |name, _, given| ftq::run(name, given) },
    Mode { names: &["ftq25"], define: ftq_2025::define, run: |name, _, given| ftq_2025::run(name, given) },
    Mode { names: &["fwq"], define: fwq::define, run: |name, _, given| fwq::run(name, given) },
    Mode { names: &["selfish"], define: netgauge::define, run: |name, _, given| netgauge::run(name, given) },
    Mode { names: &["netgauge"], define: netgauge_loggp::define, run: netgauge_loggp::run },
    Mode { names: &["interbench"], define: interbench::define, run: interbench::run },
];

fn names() -> String {
    MODES.map(|m| m.names.join(", ")).join(", ")
}

/// The benchmark of that name, and the name.
fn find(asked: &OsStr) -> Option<(&'static str, Mode)> {
    MODES.into_iter().find_map(|mode| Some((*mode.names.iter().find(|name| asked == **name)?, mode)))
}

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name)
        .about("Act as another benchmark: ftq, fwq, selfish, netgauge, interbench")
        .long_about(format!(
            "Accepts the options of another benchmark and writes its files: {}. A symlink with such a name to this program does \
             the same. `machmeter compat NAME -h` lists the options of NAME. The global options of machmeter do not apply.",
            names()
        ))
        .arg(
            Arg::new("arguments")
                .value_name("NAME [OPTION]...")
                .required(true)
                .num_args(1..)
                .trailing_var_arg(true)
                .allow_hyphen_values(true)
                .value_parser(value_parser!(OsString))
                .help("Name of the benchmark and its own options"),
        )
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let mut arguments = matches.get_many::<OsString>("arguments").into_iter().flatten();
    let asked = arguments.next().map_or(OsStr::new(""), OsString::as_os_str);
    let rest: Vec<&OsString> = arguments.collect();
    let Some((name, mode)) = find(asked) else {
        let what = format!("compat cannot act as '{}'", asked.display());
        return Err(Failure::usage(what).help(format!("one of {}", names())));
    };
    let Some(matches) = parse((mode.define)(name), &rest)? else { return Ok(Exit::Fine) };
    (mode.run)(name, registries, &matches)
}

/// Parses the options; `None` if it printed the usage.
fn parse(command: Command, rest: &[&OsString]) -> Result<Option<ArgMatches>> {
    let name = command.get_name().to_owned();
    match command.no_binary_name(true).try_get_matches_from(rest) {
        Ok(matches) => Ok(Some(matches)),
        Err(e) if e.kind() == ErrorKind::DisplayHelp => {
            output::print(&e.to_string()).map_err(Failure::cannot)?;
            Ok(None)
        }
        Err(e) => Err(Failure::usage(format!("{name}: {}", failure(&e).what))
            .help(format!("machmeter compat {name} -h"))),
    }
}

/// The arguments of `machmeter compat NAME ...`, if the program was called by the name of another benchmark.
pub(crate) fn arguments(arguments: &[OsString]) -> Option<Vec<OsString>> {
    let (program, rest) = arguments.split_first()?;
    let name = Path::new(program).file_name()?;
    let (name, _) = find(name)?;
    let mut out: Vec<OsString> = ["machmeter", "compat", name].map(OsString::from).to_vec();
    out.extend(rest.iter().cloned());
    Some(out)
}

/// Range of the number of windows, pieces or detours of a run.
const SAMPLES: RangeInclusive<i64> = 1..=2_000_000;
/// Range of the number of threads or ranks.
const THREADS: RangeInclusive<i64> = 1..=65_536;

/// `-n`, the number of samples.
fn samples(default: &'static str, help: &'static str) -> Arg {
    number('n', "numsamples", SAMPLES, "SAMPLES", help).default_value(default)
}

/// `-t`, without a default.
fn threads() -> Arg {
    number('t', "threads", THREADS, "THREADS", "Number of threads, each pinned to its own CPU")
}

/// Adds `-s` and `-o`, which [`target::asked`] reads.
fn with_output(command: Command, prefix: &'static str) -> Command {
    command
        .arg(flag('s', "stdout", "Write to stdout"))
        .arg(file("outname", "PREFIX", "Prefix of the files").default_value(prefix))
}

/// `-o`, the output.
fn file(long: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(long).short('o').long(long).value_name(value).value_parser(value_parser!(OsString)).help(help)
}

/// `--time`, ten seconds by default.
fn time(help: &'static str) -> Arg {
    let time = Arg::new("time").long("time").value_name("DUR").default_value("10s");
    time.value_parser(parse_duration_ns).help(help)
}

fn flag(short: char, long: &'static str, help: &'static str) -> Arg {
    Arg::new(long).short(short).long(long).action(ArgAction::SetTrue).help(help)
}

/// A whole number within bounds, given as `-x N`. A negative one is out of bounds, not an option.
fn number(
    short: char,
    long: &'static str,
    range: RangeInclusive<i64>,
    value: &'static str,
    help: &'static str,
) -> Arg {
    let number = Arg::new(long).short(short).long(long).value_name(value).help(help);
    number.allow_negative_numbers(true).value_parser(value_parser!(i64).range(range))
}

/// The value of a [`number`], which always exists.
fn value_of(matches: &ArgMatches, name: &str) -> u64 {
    matches.get_one::<i64>(name).map_or(0, |v| v.unsigned_abs())
}

/// Writes the output of `fill` to stdout.
fn print_filled(fill: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> Result<()> {
    let mut text = Vec::new();
    fill(&mut text).map_err(Failure::cannot)?;
    output::write(&text).map_err(Failure::cannot)
}

/// Prints the commands that show more; `view` are the arguments for `report`.
fn tell_more(name: &str, view: &str) {
    let who = "for the causes: machmeter noise";
    output::say(&format!("{name}: for charts: machmeter report {view}; {who}"));
}

/// Reports a stop before `what` and returns the exit code.
fn nothing_written(name: &str, what: &str) -> Exit {
    output::say(&format!("{name}: stopped before {what}; nothing written"));
    signals::stop_requested().map_or(Exit::CannotMeasure, Exit::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_soundly_defined() {
        for mode in MODES {
            mode.names.iter().for_each(|name| (mode.define)(name).debug_assert());
        }
    }
}
