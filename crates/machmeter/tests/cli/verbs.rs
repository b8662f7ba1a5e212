//! One row for each verb of the command line. The tests of signals, outputs and dry runs iterate over these rows, so a new verb takes part in all three,
//! or fails here.

#![allow(clippy::unwrap_used, reason = "tests fail and print their figures")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use machmeter::{Registries, command_line};
use machmeter_data::Record;

use crate::calculated;
use crate::program::{Lab, kept_runs, record_in, value, warned, words};

pub(crate) struct Verb {
    /// Name in the command tree; the bare command has none.
    pub(crate) name: &'static str,
    /// Options of a call that ends on its own within a second.
    pub(crate) short: &'static str,
    /// Calls that only a signal ends; empty if every call of the verb ends at once.
    pub(crate) long: &'static [Long],
    pub(crate) kept: Kept,
}

/// A call that only a signal ends.
pub(crate) struct Long {
    pub(crate) options: &'static str,
    /// The state in which the signal arrives.
    pub(crate) begun: Begun,
    /// Checks the partial record, if the verb keeps one.
    pub(crate) check: fn(&Record),
    /// Longest time from the signal to the end, s. The promise is 1 s for an optimized build; tests run on busy machines.
    pub(crate) within_s: u64,
}

impl Long {
    const fn within(self, within_s: u64) -> Self {
        Self { within_s, ..self }
    }
}

/// For verbs whose unoptimized build uses some seconds of CPU time between two checks for the signal. Examples: the page of all probes, a round of a
/// dataflow graph, the memory of a ladder, an injection of a self-test.
const SLOW_S: u64 = 15;

/// Sign that a call has begun.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Begun {
    /// A line of stderr with this text, plus milliseconds.
    Line(&'static str, u64),
    /// A child process with this word among its arguments.
    Child(&'static str),
    /// A file in this folder.
    FileIn(&'static str),
    /// The process has signal handlers.
    Handler,
    /// The process has used this much CPU time, ms.
    Work(u64),
}

/// Result that a run leaves behind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// A record on stdout (`--json`), in a file (`-o`) and in the history.
    Record,
    /// Files of another benchmark's format, or none.
    Other,
}

const fn verb(name: &'static str, short: &'static str, long: &'static [Long]) -> Verb {
    Verb { name, short, long, kept: Kept::Other }
}

const fn keeping(name: &'static str, short: &'static str, long: &'static [Long]) -> Verb {
    Verb { name, short, long, kept: Kept::Record }
}

const fn long(options: &'static str, begun: Begun) -> Long {
    checked(options, begun, |_| ())
}

const fn checked(options: &'static str, begun: Begun, check: fn(&Record)) -> Long {
    Long { options, begun, check, within_s: 4 }
}

use Begun::{Child, FileIn, Handler, Line, Work};

/// Every verb, sorted by name.
pub(crate) const VERBS: &[Verb] = &[
    keeping("", "--job n.toml -t 100ms -q", &[long("-l quick", Line("parts on CPU", 300)).within(SLOW_S)]),
    verb(
        "ab",
        "true true -- noise --help",
        &[long("-t 60s true true -- noise -t 100ms", Line("round 1 of", 0))],
    ),
    verb("compare", "r.json r.json", &[]),
    verb("compat", "ftq -s -i 17 -n 20", &[long("ftq -o cut -i 18 -n 2000000", Handler)]),
    verb("completions", "bash", &[]),
    verb("doctor", "", &[]),
    verb("explain", "W301", &[]),
    verb("export", "--to csv r.json", &[]),
    keeping(
        "flow",
        "-t 100ms -q --parts graphs --kernel fused,mirror,bitmap --graph e_comm",
        &[
            long("-t 30 -q --graph e_comm", Work(700)).within(SLOW_S),
            long("-t 30 -q --graph e_comm", Handler).within(SLOW_S),
        ],
    ),
    keeping(
        "interactive",
        "-t 600ms -q --tasks video --loads none",
        &[
            checked("-t 4 -v --tasks audio-pro,video --loads burn", Line(" under burn", 0), measured_burn),
            checked(
                "-t 4 -v --tasks audio-pro,video --loads compile",
                Line(" under compile", 0),
                measured_compile,
            ),
            checked(
                "-t 4 -v --tasks audio-pro,video --loads memload",
                Line(" under memload", 0),
                measured_memload,
            ),
        ],
    ),
    verb("list", "codes", &[]),
    verb("man", "", &[]),
    keeping(
        "memory",
        "-t 100ms -q --parts table",
        &[
            long("-t 30 -v", Line("costs have their samples", 0)).within(SLOW_S),
            long("-t 30 -q", Handler).within(SLOW_S),
        ],
    ),
    keeping(
        "mpi",
        "-n 2 -t 1 -q --ops pingpong --sizes 8",
        &[long("-n 2 -t 30 -v --ops pingpong", Line("launch 1 of", 0))],
    ),
    keeping(
        "net",
        "-t 100ms -q --sizes 1-8",
        &[long("-t 60 -v", Child("net-far")), long("-t 60 -v", Line("costs have their samples", 0))],
    ),
    keeping(
        "noise",
        "-t 100ms -q",
        &[
            checked("-t 10s -v", Line("noise: ", 300), early_with_figures),
            checked("--windows 100 --window 100ms -v", Line("noise: ", 150), early),
            checked("--level soak -v", Line("noise: ", 0), early),
            checked("--level soak -v", Line("noise: ", 400), early),
            checked("-t 30s --prio fifo:50 -v", Line("noise: ", 400), early),
        ],
    ),
    keeping(
        "ops",
        "-t 100ms -q --parts arithmetic",
        &[
            long("-t 30 -v", Line("costs have their samples", 0)),
            long("-t 30 -q --parts calls --directory folder", FileIn("folder")),
            // A visit of a hanging program ends after 3 s; a signal does not wait for that.
            long("-t 30 -q --parts processes --exec-target ./hanging", Child("7102.31")).within(2),
        ],
    ),
    keeping(
        "predict",
        "run.json --on exact.json -q",
        &[checked("long.json --on on.json --runs 1000000 -q", Work(1_000), predicted)],
    ),
    verb("reference", "add r.json", &[]),
    verb("report", "r.json", &[]),
    verb("schema", "record", &[]),
    verb("selftest", "noise --dry-run", &[long("noise", Line("selftest noise: ", 0)).within(SLOW_S)]),
    verb("serve", "--listen 127.0.0.1:0 -t 50ms", &[long("--listen 127.0.0.1:0 -t 60", Handler)]),
    keeping(
        "simulate",
        "--pattern bcast --ranks 2-8 --on on.json -q",
        &[checked(
            "--pattern barrier --ranks 4K --on on.json --noise period=100us,duration=10us --runs 100000 -q",
            Work(1_000),
            simulated,
        )],
    ),
    keeping(
        "sync",
        "-t 100ms -q --parts contention",
        &[long("-t 30 -v", Line("costs have their samples", 0))],
    ),
    // `trace` forwards a signal to the traced program and returns its exit code: tests/mpi/trace.rs.
    verb("trace", "-q -- true", &[]),
];

#[test]
fn every_verb_has_one_row() {
    let tree = command_line(&Registries::default());
    let named: BTreeSet<&str> = tree.get_subcommands().map(clap::Command::get_name).chain([""]).collect();
    assert_eq!(VERBS.iter().map(|v| v.name).collect::<BTreeSet<_>>(), named);
    assert!(VERBS.is_sorted_by_key(|v| v.name) && VERBS.len() == named.len());
    let options = |v: &Verb| tree.find_subcommand(v.name).map(takes_output);
    for v in VERBS.iter().filter(|v| v.kept == Kept::Record) {
        assert!(options(v).unwrap_or(true), "{} keeps records, but takes no --output", v.name);
    }
}

/// True if a verb takes `--output`.
pub(crate) fn takes_output(command: &clap::Command) -> bool {
    command.get_arguments().any(|a| a.get_id() == "output")
}

/// True if MPI ranks can be started here.
pub(crate) fn has_mpi() -> bool {
    machmeter_sys::mpi::installed(None).is_ok_and(|all| all.iter().any(|mpi| mpi.launcher.is_some()))
}

/// A lab with all files in the rows.
pub(crate) fn lab() -> Lab {
    let lab = calculated::predict::lab();
    calculated::predict::save_rounds(&lab, 2_000, "long.json");
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/fixtures/record.json");
    fs::copy(record, lab.work().join("r.json")).unwrap();
    fs::write(lab.work().join("n.toml"), "[noise]\n").unwrap();
    fs::create_dir(lab.work().join("folder")).unwrap();
    lab.script("hanging", "#!/bin/sh\nsleep 7102.31 &\nwait\n");
    lab
}

impl Verb {
    /// A command line of the verb: `globals`, then its own options.
    pub(crate) fn line(&self, globals: &str, options: &str) -> String {
        words(&format!("{} {globals} {options}", self.name)).join(" ")
    }
}

/// The record in the history and the one in the file `name` are the same.
#[track_caller]
pub(crate) fn is_kept(lab: &Lab, record: &Record, name: &str) {
    let kept = kept_runs(&lab.state());
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!([lab.record(name).id, record_in(&kept[0]).id], [record.id.as_str(); 2]);
}

fn early(record: &Record) {
    warned(record, "W307");
}

fn early_with_figures(record: &Record) {
    early(record);
    assert!(record.metrics.iter().any(|m| m.value.is_some()), "nothing was measured before the signal");
}

fn measured_burn(record: &Record) {
    lateness_under(record, "burn");
}

fn measured_compile(record: &Record) {
    lateness_under(record, "compile");
}

fn measured_memload(record: &Record) {
    lateness_under(record, "memload");
}

/// The segment that ended before the signal has its figure, and every release is counted.
#[track_caller]
fn lateness_under(record: &Record, load: &str) {
    crate::interactive::balanced(record);
    let lateness = |task| value(record, "interactive.lateness", &[("task", task), ("load", load)]);
    assert!(["audio-pro", "video"].iter().any(|t| lateness(t).is_some()), "{load}: {:?}", record.warnings);
}

fn predicted(record: &Record) {
    let wall = record.metric("predict.wall", &[("change", "none")]).unwrap();
    assert!((1..1_000_000).contains(&wall.n), "{} runs", wall.n);
}

fn simulated(record: &Record) {
    assert!(record.metric("simulate.time", &[("noise", "none")]).is_some());
}
