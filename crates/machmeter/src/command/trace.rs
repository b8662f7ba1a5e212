//! `machmeter trace -- mpirun -n P APP`: records every MPI call of a program with a library that is preloaded into its ranks.
//!
//! It runs the program, collects the trace files of the ranks, and makes a record with calls, shares of the time, bytes, and the ranks that arrive last.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command as Process, ExitStatus, Stdio};

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_data::record::{Machine, Provenance};
use machmeter_data::trace::{DIRECTORY_VARIABLE, EXTENSION, LIMIT_VARIABLE};
use machmeter_engine::Info;
use machmeter_engine::probe::{Analysis, Outcome};
use machmeter_store::mpi_trace::{self, Collected};
use machmeter_sys::abandoned;
use machmeter_sys::preload::{self, Preload};

use super::keep::{MANY_ROWS, keep};
use super::program;
use crate::globals::Raw;
use crate::session::Session;
use crate::{Exit, Failure, Globals, Registries, Result, recorder};

/// Metrics, rows and codes of a trace.
pub(crate) const INFO: Info = Info {
    name: "trace",
    question: "The calls of an MPI program, and what it waits for",
    method: "A preloaded library wraps the functions of MPI and writes a slot of 32 bytes per call.",
    references: &["MPI: A Message-Passing Interface Standard 4.1, chapter 15, profiling interface"],
    metrics: &[mpi_trace::METRICS],
    rows: mpi_trace::ROWS,
    lasting: |_| false,
    codes: &[mpi_trace::CODES],
    example_job: "",
};

/// Record the calls of an MPI program, and what it waits for
///
/// Runs a program and records each MPI call of its ranks with a preloaded library. The record has calls, shares of the time, bytes and the
/// ranks that enter collectives last; all calls are raw samples, for export --to perfetto. Supports C and Fortran, Open MPI, MPICH and the
/// MPI 5 ABI, without recompilation. The exit code is that of the program (128 plus the signal number), or the tracer's own if that is 0:
/// machmeter trace -- mpirun -n 4 ./app
/// For batch jobs write the recorder with --recorder, set `LD_PRELOAD` to it and `MACHMETER_TRACE_DIR` to an empty directory, and --collect
/// that directory.
#[derive(Args)]
pub(super) struct Asked {
    /// Make a record of the traces in a directory; run nothing
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "dir", "limit"])]
    collect: Option<PathBuf>,
    /// Directory for traces, which are kept; new or empty, and shared by all machines of the program
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write the recorder for a batch job; run nothing
    #[arg(long, value_name = "PATH", conflicts_with_all = ["command", "collect", "dir", "limit", "json", "csv", "md", "output"])]
    recorder: Option<PathBuf>,
    /// Recording limit of a rank; a call takes 32 bytes
    #[arg(long, value_name = "MIB", default_value_t = 1024, value_parser = clap::value_parser!(u64).range(1..=1 << 30))]
    limit: u64,
    /// Program with its arguments
    #[arg(value_name = "COMMAND", last = true, num_args = 1.., required_unless_present_any = ["collect", "recorder"])]
    command: Vec<OsString>,
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    if let Some(path) = &asked.recorder {
        return recorder::write(path).map(|()| Exit::Fine);
    }
    if let Some(dir) = &asked.collect {
        remove_abandoned(dir);
        let session = Session::begin(registries, globals, 0)?;
        let found = collected(dir, globals)?;
        let none = || {
            Failure::usage(format!("{}: no file ends in .{EXTENSION}", dir.display()))
                .help("name the directory of MACHMETER_TRACE_DIR or --dir")
        };
        return Ok(told(session, found.ok_or_else(none)?, &[], globals));
    }
    let library = recorder::library()?;
    let mut place = Place::of(&asked)?;
    let session = Session::begin(registries, globals, 0)?;
    let preload = Preload::write(&place.path, &library).map_err(|e| {
        Failure::cannot(e)
            .help("use --dir with a directory on a file system that allows programs to run (no noexec)")
    })?;
    if let Some(why) = preload.why_in_memory() {
        globals.say(&format!(
            "the recorder is in memory, so only ranks on this machine are recorded: {}: {why}",
            place.path.display()
        ));
    }
    let status = traced(&asked, preload.path(), &place.path, globals)?;
    drop(preload);
    let exit = program::exit_of(status);
    let found = collected(&place.path, globals).map_err(|f| {
        place.is_kept = true;
        f.help(format!("the traces are kept in {}", place.path.display()))
    })?;
    let Some(found) = found else {
        let failure = Failure::cannot(
            "no rank left a trace: no process called MPI_Init, or the machines do not share the directory",
        )
        .help("programs with a static MPI library cannot be traced; --dir sets a shared directory");
        return match exit {
            Exit::Fine => Err(failure),
            other => {
                failure.report(globals.json.is_some());
                Ok(other)
            }
        };
    };
    let own = told(session, found, &asked.command, globals);
    Ok(if exit == Exit::Fine { own } else { exit })
}

/// Removes the recorder that a killed run left beside the traces in `dir`, unless a run uses the directory.
fn remove_abandoned(dir: &Path) {
    if abandoned::is_unlocked(dir) {
        preload::remove_abandoned(dir);
    }
}

/// The directory of the traces.
struct Place {
    path: PathBuf,
    is_kept: bool,
    /// Lock that marks the directory as in use; `None` on file systems without locks.
    _lock: Option<File>,
}

impl Place {
    /// The given directory, which must be new or empty, or a new one in the directory for temporary files.
    fn of(asked: &Asked) -> Result<Self> {
        let (path, is_kept) = match &asked.dir {
            Some(dir) => (dir.clone(), true),
            None => (abandoned::choose(&std::env::temp_dir(), abandoned::TRACES), false),
        };
        let wrong = |e: std::io::Error| Failure::usage(format!("{}: {e}", path.display()));
        if path.is_dir() {
            remove_abandoned(&path);
            if path.read_dir().map_err(wrong)?.next().is_some() {
                return Err(Failure::usage(format!("--dir {}: not empty", path.display()))
                    .help("a directory must contain the traces of one program only"));
            }
        } else {
            std::fs::DirBuilder::new().mode(0o700).create(&path).map_err(wrong)?;
        }
        let path = path.canonicalize().map_err(wrong)?;
        let lock = abandoned::lock(&path).ok();
        Ok(Self { path, is_kept, _lock: lock })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}

/// Runs the program to its end, and forwards signals to it.
fn traced(asked: &Asked, library: &Path, dir: &Path, globals: &Globals) -> Result<ExitStatus> {
    let [name, arguments @ ..] = asked.command.as_slice() else {
        return Err(Failure::usage("no command given"));
    };
    let mut process = Process::new(name);
    process.args(exports(name)).args(arguments);
    process.env("LD_PRELOAD", preloaded(library)).env(DIRECTORY_VARIABLE, dir);
    process.env(LIMIT_VARIABLE, (asked.limit << 20).to_string());
    let mut child = program::start(process, name, globals)?;
    program::ended(child.id() as i32, || {});
    child.wait().map_err(Failure::cannot)
}

/// The recorder, followed by the libraries of the user's `LD_PRELOAD`.
#[allow(clippy::disallowed_methods, reason = "what the user preloads stays")]
fn preloaded(library: &Path) -> OsString {
    let mut all = library.as_os_str().to_owned();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|v| !v.is_empty()) {
        all.push(":");
        all.push(others);
    }
    all
}

/// Options with which Open MPI's launcher exports variables to ranks on other machines. Ranks on this machine inherit them; the launchers of MPICH and
/// Slurm export the complete environment.
fn exports(program: &OsString) -> Vec<&'static str> {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy();
    let is_launcher = ["mpirun", "mpiexec", "orterun", "prterun"].iter().any(|n| name.starts_with(n));
    let version = || Process::new(program).arg("--version").stdin(Stdio::null()).output().ok();
    let Some(version) = is_launcher.then(version).flatten() else { return Vec::new() };
    let text = String::from_utf8_lossy(&version.stdout);
    if !["Open MPI", "OpenRTE", "PRRTE"].iter().any(|n| text.contains(n)) {
        return Vec::new();
    }
    let all = ["LD_PRELOAD", DIRECTORY_VARIABLE, LIMIT_VARIABLE];
    all.into_iter().flat_map(|variable| ["-x", variable]).collect()
}

fn collected(dir: &Path, globals: &Globals) -> Result<Option<Collected>> {
    let most_rows = match globals.raw {
        Raw::All => usize::MAX,
        Raw::Auto => MANY_ROWS,
        Raw::None => 0,
    };
    mpi_trace::collect(dir, most_rows).map_err(Failure::usage)
}

/// Makes the record, keeps and shows it.
fn told(session: Session<'_>, found: Collected, command: &[OsString], globals: &Globals) -> Exit {
    let history = session.history.clone();
    let words: Vec<_> = command.iter().map(|w| w.to_string_lossy()).collect();
    let parameters = serde_json::json!({
        "command": words, "program": found.program, "library": found.library, "boots": found.boots,
    });
    let outcome = Outcome {
        analysis: Analysis {
            metrics: found.metrics,
            datasets: found.datasets,
            warnings: found.warnings,
            ..Analysis::default()
        },
        tables: found.tables,
        parameters,
        policy: String::new(),
        side_effects: Vec::new(),
        complete: found.complete,
        outputs: Vec::new(),
    };
    let (mut record, tables) = session.end("trace", vec![(&INFO, outcome)]);
    "end of the program".clone_into(&mut record.stopped_by);
    // If a signal ended the program, the calls until then are recorded.
    record.complete = found.complete;
    record.provenance =
        Some(Provenance { format: "mpi-trace".to_owned(), files: found.files, assumptions: Vec::new() });
    let here = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    if found.boots.iter().any(|boot| boot != here.trim()) {
        // The program ran on other machines, about which nothing is known.
        record.machine = Machine::default();
        record.checks.clear();
        record.clock = None;
        record.metrics.iter_mut().for_each(|m| m.flags.clear());
    }
    globals.say(&format!("{}: {}", found.library, found.program));
    keep(record, tables, history, Vec::new(), None, globals)
}
