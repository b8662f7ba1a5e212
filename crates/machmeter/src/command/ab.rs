//! `machmeter ab 'A' 'B' -- PROBE ...`: compares two settings of the machine with any probe, measured in turns.
//!
//! Each run is a process of this program. The runs come in rounds ABBA or BAAB, so that drift of the machine affects both settings equally.

use std::io::Read;
use std::process::{Command as Process, Stdio};

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_compare::paired::{self, LEAST_ROUNDS, RUNS_PER_ROUND, Round, order};
use machmeter_compare::{Comparison, Options};
use machmeter_data::Record;
use machmeter_data::quantity::{Unit, human, parse_duration_ns};
use machmeter_engine::probe::Parameters;
use machmeter_engine::settings::Settings;
use machmeter_engine::{Attributes, Deadline};
use machmeter_store::date;
use machmeter_sys::guard::signals;
use machmeter_sys::thread::spawn_plain;

use super::compare;
use crate::{Exit, Failure, Globals, Registries, Result, cli};

/// Default time of all runs, ns.
const DEFAULT_NS: u64 = 300_000_000_000;
/// Time of a run in addition to its measurement (facts of the machine, the clock, the record), ns.
const AROUND_NS: u64 = 300_000_000;
/// Most rounds. More rounds take time without a gain.
const MOST_ROUNDS: usize = 100;
/// Options that this command sets for each run.
const OURS: [&str; 5] = ["--json", "--no-save", "--quiet", "--raw", "none"];

/// Compare two settings with any probe, measured in turns
///
/// Runs the probe under both settings in random rounds ABBA or BAAB, until every row is decided or the time (-t, 5m) is over. A setting is
/// a command (`true` changes nothing): it either ends, or runs as long as its setting is active. With --set, a setting is a list of attributes
/// that the measuring threads and loads inherit. -t of the probe is the time of one run:
/// machmeter ab -t 2m 'sysctl -w a.b=0' 'sysctl -w a.b=1' -- interactive -t 3 --tasks audio --loads burn
#[derive(Args)]
pub(super) struct Asked {
    /// Commands of settings A and B
    #[arg(value_names = ["A", "B"], num_args = 2)]
    commands: Vec<String>,
    /// Attributes of a setting, given twice: nice=5, policy=batch, slice=3ms, clamp=0-512, group=max=40%; several: 'nice=5 slice=3ms'
    #[arg(long, value_name = "ATTRIBUTES", conflicts_with = "commands")]
    set: Vec<String>,
    /// Rows to compare; the rows of the page by default
    #[arg(long, value_name = "GLOB")]
    metric: Option<String>,
    /// Smallest change that matters; a tenth of it for shares, in points
    #[arg(long, value_name = "SHARE", default_value = "5%", value_parser = compare::share)]
    at_least: f64,
    /// The probe and its options
    #[arg(value_name = "PROBE", last = true, num_args = 1.., required = true, allow_hyphen_values = true)]
    probe: Vec<String>,
}

/// The method that applies a setting to a run.
enum Sides {
    Commands(Settings),
    Attributes([Attributes; 2]),
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    compare::writable(globals)?;
    let (labels, mut sides) = sides(&asked)?;
    let Some(run_ns) = run_ns(registries, &asked.probe)?.map(|ns| ns + AROUND_NS) else {
        return Ok(Exit::Fine);
    };
    let total_ns = globals.time.unwrap_or(DEFAULT_NS);
    let planned = ((total_ns / (run_ns * RUNS_PER_ROUND as u64)) as usize).min(MOST_ROUNDS);
    if planned < LEAST_ROUNDS {
        let least = run_ns * (RUNS_PER_ROUND * LEAST_ROUNDS) as u64;
        let [total, run] = [total_ns, run_ns].map(|ns| human(ns as f64, Unit::Nanoseconds));
        let what =
            format!("{total} is too short for {LEAST_ROUNDS} rounds of {RUNS_PER_ROUND} runs at {run} each");
        let least_s = least.div_ceil(1_000_000_000);
        return Err(
            Failure::usage(what).help(format!("use ab -t {least_s} or more, or a shorter -t of the probe"))
        );
    }
    signals::install().map_err(Failure::cannot)?;
    let options =
        Options { at_least: asked.at_least, metric_glob: asked.metric.clone(), ..Options::default() };
    let given = matches.value_source("seed").is_some_and(|s| s != ValueSource::DefaultValue);
    let seed = if given { globals.seed } else { date::new_seed() };
    let deadline = Deadline::start(total_ns);
    let mut rounds: Vec<Round> = Vec::new();
    while !paired::may_stop(&rounds, planned, &options)
        && signals::stop_requested().is_none()
        && deadline.left_ns() >= run_ns * RUNS_PER_ROUND as u64
    {
        globals.say(&format!("round {} of {planned}", rounds.len() + 1));
        let mut round: Round = Default::default();
        for setting in order(rounds.len(), seed) {
            match once(&mut sides, setting, &asked.probe)? {
                Some(record) => round[setting].push(record),
                None => break,
            }
            let is_first = rounds.is_empty() && round.each_ref().map(Vec::len) == [1, 1];
            if is_first && !paired::has_rows(&round, &options) {
                return Err(nothing_to_judge(&round, &options));
            }
        }
        // An interrupted round lacks its mirrored half.
        if round.iter().map(Vec::len).sum::<usize>() < RUNS_PER_ROUND {
            break;
        }
        rounds.push(round);
    }
    drop(sides);
    tell(&rounds, planned, labels, seed, &options, globals)
}

fn tell(
    rounds: &[Round],
    planned: usize,
    labels: [String; 2],
    seed: u64,
    options: &Options<'_>,
    globals: &Globals,
) -> Result<Exit> {
    let mut comparison: Comparison = paired::compare(rounds, planned, options);
    let [a, b] = labels;
    let rounds = rounds.len();
    comparison
        .notes
        .push(format!("{rounds} of {planned} rounds ABBA or BAAB, --seed {seed}; A: {a}; B: {b}"));
    compare::show(&comparison, &compare::Pages::new(), globals)?;
    Ok(match signals::stop_requested() {
        Some(signal) => signal.into(),
        None if comparison.counts.worse > 0 => Exit::Finding,
        None if comparison.counts.unclear + comparison.counts.not_comparable == comparison.counts.rows => {
            Exit::Inconclusive
        }
        None => Exit::Fine,
    })
}

/// The failure that explains why no row can be judged, after the first run of each setting.
fn nothing_to_judge(round: &Round, options: &Options<'_>) -> Failure {
    let mut all = round.iter().flatten().flat_map(|r| &r.metrics);
    let why = all.find(|m| options.wants(&m.key(), &m.id) && m.why.is_some());
    let why = why.and_then(|m| m.why.as_deref()).map(|why| format!(" ({why})"));
    match (&options.metric_glob, why) {
        (Some(glob), None) => {
            let what = format!("--metric '{glob}' matches no figure of both A and B");
            Failure::usage(what).help("machmeter list metrics")
        }
        (_, why) => {
            let why = why.unwrap_or_default();
            Failure::usage(format!("the runs under A and B have no common figure{why}"))
                .help("use a longer -t of the probe, or select rows with --metric")
        }
    }
}

fn sides(asked: &Asked) -> Result<([String; 2], Sides)> {
    match (asked.commands.as_slice(), asked.set.as_slice()) {
        ([a, b], []) => {
            let commands = [a.clone(), b.clone()];
            Ok((commands.clone(), Sides::Commands(Settings::new(commands))))
        }
        ([], [a, b]) => {
            let of =
                |text: &String| attributes(text).map_err(|e| Failure::usage(format!("--set '{text}': {e}")));
            Ok(([a.clone(), b.clone()], Sides::Attributes([of(a)?, of(b)?])))
        }
        _ => Err(Failure::usage("a comparison needs two settings").help("give two commands, or --set twice")),
    }
}

/// Parses attributes such as `nice=5 slice=3ms`.
fn attributes(text: &str) -> Result<Attributes, String> {
    let mut out = Attributes::default();
    for word in text.split_whitespace() {
        let (name, value) = word.split_once('=').ok_or_else(|| format!("'{word}' is not NAME=VALUE"))?;
        match name {
            "nice" => out.policy = Some(format!("other:{value}")),
            "policy" => out.policy = Some(value.to_owned()),
            "slice" => out.slice_ns = Some(parse_duration_ns(value)?),
            "clamp" => {
                let ends = value.split_once('-').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
                out.clamp =
                    Some(ends.ok_or_else(|| format!("clamp '{value}' is not MIN-MAX, each 0 to 1024"))?);
            }
            "group" => out.cgroup = Some(value.to_owned()),
            _ => {
                return Err(format!(
                    "no attribute '{name}'; attributes are nice, policy, slice, clamp, group"
                ));
            }
        }
    }
    out.policy()?;
    Ok(out)
}

/// Checks the probe's options and returns the time of one run, ns; `None` if it printed help.
fn run_ns(registries: &Registries, probe: &[String]) -> Result<Option<u64>> {
    let ours = ["--json", "--csv", "--md", "--dry-run", "-o", "--output", "-n"];
    if let Some(word) = probe.iter().find(|w| ours.iter().any(|o| *w == o || w.starts_with(&format!("{o}="))))
    {
        let help = if word == "--dry-run" {
            "machmeter PROBE ... --dry-run prints the plan of a run"
        } else {
            "give it before the two settings"
        };
        return Err(Failure::usage(format!("the runs of ab do not take {word}")).help(help));
    }
    let words: Vec<std::ffi::OsString> =
        ["machmeter".to_owned()].iter().chain(probe).map(Into::into).collect();
    let Some(matches) = cli::parse(registries, &words)? else { return Ok(None) };
    let found = matches
        .subcommand()
        .and_then(|(name, given)| Some((registries.probes.iter().find(|p| p.info.name == name)?, given)));
    let Some((entry, given)) = found else {
        return Err(Failure::usage(format!("no probe '{}'", probe[0])).help("machmeter list probes"));
    };
    let globals = Globals::from_arg_matches(given).map_err(Failure::usage)?;
    let by_level_ns = (entry.default_ns)(&Parameters::Given(given), globals.level)?;
    Ok(Some(globals.time.unwrap_or(by_level_ns)))
}

/// Makes one run under a setting; `None` if it was stopped.
fn once(sides: &mut Sides, setting: usize, probe: &[String]) -> Result<Option<Record>> {
    let mut process = Process::new("/proc/self/exe");
    process.args(probe).args(OURS).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let name = if setting == 0 { "A" } else { "B" };
    let started = match sides {
        Sides::Commands(settings) => {
            settings.apply(setting)?;
            process.spawn().map(|child| (child, None)).map_err(|e| e.to_string())
        }
        Sides::Attributes(of) => {
            let attributes = &of[setting];
            // Child processes inherit the attributes of the thread that starts them.
            let start = || {
                attributes.apply()?;
                let group = attributes.make_group("ab")?;
                let child = process.spawn().map_err(|e| e.to_string())?;
                if let Some(group) = &group {
                    group.add(child.id() as i32).map_err(|e| e.to_string())?;
                }
                Ok((child, group))
            };
            std::thread::scope(|s| s.spawn(start).join())
                .unwrap_or_else(|_| Err("the attributes could not be set".to_owned()))
        }
    };
    let (mut child, group) = started.map_err(|e| Failure::cannot(format!("setting {name}: {e}")))?;
    let (sender, words) = std::sync::mpsc::channel();
    let errors = child.stderr.take();
    let reader = move || {
        let mut text = String::new();
        let _ = errors.map(|mut e| e.read_to_string(&mut text));
        let _ = sender.send(text);
    };
    spawn_plain("mm-words", reader).map_err(Failure::cannot)?;
    let mut text = Vec::new();
    let _ = child.stdout.take().map(|mut out| out.read_to_end(&mut text));
    let status = child.wait().map_err(Failure::cannot)?;
    drop(group);
    if let Sides::Commands(settings) = sides {
        settings.check()?;
    }
    if signals::stop_requested().is_some() {
        return Ok(None);
    }
    let failed = || {
        let words = words.recv().unwrap_or_default();
        let last =
            words.lines().rev().find(|l| !l.trim().is_empty()).unwrap_or("no error message").to_owned();
        Failure::cannot(format!("a run under setting {name} ended with {status}: {last}"))
    };
    if !status.success() {
        return Err(failed());
    }
    let mut record = Record::from_json(&text).map_err(|_| failed())?;
    // Keeps only what the comparison uses: an hour of runs must fit in memory.
    record.datasets.clear();
    Ok(Some(record))
}
