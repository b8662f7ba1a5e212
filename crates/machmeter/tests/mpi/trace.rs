//! Tests `machmeter trace` on programs that count their own calls, under the installed MPI libraries.
//!
//! The compilers are needed for the test programs only; without them a test prints a line and is skipped. One test runs at a time, because ranks spin.

#![allow(clippy::unwrap_used, reason = "tests panic on surprises")]
#![allow(clippy::print_stdout, reason = "what is skipped, and what a call costs")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{
    Ended, Lab, Running, allowed, can_mount, descendants, is_root, kept_runs, soon, warned, words,
};
use machmeter_data::trace::{End, OPERATIONS, Trace};
use machmeter_simulate::goal;
use machmeter_sys::process::commands_with;
use rustix::process::Signal;

pub(crate) const LIBRARIES: [&str; 2] = ["openmpi", "mpich"];
/// Most additional instructions for a call of up to six arguments.
const MOST_ADDED: f64 = 120.0;

/// The recorder, as the program writes it for batch jobs.
pub(crate) fn recorder(lab: &Lab) -> PathBuf {
    lab.line("trace --recorder recorder.so").expect(0);
    lab.work().join("recorder.so")
}

/// Compiles a program of `tests/mpi`; `None`, with a printed line, if the compiler is missing.
pub(crate) fn compiled(lab: &Lab, library: &str, source: &str) -> Option<String> {
    let (name, language) = source.split_once('.').unwrap();
    let compiler = format!("{}.{library}", if language == "c" { "mpicc" } else { "mpif90" });
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mpi");
    let mut command = Command::new(&compiler);
    command.arg("-O1").arg(sources.join(source)).args(["-o", name]).current_dir(lab.work());
    match command.output() {
        Ok(out) if out.status.success() => Some(format!("./{name}")),
        Ok(out) if language == "c" && !String::from_utf8_lossy(&out.stderr).contains("mpi.h: No such") => {
            panic!("{compiler}: {}", String::from_utf8_lossy(&out.stderr))
        }
        _ => {
            println!("skipped {source} with {compiler}: it is missing, or its headers or Fortran");
            None
        }
    }
}

/// A run of `machmeter trace` with `options` on a shell line.
fn traced(lab: &Lab, options: &str, line: &str) -> Ended {
    let command = lab.command(&[&words(&format!("trace -q {options} --")), &["sh", "-c", line][..]].concat());
    Running::of(allowed(command)).end()
}

/// Trace files of a directory by rank.
pub(crate) fn files(dir: &Path) -> BTreeMap<u32, Vec<u8>> {
    let read = |entry: fs::DirEntry| {
        let bytes = fs::read(entry.path()).unwrap();
        (Trace::read(&bytes).unwrap().rank, bytes)
    };
    fs::read_dir(dir).unwrap().map(Result::unwrap).map(read).collect()
}

/// Calls and bytes by rank and operation.
fn counted(dir: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut all = BTreeMap::new();
    for (rank, bytes) in files(dir) {
        let trace = Trace::read(&bytes).unwrap();
        assert_eq!(trace.end, End::Finalized);
        for call in trace.calls() {
            let entry: &mut (u64, u64) =
                all.entry(format!("{rank} {}", OPERATIONS[call.operation].name)).or_default();
            *entry = (entry.0 + 1, entry.1 + call.bytes);
            assert!(call.duration_ns.is_some(), "{call:?}");
        }
    }
    all
}

/// The program's own counts: lines of rank, operation, calls and bytes.
fn said(text: &str) -> BTreeMap<String, (u64, u64)> {
    let line = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [rank, operation, calls, bytes] = words[..] else { return None };
        rank.parse::<u32>().ok()?;
        Some((format!("{rank} {operation}"), (calls.parse().ok()?, bytes.parse().ok()?)))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn calls_and_bytes_are_those_that_programs_count_themselves() {
    for library in LIBRARIES {
        for source in ["calls.c", "mpif.f", "f08.f90"] {
            let lab = Lab::alone();
            let Some(program) = compiled(&lab, library, source) else { continue };
            let ended =
                traced(&lab, "--dir traces --json", &format!("exec mpiexec.{library} -n 2 {program}"));
            let record = ended.expect(0).record();
            // With JSON on stdout, the program's output goes to stderr.
            let wanted = said(&ended.stderr);
            assert!(wanted.len() > 10, "{library} {source}: {ended:?}");
            assert_eq!(counted(&lab.work().join("traces")), wanted, "{library} {source}");
            let calls = record.metric("mpi.calls", &[("operation", "all")]).unwrap().value;
            assert_eq!(calls, Some(wanted.values().map(|c| c.0 as f64).sum()));
            assert!(record.complete && record.metric("mpi.ranks", &[]).unwrap().value == Some(2.0));
            let waiting = record.metric("mpi.waiting", &[("operation", "allreduce")]).unwrap();
            assert!((0.0..=1.0).contains(&waiting.value.unwrap()), "{waiting:?}");
            assert!(record.raw.iter().any(|r| r.table == "mpi_events" && r.rows as f64 == calls.unwrap()));
        }
    }
}

#[test]
fn report_history_compare_and_perfetto_follow() {
    let lab = Lab::alone();
    let found = LIBRARIES.iter().find_map(|l| Some((l, compiled(&lab, l, "calls.c")?)));
    let Some((library, program)) = found else { return };
    let line = format!("mpiexec.{library} -n 2 {program}");
    for _ in 0..2 {
        let page = traced(&lab, "", &line);
        page.expect(0);
        assert!(page.stdout.contains("program, ranks | calls | time | in MPI"), "{page:?}");
        assert!(page.stdout.contains("0 Barrier 3 0"), "the program's own words: {page:?}");
    }
    assert_eq!((kept_runs(&lab.state()).len(), lab.files().len()), (2, 1), "only the test program is left");
    let whole = lab.line("report last -v -o page.html").expect(0).stdout.clone();
    for table in ["MPI operations", "MPI ranks", "Time of MPI calls", "Messages from rank to rank"] {
        assert!(whole.contains(table), "{table}\n{whole}");
    }
    let exported = |format: &str| {
        lab.line(&format!("export --to {format} -o exported last")).expect(0);
        fs::read(lab.work().join("exported")).unwrap()
    };
    let text = |format: &str| String::from_utf8(exported(format)).unwrap();
    let trace = exported("perfetto");
    let times = |what: &[u8]| trace.windows(what.len()).filter(|w| *w == what).count();
    assert_eq!((times(b"MPI_Allreduce"), times(b"rank 0"), times(b"rank 1")), (2000, 1, 1));
    let schedule = text("goal");
    assert!(schedule.starts_with("num_ranks 2") && schedule.contains("calc ") && schedule.contains("send "));
    let binary = goal::read_binary(&exported("goal-binary"));
    assert_eq!(binary, goal::read(schedule.as_bytes()), "text and binary are one schedule");
    let trace = text("smpi");
    assert!(trace.starts_with("0 init") && trace.ends_with("1 finalize\n") && trace.contains("1 compute "));
    let compared = lab.line("compare last~1 last --metric mpi.* --json");
    assert!(compared.stdout.contains("mpi.share") && compared.code != Some(2), "{compared:?}");
    // The exit code of the program, even if this program uses the same code.
    traced(&lab, "", &format!("{line}; exit 3")).expect(3);
    assert_eq!(kept_runs(&lab.state()).len(), 3);
}

#[test]
fn a_signal_is_passed_on_to_the_program() {
    for signal in [Signal::INT, Signal::TERM] {
        let lab = Lab::alone();
        let run = lab.start("trace -q -- sleep 7103.31");
        let below = || descendants(run.id() as i32);
        assert!(soon(|| commands_with("7103.31").iter().any(|pid| below().contains(pid))), "no program");
        run.send(signal);
        // The exit code of the program, which SIGTERM ended.
        run.end().expect(143);
        assert!(commands_with("7103.31").is_empty() && lab.files().is_empty());
    }
}

/// Instructions per operation in a run of `cost.c` with `turns` turns, by the name of its function.
fn instructions(lab: &Lab, launcher: &str, preload: Option<&Path>, turns: u32) -> BTreeMap<String, f64> {
    let traces = lab.work().join("traces");
    let _ = fs::remove_dir_all(&traces);
    fs::create_dir(&traces).unwrap();
    let mut command = Command::new("timeout");
    command.args(["100", launcher, "-n", "1", "env"]);
    command.args(preload.map(|p| format!("LD_PRELOAD={}", p.display())));
    command.args(["valgrind", "--tool=callgrind", "--compress-strings=no", "--compress-pos=no"]);
    command.args(["--callgrind-out-file=out", "./cost", &turns.to_string()]);
    lab.set_up(command.env("MACHMETER_TRACE_DIR", &traces));
    let done = allowed(command).output().unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(files(&traces).len(), usize::from(preload.is_some()));
    let text = fs::read_to_string(lab.work().join("out")).unwrap();
    // The line after a call has its place and its instructions, including those of the called function.
    let (mut found, mut of, mut called) = (BTreeMap::new(), "", "");
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(name) = line.strip_prefix("fn=") {
            of = name;
        } else if let Some(name) = line.strip_prefix("cfn=") {
            called = name;
        } else if line.starts_with("calls=") && of == "main" {
            let spent = lines.next().unwrap().split(' ').nth(1).unwrap();
            found.insert(called.to_owned(), spent.parse().unwrap());
        }
    }
    found
}

#[test]
fn a_call_costs_few_instructions_more() {
    const TURNS: u32 = 20_000;
    if Command::new("valgrind").arg("--version").output().is_err() {
        return println!("skipped: no valgrind");
    }
    for library in LIBRARIES {
        let lab = Lab::alone();
        if compiled(&lab, library, "cost.c").is_none() {
            continue;
        }
        let (launcher, recorder) = (format!("mpiexec.{library}"), recorder(&lab));
        let [with, without] =
            [Some(&*recorder), None].map(|preload| instructions(&lab, &launcher, preload, TURNS));
        for (operation, calls) in
            [("send", 1.0), ("barrier", 1.0), ("reduce", 1.0), ("isend", 2.0), ("sendrecv", 1.0)]
        {
            let added = (with[operation] - without[operation]) / f64::from(TURNS) / calls;
            println!("{library} {operation}: {added:.0} instructions added");
            assert!((20.0..=MOST_ADDED).contains(&added), "{library} {operation}: {added}");
        }
    }
}

#[test]
fn a_killed_program_leaves_all_calls_that_returned_and_names_those_that_did_not() {
    for library in LIBRARIES {
        let lab = Lab::alone();
        let Some(program) = compiled(&lab, library, "ends.c") else { continue };
        // The launcher returns its own exit code.
        let line = format!("mpiexec.{library} -n 2 {program} kill 300; exit 1");
        let record = traced(&lab, "--dir traces --json", &line).expect(1).record();
        warned(&record, "W722");
        let open: Vec<&str> =
            record.warnings.iter().filter(|w| w.code == "W723").map(|w| w.text.as_str()).collect();
        assert!(open.len() == 1 && open[0].contains("rank 0 did not return from MPI_Recv"), "{open:?}");
        assert!(open[0].ends_with(", rank 1, tag 77"), "{open:?}");
        for (rank, bytes) in files(&lab.work().join("traces")) {
            let trace = Trace::read(&bytes).unwrap();
            let returned = trace.calls().filter(|c| c.duration_ns.is_some()).count();
            assert_eq!((returned, trace.end), (300, End::Unfinished), "{library}, rank {rank}");
        }
        // The traces of a crash or a batch job.
        let again = lab.line("trace -q --collect traces --json").expect(0).record();
        assert_eq!(again.metrics.len(), record.metrics.len());
    }
}

#[test]
fn a_full_disk_ends_the_recording_and_not_the_program() {
    for library in LIBRARIES {
        let lab = Lab::alone();
        let Some(program) = compiled(&lab, library, "ends.c") else { continue };
        let trace = |options: &str| lab.command(&words(&format!("trace -q --json {options}")));
        let job = format!("-- mpiexec.{library} -n 2 {program}");
        let mut ways = vec![trace(&format!("{job} limited 20000"))];
        fs::create_dir(lab.work().join("small")).unwrap();
        if is_root() && can_mount(&lab.work().join("small")) {
            let mount = "mount -t tmpfs -o size=700k none small";
            let on_it = trace(&format!("--dir small {job} well 20000"));
            ways.push(lab.after(&["unshare", "-m", "sh", "-c"], mount, &on_it));
        } else {
            println!("skipped the small disk: no private mount namespace here");
        }
        for command in ways {
            let ended = Running::of(allowed(command)).end();
            let record = ended.expect(5).record();
            warned(&record, "W721");
            assert!(!record.warnings.iter().any(|w| w.code == "W720"), "{:?}", record.warnings);
            let words_of_ranks = ended.stderr.matches("recording ends here, the program goes on").count();
            assert!((1..=2).contains(&words_of_ranks), "{}", ended.stderr);
            let calls = record.metric("mpi.calls", &[("operation", "barrier")]).unwrap().value.unwrap();
            assert!((8000.0..40_000.0).contains(&calls), "{calls}");
        }
        let limited = trace(&format!("--limit 1 {job} well 40000"));
        let record = Running::of(allowed(limited)).end().expect(5).record();
        let calls = record.metric("mpi.calls", &[("operation", "barrier")]).unwrap().value.unwrap();
        assert!((48_000.0..=65_536.0).contains(&calls), "three pieces of a rank and its header: {calls}");
    }
}

#[test]
fn without_finalize_or_without_mpi_there_is_a_word() {
    let lab = Lab::alone();
    lab.line("trace -q -- true").failed(4, "no process called MPI_Init");
    traced(&lab, "", "exit 3").failed(3, "MPI_Init");
    for library in LIBRARIES {
        let Some(program) = compiled(&lab, library, "ends.c") else { continue };
        let job = format!("mpiexec.{library} -n 2 {program}");
        traced(&lab, "", &format!("{job} never")).expect(4);
        let record = traced(&lab, "--json", &format!("{job} leave 10; true")).expect(0).record();
        warned(&record, "W722");
        assert_eq!(record.metric("mpi.calls", &[("operation", "barrier")]).unwrap().value, Some(20.0));
    }
}

#[test]
fn files_that_are_no_traces_are_refused_in_one_line() {
    let lab = Lab::alone();
    let dir = lab.work().join("traces");
    fs::create_dir(&dir).unwrap();
    let refused = |about: &str| lab.line("trace --collect traces").refused(about);
    refused("no file ends in .mpitrace");
    fs::write(dir.join("rank-0.mpitrace"), "hello").unwrap();
    refused("not a trace of an MPI program");
    let found = LIBRARIES.iter().find_map(|l| Some((l, compiled(&lab, l, "ends.c")?)));
    if let Some((library, program)) = found {
        traced(&lab, "--dir whole", &format!("mpiexec.{library} -n 2 {program} well 900")).expect(0);
        lab.line("trace --dir whole -- true").refused("not empty");
        let whole = files(&lab.work().join("whole"))[&0].clone();
        let saved = |bytes: &[u8]| fs::write(dir.join("rank-0.mpitrace"), bytes).unwrap();
        for cut in [100, whole.len() / 2, whole.len() - 4096] {
            saved(&whole[..cut]);
            refused("rank-0.mpitrace: ");
        }
        let mut longer = whole.clone();
        longer[32..40].copy_from_slice(&u64::MAX.to_le_bytes());
        saved(&longer);
        refused("truncated: ");
        saved(&whole);
        fs::write(dir.join("again.mpitrace"), &whole).unwrap();
        refused("two traces of rank 0");
    }
    for (line, about) in [
        ("trace --collect nothere", "nothere"),
        ("trace", "COMMAND"),
        ("trace --limit 0 -- true", "--limit"),
        ("trace -o missing/x.html -- true", "the folder does not exist"),
        ("trace -t 5 -- true", "trace takes no --time"),
    ] {
        lab.line(line).refused(about);
    }
    // A program that does not exist has the exit code of shells.
    lab.line("trace -- ./nothere").failed(127, "./nothere");
}
