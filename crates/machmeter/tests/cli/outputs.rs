//! Tests of outputs that can't be written, for every verb: closed pipes, full devices and disks, folders that are missing or belong to another user.
//!
//! The run keeps the rest of its result, and each output has one line.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they skip")]

use std::fs::{self, File};
use std::process::Command;

use crate::program::{
    Ended, Lab, Running, can_mount, is_loaded, is_root, kept_runs, names_in, warned, words,
};
use crate::verbs::{Kept, VERBS, Verb, has_mpi, lab, takes_output};
use machmeter::{Registries, command_line};
use machmeter_data::record::Warning;

/// The short call of each verb in a separate lab, with its output if stdout is read.
fn short_calls() -> impl Iterator<Item = (&'static Verb, Lab, Ended)> {
    VERBS.iter().filter(|v| v.name != "mpi" || has_mpi()).map(|v| {
        let lab = lab();
        let read = lab.line(&v.line("", v.short));
        (v, lab, read)
    })
}

/// The end of `command` if no process reads its stdout and, with `also_stderr`, its stderr.
fn unread(mut command: Command, also_stderr: bool) -> Ended {
    let (reader, writer) = std::io::pipe().unwrap();
    if also_stderr {
        command.stderr(writer.try_clone().unwrap());
    }
    command.stdout(writer);
    drop(reader);
    Running::of(command).end()
}

/// Both ended with the same exit code. A short run is partial (5) if other programs take its time.
#[track_caller]
fn is_like(verb: &Verb, read: &Ended, unread: &Ended) {
    let is_measured = verb.kept == Kept::Record;
    let code = |ended: &Ended| ended.code.filter(|code| *code != 5 || !is_measured).unwrap_or(0);
    assert_eq!(code(unread), code(read), "machmeter {}\n{}", unread.shown, unread.stderr);
}

#[test]
fn a_reader_that_closes_the_pipe_changes_no_exit_code() {
    for (verb, lab, read) in short_calls() {
        let command = |globals: &str| lab.command(&words(&verb.line(globals, verb.short)));
        for also_stderr in [false, true] {
            is_like(verb, &read, &unread(command(""), also_stderr));
        }
        if verb.kept == Kept::Record {
            let alone = unread(command("--json -o r2.json"), true);
            is_like(verb, &read, &alone);
            assert_eq!(lab.record("r2.json").complete, alone.code == Some(0), "{}", verb.name);
        }
    }
    // Long texts; a pager may close the pipe after the first screen.
    for line in ["--help", "noise --dry-run"] {
        unread(Lab::new().command(&words(line)), false).expect(0);
    }
}

/// The record is complete, or other programs took the time of the run.
#[track_caller]
fn is_whole(lab: &Lab) {
    let record = lab.record("r2.json");
    assert!(record.complete || is_loaded(&record), "{}: {:?}", record.run.verb, record.warnings);
}

#[test]
fn a_full_stdout_is_one_error_and_the_record_is_kept() {
    let full = |lab: &Lab, line: &str| {
        let mut command = lab.command(&words(line));
        command.stdout(File::options().write(true).open("/dev/full").unwrap());
        Running::of(command).end()
    };
    for (verb, lab, read) in short_calls() {
        // Errors when printing help are ignored.
        if read.stdout.is_empty() || verb.short.ends_with("--help") {
            println!("{} prints no result here", verb.name);
            continue;
        }
        full(&lab, &verb.line("", verb.short)).failed(4, "o space left");
        if verb.kept == Kept::Record {
            full(&lab, &verb.line("--json -o r2.json", verb.short)).failed(4, "o space left");
            is_whole(&lab);
            assert_eq!(kept_runs(&lab.state()).len(), 3, "{}", verb.name);
        }
    }
}

#[test]
fn a_full_file_is_one_error_and_the_rest_is_kept() {
    for verb in VERBS.iter().filter(|v| v.kept == Kept::Record && (v.name != "mpi" || has_mpi())) {
        let lab = lab();
        for file in ["-o /dev/full", "--json=/dev/full"] {
            lab.line(&verb.line(&format!("{file} -o r2.json"), verb.short)).failed(4, "o space left");
            is_whole(&lab);
        }
        assert_eq!(kept_runs(&lab.state()).len(), 2, "{}", verb.name);
    }
}

#[test]
fn a_path_that_cannot_be_written_is_refused_before_anything_is_measured() {
    let lab = lab();
    fs::create_dir(lab.work().join("folder.html")).unwrap();
    let before = lab.files();
    let tree = command_line(&Registries::default());
    // Verbs that measure nothing open their file once its text is complete: code 4. tests/mpi/trace.rs covers `trace`.
    let is_apart = |v: &&Verb| ["export", "report", "trace"].contains(&v.name);
    let writes = |v: &&Verb| !is_apart(v) && tree.find_subcommand(v.name).is_none_or(takes_output);
    for verb in VERBS.iter().filter(writes) {
        // A long call would exceed the time limit of the lab.
        let options = verb.long.first().map_or(verb.short, |long| long.options);
        for (file, why) in
            [("folder.html", "it is a folder"), ("missing/x.html", "the folder does not exist")]
        {
            lab.line(&verb.line(&format!("-o {file}"), options)).refused(why);
        }
    }
    for option in ["--json=folder.html", "--csv=missing/x", "--md=missing/x"] {
        lab.line(&format!("noise -t 1h {option}")).refused("cannot write");
    }
    assert_eq!(lab.files(), before);
}

/// Runs a shell script in a separate mount namespace, in which `small` is a file system of `size`. `None`, with the reason printed, if that is impossible.
fn on_small_disk(lab: &Lab, size: &str, script: &str) -> Option<Ended> {
    let small = lab.work().join("small");
    fs::create_dir_all(&small).unwrap();
    if !can_mount(&small) {
        println!("skipped: no private mount namespace here");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c"]);
    command.arg(format!("mount -t tmpfs -o size={size} none small || exit 99; {script}"));
    lab.set_up(command.arg(env!("CARGO_BIN_EXE_machmeter")));
    let run = Running::of(command).end();
    assert!(!run.stderr.contains(".tmp") && !run.stderr.contains(".parquet"), "left behind: {}", run.stderr);
    Some(run)
}

#[test]
fn a_full_disk_loses_no_record_and_leaves_no_part() {
    // No space at all: the record goes to stdout and to the history.
    let lab = Lab::new();
    let Some(run) =
        on_small_disk(&lab, "8k", "$0 noise -t 100ms --json -o small/r.json; c=$?; ls -A small >&2; exit $c")
    else {
        return;
    };
    run.failed(4, "o space left");
    assert!(run.record().complete);

    // The state directory on the full disk: the record has a warning.
    let lab = Lab::new();
    let script = "MACHMETER_STATE=small/state $0 noise -t 100ms --json -o r.json; c=$?; find small -type f >&2; exit $c";
    let run = on_small_disk(&lab, "16k", script).unwrap();
    let record = run.expect(0).record();
    warned(&record, "W901");
    assert!(lab.record("r.json").complete);

    // Space for the record, but not for the samples; a threshold below a turn produces very many.
    let lab = Lab::new();
    let arguments = "noise -t 600ms --window 10us --threshold 1ns --gap-capacity 1000000 --attribution none --json --no-save -o";
    lab.line(&format!("{arguments} all.json")).expect(0);
    let length = |name: &str| fs::metadata(lab.work().join(name)).unwrap().len();
    let raw: u64 = lab.files().iter().filter(|f| f.ends_with(".parquet")).map(|f| length(f)).sum();
    let room = length("all.json") * 5 / 4 + 8192;
    if raw <= room {
        return println!("skipped: samples of {raw} bytes fit into {room} bytes");
    }
    let script = format!("$0 {arguments} small/r.json; c=$?; ls -A small >&2; cp small/r.json .; exit $c");
    let run = on_small_disk(&lab, &format!("{}k", room.div_ceil(1024)), &script).unwrap();
    let record = run.expect(0).record();
    warned(&record, "W902");
    assert!(lab.record("r.json").raw.is_empty());
}

#[test]
fn a_home_that_cannot_be_written_costs_only_the_history() {
    let lab = Lab::new();
    let with = |home: Option<&str>| {
        let mut command = lab.command(&["noise", "-t", "100ms", "--json"]);
        command.env_remove("MACHMETER_STATE").env_remove("XDG_STATE_HOME").env_remove("HOME");
        home.map(|h| command.env("HOME", h));
        Running::of(command).end()
    };
    // No user can create folders in /proc, not even root.
    for home in [None, Some("/proc")] {
        let record = with(home).expect(0).record();
        assert!(record.complete && record.metrics.iter().any(|m| m.value.is_some()));
        warned(&record, "W901");
    }
    assert!(lab.files().is_empty(), "{:?}", lab.files());
    if !is_root() {
        return println!("skipped the other user: needs root");
    }
    // The state directory belongs to another user.
    fs::create_dir(lab.state()).unwrap();
    let record = lab.nobody("noise -t 100ms --json -o r.json").expect(0).record();
    let is_said = |w: &Warning| w.code == "W901" && w.text.contains("ermission");
    assert!(record.warnings.iter().any(is_said), "{:?}", record.warnings);
    assert_eq!(lab.record("r.json").id, record.id);
    assert!(names_in(&lab.state()).is_empty());
    // A folder without write access: nothing is measured.
    let run = lab.nobody("noise -t 100ms --json --no-save -o /proc/r.json");
    run.failed(2, "cannot write: permission denied");
    assert_eq!(run.record().stopped_by, "error");
}

#[test]
fn a_file_size_limit_is_reported_as_a_full_disk_is() {
    let measuring = ["noise", "-t", "100ms", "--raw", "none", "--no-save", "-q", "-o", "r.json"];
    let reading = [
        "report",
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/gedae/altivec1.csv"),
        "-o",
        "r.html",
    ];
    for arguments in [&measuring[..], &reading] {
        let lab = Lab::new();
        let command = lab.command(arguments);
        let run = Running::of(lab.after(&["sh", "-c"], "ulimit -f 8", &command)).end();
        assert_eq!((run.expect(4).errors().len(), lab.files()), (1, Vec::new()), "{}", run.stderr);
    }
}
