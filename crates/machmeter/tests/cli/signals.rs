//! Tests of signals for every verb. It must end soon with the documented exit code; its partial record is printed, written and kept; and it leaves no process
//! or file. The program `mpi` tests the end of MPI ranks.

#![allow(clippy::disallowed_methods, reason = "the wall time of whole runs, as a user's watch shows it")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use crate::program::{Lab, Running, catches, cpu_time, descendants, is_root, names_in, soon};
use crate::verbs::{Begun, Kept, Long, VERBS, Verb, has_mpi, is_kept, lab};
use machmeter_data::Record;
use machmeter_data::summary::{Fit, Fitness};
use machmeter_sys::process::{commands_with, pid_is_alive};
use rustix::process::Signal;

/// All files below a folder, with their paths from it.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for name in names_in(&next) {
            let path = next.join(name);
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Waits until the call reaches the state in its row.
#[track_caller]
fn wait_for(begun: Begun, lab: &Lab, run: &mut Running, signal: Signal) {
    let id = run.id();
    let is_there = match begun {
        Begun::Line(text, more_ms) => {
            let heard = run.hear(text).is_some();
            thread::sleep(Duration::from_millis(more_ms));
            heard
        }
        Begun::Child(word) => soon(|| {
            let below = descendants(id as i32);
            commands_with(word).iter().any(|pid| below.contains(pid))
        }),
        Begun::FileIn(folder) => soon(|| !names_in(&lab.work().join(folder)).is_empty()),
        Begun::Handler => soon(|| catches(id, signal)),
        Begun::Work(ms) => soon(|| cpu_time(id) >= Duration::from_millis(ms)),
    };
    assert!(is_there, "machmeter {}: {begun:?} did not come", run.shown());
}

/// Starts a long call, sends the signal, and checks the end.
fn interrupt(verb: &Verb, long: &Long, signal: Signal, code: i32, by: &str) {
    let lab = lab();
    let before = files_below(&lab.work());
    let keeps = verb.kept == Kept::Record;
    let line = verb.line(if keeps { "--json -o cut.json" } else { "" }, long.options);
    let mut run = lab.start(&line);
    wait_for(long.begun, &lab, &mut run, signal);
    let below = descendants(run.id() as i32);
    let sent = Instant::now();
    run.send(signal);
    let ended = run.end();
    let answer = sent.elapsed();
    println!("{signal:?} answered after {answer:?}: machmeter {line}");
    assert!(answer < Duration::from_secs(long.within_s), "{answer:?}: machmeter {line}");
    ended.expect(code);
    assert!(soon(|| !below.iter().any(|p| pid_is_alive(*p))), "machmeter {line}: some of {below:?} are left");
    let mut left = files_below(&lab.work());
    left.retain(|path| !before.contains(path));
    if keeps {
        let record = ended.record();
        assert_eq!((record.complete, record.stopped_by.as_str()), (false, by), "machmeter {line}");
        is_kept(&lab, &record, "cut.json");
        (long.check)(&record);
        let own: Vec<PathBuf> = lab.record("cut.json").raw.iter().map(|r| lab.work().join(&r.file)).collect();
        left.retain(|path| *path != lab.work().join("cut.json") && !own.contains(path));
    }
    // The bare command and `compat` choose file names; separate tests cover them.
    let has_own_names = ["", "compat"].contains(&verb.name);
    assert!(left.is_empty() || has_own_names, "machmeter {line}: left {left:?}");
}

/// True if a call is impossible here; prints the reason.
fn is_skipped(verb: &Verb, long: &Long) -> bool {
    let lacks_rights = long.options.contains("fifo") && !is_root();
    let lacks_mpi = verb.name == "mpi" && !has_mpi();
    if lacks_rights || lacks_mpi {
        println!("skipped: machmeter {} {}: needs root or MPI", verb.name, long.options);
    }
    lacks_rights || lacks_mpi
}

fn answers_an_interrupt(verb: &Verb) {
    for long in verb.long.iter().filter(|long| !is_skipped(verb, long)) {
        interrupt(verb, long, Signal::INT, 130, "signal:INT");
    }
}

fn is_probe(verb: &Verb) -> bool {
    machmeter::PROBES.iter().any(|p| p.info.name == verb.name)
}

#[test]
fn every_probe_answers_an_interrupt_in_every_state() {
    VERBS.iter().filter(|v| is_probe(v)).for_each(answers_an_interrupt);
}

#[test]
fn every_other_verb_answers_an_interrupt() {
    VERBS.iter().filter(|v| !is_probe(v)).for_each(answers_an_interrupt);
}

#[test]
fn every_verb_answers_a_termination() {
    for verb in VERBS {
        for long in verb.long.iter().take(1).filter(|long| !is_skipped(verb, long)) {
            interrupt(verb, long, Signal::TERM, 143, "signal:TERM");
        }
    }
}

#[test]
fn a_hangup_ends_a_run_unless_it_is_ignored() {
    let noise = VERBS.iter().find(|v| v.name == "noise").unwrap();
    interrupt(noise, &noise.long[0], Signal::HUP, 129, "signal:HUP");
    let lab = Lab::new();
    let command = lab.command(&["noise", "-t", "1s", "--json", "--no-save", "-v"]);
    let mut ignoring = Running::of(lab.after(&["sh", "-c"], "trap '' HUP", &command));
    ignoring.hear("noise: ").expect("the recording did not begin");
    ignoring.send(Signal::HUP);
    assert_eq!(ignoring.end().expect(0).errors().len(), 0);
}

#[test]
fn a_signal_hides_no_failure() {
    let lab = Lab::new();
    let mut full = lab.start("noise -t 20s --no-save -o /dev/full");
    full.hear("first look").expect("no first figure");
    full.send(Signal::INT);
    assert_eq!(full.end().expect(4).errors().len(), 1);
}

/// Times of the signal after the start, ms, most of them near the start of the first parts. Together they take 8 s.
const MOMENTS_MS: [u64; 10] = [50, 150, 250, 350, 500, 750, 1_000, 1_300, 1_650, 2_000];

fn honest(record: &Record, moment_ms: u64) {
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:INT"), "{moment_ms} ms");
    for m in &record.metrics {
        let wide = m.ci.as_ref().is_none_or(|ci| ci.high > ci.low);
        assert!(wide, "{moment_ms} ms: {} {:?} = {:?}: {:?}", m.id, m.params, m.value, m.ci);
    }
    let stolen = record.metrics.iter().find(|m| m.id == "noise.stolen_fraction");
    let known = stolen.is_some_and(|m| m.ci.is_some());
    let is_praised = |f: &Fitness| f.fit == Fit::Yes && f.purpose != "audio, video";
    assert!(known || !record.summary.fitness.iter().any(is_praised), "{moment_ms} ms: {:?}", record.summary);
}

#[test]
fn a_bare_run_stopped_at_any_moment_is_honest() {
    for (i, moment_ms) in MOMENTS_MS.into_iter().enumerate() {
        let lab = Lab::new();
        let json = i % 2 == 0;
        let started = Instant::now();
        let run = lab.start(if json { "-l quick --json" } else { "-l quick" });
        // Before the program handles signals, a signal ends it directly.
        assert!(soon(|| catches(run.id(), Signal::INT)), "it never handled signals");
        thread::sleep(Duration::from_millis(moment_ms).saturating_sub(started.elapsed()));
        let below = descendants(run.id() as i32);
        run.send(Signal::INT);
        let ended = run.end();
        ended.expect(130);
        // A run stopped before it measured has no files.
        let written = lab.files().into_iter().find(|f| Path::new(f).extension().is_some_and(|e| e == "json"));
        let record = if json { Some(ended.record()) } else { written.map(|f| lab.record(&f)) };
        let metrics = record.as_ref().map_or(0, |r| r.metrics.len());
        println!("after {moment_ms} ms: ended after {:?}, {metrics} figures", ended.wall);
        if let Some(record) = record {
            honest(&record, moment_ms);
        }
        let left = |pid: &&i32| std::fs::exists(format!("/proc/{pid}")).unwrap();
        assert_eq!(below.iter().filter(left).count(), 0, "{moment_ms} ms: processes are left");
    }
}

#[test]
fn a_limit_of_cpu_time_ends_a_run_as_a_signal_does() {
    let lab = Lab::new();
    let command = lab.command(&["noise", "-t", "30s", "--json", "--no-save", "-q", "-o", "r.json"]);
    let run = Running::of(lab.after(&["sh", "-c"], "ulimit -St 1", &command)).end();
    let record = run.expect(152).record();
    assert_eq!((record.complete, record.stopped_by.as_str()), (false, "signal:XCPU"));
    assert_eq!(lab.record("r.json").id, record.id);
}
