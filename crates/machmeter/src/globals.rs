//! Options of several commands.

use std::path::PathBuf;

use clap::{Arg, Args, Command, ValueEnum};
use machmeter_data::quantity::parse_duration_ns;
use machmeter_engine::Level;
use machmeter_engine::placement::parse_priority;

use crate::{Failure, Result, output};

/// When to color.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Which raw samples to keep beside the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Raw {
    /// All tables up to 5 million rows; in the state directory and beside the records of -o.
    Auto,
    /// All tables, also beside the record of the bare command.
    All,
    /// No tables.
    None,
}

/// Options that several commands take; [`crate::command::CommandEntry`] says which act where.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// quick, standard, thorough, soak; or 1 to 4.
    #[arg(short, long, default_value = "standard", value_parser = |s: &str| s.parse::<Level>())]
    pub(crate) level: Level,
    /// Run time: 20, 500ms, 5m; default by level, 50ms to 168h.
    #[arg(short, long, value_name = "DUR", value_parser = time)]
    pub(crate) time: Option<u64>,
    /// Number of runs, one after the other; each is stored, and their variation is the basis of a comparison.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=200), hide_short_help = true)]
    pub(crate) runs: u32,
    /// CPUs: 0-3,8, all, isolated, one-per-core; also no-smt, numa:0.
    #[arg(short, long, value_name = "LIST", default_value = "all")]
    pub(crate) cpus: String,
    /// Scheduling policy: auto, other, fifo:45, ...; of the measuring threads, also batch, idle, rr:45, deadline:1ms/10ms/10ms.
    #[arg(long, value_name = "POLICY", default_value = "auto", hide_short_help = true, value_parser = |s: &str| parse_priority(s).map(|_| s.to_owned()))]
    pub(crate) prio: String,
    /// Also write PATH: .json, .html or .svg; a record, report or card, repeatable.
    #[arg(short, long, value_name = "PATH")]
    pub(crate) output: Vec<PathBuf>,
    /// Print JSON, not the page, or write FILE; also --csv, --md.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    pub(crate) json: Option<PathBuf>,
    /// Print figures as CSV instead of the page, or write them to FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", hide_short_help = true)]
    pub(crate) csv: Option<PathBuf>,
    /// Print figures as Markdown instead of the page, or write them to FILE.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-", hide_short_help = true)]
    pub(crate) md: Option<PathBuf>,
    /// Raw samples to store.
    #[arg(long, value_enum, default_value = "auto", hide_short_help = true)]
    pub(crate) raw: Raw,
    /// Machine name in file names, instead of the host name.
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub(crate) name: Option<String>,
    /// Tag of the run, KEY=VALUE; repeatable.
    #[arg(long, value_name = "K=V", value_parser = tag, hide_short_help = true)]
    pub(crate) tag: Vec<(String, String)>,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 1, hide_short_help = true)]
    pub(crate) seed: u64,
    /// Exit with code 3 if the environment is unfit.
    #[arg(long, hide_short_help = true)]
    pub(crate) strict: bool,
    /// Do not store the run in the history.
    #[arg(long, hide_short_help = true)]
    pub(crate) no_save: bool,
    /// Run the probes of a job file (TOML) instead of all probes.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) job: Option<PathBuf>,
    /// Run commands and write files named in the job file.
    #[arg(long, hide_short_help = true)]
    pub(crate) allow_commands: bool,
    /// Check and print the plan, measure nothing; rejects everything that a run would reject.
    #[arg(long, hide_short_help = true)]
    pub(crate) dry_run: bool,
    /// Show no progress on stderr.
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Show all views and notes below the page.
    #[arg(short, long, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Use of color.
    #[arg(long, value_enum, default_value = "auto", hide_short_help = true)]
    pub(crate) color: Color,
    /// Print ASCII characters only.
    #[arg(long, hide_short_help = true)]
    pub(crate) ascii: bool,
}

pub(crate) fn options() -> Vec<Arg> {
    Globals::augment_args(Command::new("")).get_arguments().cloned().collect()
}

/// Longest run, ns: a week. `noise` has room for 277 h of its longest windows.
const MAX_TIME_NS: u64 = 168 * 3_600_000_000_000;

pub(crate) fn time(text: &str) -> Result<u64, String> {
    match parse_duration_ns(text)? {
        ns if ns < 50_000_000 => Err(format!("{text} is too short for a measurement: use 50ms or more")),
        ns if ns > MAX_TIME_NS => Err(format!("{text} is too long for a run: use 168h or less")),
        ns => Ok(ns),
    }
}

fn tag(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((k, v)) if !k.is_empty() => Ok((k.to_owned(), v.to_owned())),
        _ => Err(format!("'{text}' is not KEY=VALUE")),
    }
}

impl Globals {
    /// Rejects combinations of options.
    /// Errors: two documents would go to stdout, or several runs to one file.
    pub(crate) fn check(&self) -> Result<()> {
        let names_one =
            !self.output.is_empty() || [&self.json, &self.csv, &self.md].iter().any(|f| f.is_some());
        if self.runs > 1 && (names_one || self.no_save) {
            let what = if self.no_save {
                "--no-save would keep none of the runs"
            } else {
                "a file holds one run only"
            };
            return Err(Failure::usage(format!("-n {}: {what}", self.runs)).help(
                "name the stored runs later: last~5..last, or give --tag side=a and use compare --by side",
            ));
        }
        match self.to_stdout().as_slice() {
            [] | [_] => Ok(()),
            several => Err(Failure::usage(format!("only one of {} can go to stdout", several.join(" and ")))
                .help(format!("name a file: {}=FILE", several[1]))),
        }
    }

    /// Options that replace the page on stdout.
    fn to_stdout(&self) -> Vec<&'static str> {
        let forms = [("--json", &self.json), ("--csv", &self.csv), ("--md", &self.md)];
        let is_stdout = |path: &Option<PathBuf>| path.as_ref().is_some_and(|p| p.as_os_str() == "-");
        forms.into_iter().filter(|(_, path)| is_stdout(path)).map(|(name, _)| name).collect()
    }

    /// Prints a line to stderr, unless `--quiet` is given.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            output::say(text);
        }
    }

    pub(crate) fn stdout_is_taken(&self) -> bool {
        !self.to_stdout().is_empty()
    }
}
