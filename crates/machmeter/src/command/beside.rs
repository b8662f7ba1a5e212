//! `machmeter noise -- CMD` and `machmeter noise --pid P`: how long a program waited for a CPU, and who had it.

use std::cell::Cell;
use std::ffi::OsString;
use std::process::Command as Process;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::Unit;
use machmeter_data::quantity::{human, parse_duration_ns};
use machmeter_engine::probe::Outcome;
use machmeter_noise::beside::{INFO, Seen, Watch, analyze, tables};
use machmeter_sys::guard::signals;
use machmeter_sys::process::pid_is_alive;
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::topology::Topology;

use super::keep::keep;
use super::measure::planned;
use super::program;
use crate::session::{Session, stopped_by};
use crate::{Exit, Failure, Globals, Registries, Result, output};

/// The verb that these options belong to.
pub(crate) const VERB: &str = "noise";

/// Options of `noise` that act on a watched program, too.
const ACT: [&str; 17] = [
    "stop_at", "max", "pid", "command", "time", "output", "json", "csv", "md", "name", "tag", "no_save",
    "dry_run", "quiet", "verbose", "color", "ascii",
];

#[derive(Args)]
#[command(next_help_heading = "Beside a program")]
pub(crate) struct Asked {
    /// Watch how long this process waits for a CPU; -t limits the time
    #[arg(long, value_name = "PID", conflicts_with = "command", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// End the watch at the first longer wait for a CPU; the last 200 ms of all CPUs are kept
    #[arg(long, value_name = "DUR", value_parser = parse_duration_ns)]
    stop_at: Option<u64>,
    /// Exit with code 1 if a wait for a CPU was longer
    #[arg(long, value_name = "DUR", value_parser = parse_duration_ns)]
    max: Option<u64>,
    /// Program with its arguments
    #[arg(value_name = "COMMAND", last = true, num_args = 1..)]
    command: Vec<OsString>,
}

/// The options that ask for a watch; `None` without them.
pub(super) fn asked(matches: &ArgMatches) -> Result<Option<Asked>> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    if asked.pid.is_none() && asked.command.is_empty() {
        let Some(option) = asked.stop_at.map(|_| "--stop-at").or(asked.max.map(|_| "--max")) else {
            return Ok(None);
        };
        let text = format!("{option} limits the waits of a program, and none is named");
        return Err(Failure::usage(text).help(format!("machmeter noise {option} 2ms -- CMD")));
    }
    let is_given = |id: &&str| matches.value_source(id) == Some(ValueSource::CommandLine);
    // Groups of options have the names of their types.
    let is_option = |id: &&str| !id.starts_with(char::is_uppercase);
    let acts = |id: &str| ACT.contains(&id) && !(id == "time" && asked.pid.is_none());
    match matches.ids().map(clap::Id::as_str).filter(is_option).filter(is_given).find(|id| !acts(id)) {
        Some(id) => Err(Failure::usage(format!("--{} does not act beside a program", id.replace('_', "-")))
            .help("it belongs to the probe's own loop; see machmeter noise --help")),
        None => Ok(Some(asked)),
    }
}

pub(super) fn run(registries: &Registries, globals: &Globals, asked: &Asked) -> Result<Exit> {
    if globals.dry_run {
        let words: Vec<_> = asked.command.iter().map(|w| w.to_string_lossy()).collect();
        let what = asked.pid.map_or_else(
            || format!("runs and watches: {}", words.join(" ")),
            |pid| format!("watches process {pid}"),
        );
        return planned(globals, &format!("plan: {what}"));
    }
    let session = Session::begin(registries, globals, globals.time.unwrap_or(0))?;
    let cpus = Topology::host().map_err(Failure::cannot)?.online;
    match (asked.pid, asked.command.as_slice()) {
        (Some(pid), _) => {
            if !pid_is_alive(pid) {
                return Err(Failure::usage(format!("--pid {pid}: no such process")));
            }
            let mut watch = Watch::start(&cpus, asked.stop_at);
            let began_ns = monotonic_ns();
            watch.follow(pid, false);
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
            let is_caught = Cell::new(false);
            let is_over = || {
                is_caught.get()
                    || globals.time.is_some_and(|t| monotonic_ns() - began_ns >= t)
                    || signals::stop_requested().is_some()
            };
            program::watched(pid, is_over, || {
                watch.look();
                is_caught.set(watch.has_caught());
            });
            let parameters = serde_json::json!({"pid": pid, "program": name.trim_end()});
            Ok(told(session, watch, monotonic_ns() - began_ns, parameters, asked.max, globals))
        }
        (None, [name, arguments @ ..]) => {
            let mut process = Process::new(name);
            process.args(arguments);
            let mut watch = Watch::start(&cpus, asked.stop_at);
            let began_ns = monotonic_ns();
            let mut child = program::start(process, name, globals)?;
            let pid = child.id() as i32;
            watch.follow(pid, true);
            program::ended(pid, || watch.look());
            let wall_ns = monotonic_ns() - began_ns;
            let words: Vec<_> = asked.command.iter().map(|w| w.to_string_lossy()).collect();
            let parameters = serde_json::json!({"command": words});
            let own = told(session, watch, wall_ns, parameters, asked.max, globals);
            let status = child.wait().map_err(Failure::cannot)?;
            let exit = program::exit_of(status);
            Ok(if exit == Exit::Fine { own } else { exit })
        }
        (None, []) => Err(Failure::usage("no command given")),
    }
}

/// Makes the record, keeps and shows it.
fn told(
    session: Session<'_>,
    watch: Watch,
    wall_ns: u64,
    parameters: serde_json::Value,
    max_ns: Option<u64>,
    globals: &Globals,
) -> Exit {
    let is_caught = watch.has_caught();
    let is_ended = !parameters["pid"].as_i64().is_some_and(|pid| pid_is_alive(pid as i32));
    let seen = watch.finish();
    let history = session.history.clone();
    let outcome = Outcome {
        analysis: analyze(&seen, wall_ns),
        tables: tables(&seen),
        parameters,
        policy: String::new(),
        side_effects: Vec::new(),
        complete: true,
        outputs: Vec::new(),
    };
    let (mut record, tables) = session.end(VERB, vec![(&INFO, outcome)]);
    record.stopped_by = match globals.time {
        _ if is_caught => "a wait".to_owned(),
        Some(_) if !is_ended => stopped_by("time"),
        _ => stopped_by("end of the program"),
    };
    record.complete = true;
    let exit = keep(record, tables, history, Vec::new(), None, globals);
    if exit == Exit::Fine { max_ns.map_or(exit, |max_ns| within(&seen, max_ns)) } else { exit }
}

/// The exit code of the longest wait beside the limit.
fn within(seen: &Seen, max_ns: u64) -> Exit {
    let text = |ns: u64| human(ns as f64, Unit::Nanoseconds);
    match seen.accounts.longest.first() {
        None if seen.without_trace.is_some() => {
            output::say(&format!(
                "--max {}: the longest wait is unknown without the kernel's trace (W330)",
                text(max_ns)
            ));
            Exit::Inconclusive
        }
        Some(longest) if longest.ns > max_ns => {
            output::say(&format!("--max {}: a wait took {}", text(max_ns), text(longest.ns)));
            Exit::Finding
        }
        _ if seen.lost > 0 => {
            output::say(&format!(
                "--max {}: the trace lost events, and a wait with them (W331)",
                text(max_ns)
            ));
            Exit::Inconclusive
        }
        _ => Exit::Fine,
    }
}
