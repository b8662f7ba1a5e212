//! Real commands and the process that guards them, which is this program too: so it has no test harness.
#![allow(clippy::print_stdout, reason = "it tells which tests passed, as the test harness does")]
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with what went wrong; the lint knows tests of the harness only"
)]

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use machmeter_engine::settings::{GUARD, Settings};
use machmeter_engine::worker::{ARGUMENT, Worker};
use machmeter_sys::process::{Spawn, commands_with, kill_process, pid_is_alive};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

const MS: u64 = 1_000_000;
const ROLES: [Worker; 2] = [GUARD, Worker { name: "setting-owner", run: owner }];

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|a| a == ARGUMENT) {
        let role = ROLES.iter().find(|w| arguments.get(1).is_some_and(|a| a == w.name));
        return role.map_or(ExitCode::from(2), |w| ExitCode::from((w.run)(&arguments[2..])));
    }
    // As of the test harness: words choose tests, options are its own affair.
    let words: Vec<&str> =
        arguments.iter().filter_map(|a| a.to_str()).filter(|a| !a.starts_with('-')).collect();
    run(&words, commands_that_end_are_run_once_per_change);
    run(&words, a_command_that_fails_says_its_last_line);
    run(&words, a_command_that_stays_ends_with_all_its_processes_before_the_other_setting);
    run(&words, a_command_that_does_not_want_to_end_is_killed);
    run(&words, what_a_dying_command_leaves_in_its_group_is_ended_too);
    run(&words, a_command_that_stays_and_dies_is_noticed);
    run(&words, a_command_that_talks_without_end_is_not_held_up);
    run(&words, what_a_command_left_behind_goes_on_writing);
    run(&words, a_setting_ends_with_the_program);
    run(&words, a_guard_that_is_killed_is_noticed_and_its_setting_ended);
    ExitCode::SUCCESS
}

/// Runs a test whose name holds one of the words, if there are any.
fn run(words: &[&str], test: impl Fn()) {
    let name = std::any::type_name_of_val(&test).rsplit("::").next().unwrap();
    if words.is_empty() || words.iter().any(|w| name.contains(w)) {
        test();
        println!("test {name} ... ok");
    }
}

/// Waits until it `holds`, 10 s at most; whether it does.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let until_ns = monotonic_ns() + 10_000 * MS;
    while !holds() {
        if monotonic_ns() > until_ns {
            return false;
        }
        nanosleep_until(monotonic_ns() + 2 * MS);
    }
    true
}

fn settings(a: &str, b: &str) -> Settings {
    Settings::new([a.to_owned(), b.to_owned()])
}

fn commands_that_end_are_run_once_per_change() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("log");
    let add = |what: &str| format!("printf {what} >> {}", file.display());
    let mut s = settings(&add("a"), &add("b"));
    for setting in [0, 1, 1, 0, 1] {
        s.apply(setting).unwrap();
        s.check().unwrap();
        assert!(!s.stays());
    }
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "abab");
}

fn a_command_that_fails_says_its_last_line() {
    let e = settings("echo one; echo 'no such scheduler' >&2; echo; exit 3", "true").apply(0).unwrap_err();
    let text = e.to_string();
    assert!(text.starts_with("setting A, `echo one;") && text.contains("exit status: 3"), "{text}");
    assert!(text.ends_with(": no such scheduler") && !text.contains('\n'), "{text}");
    assert!(settings("true", " ").apply(1).unwrap_err().to_string().contains("setting B, ` `: is empty"));
    let gone = settings("true", "/no/such/program").apply(1).unwrap_err().to_string();
    assert!(gone.contains("exit status: 127"), "{gone}");
}

/// A command that stays, and the file with the ids of its two processes.
fn staying(dir: &Path, before: &str) -> (String, PathBuf) {
    let file = dir.join("pids");
    let command = format!("{before} sleep 300 & echo $$ $! > {}; wait; sleep 300", file.display());
    (command, file)
}

/// The same, and the file in which the command says that it was asked to end.
fn staying_until_asked(dir: &Path) -> (String, PathBuf, PathBuf) {
    let asked = dir.join("asked");
    let (command, file) = staying(dir, &format!("trap 'echo yes > {}; exit 0' TERM;", asked.display()));
    (command, file, asked)
}

fn pids(file: &Path) -> Vec<i32> {
    let text = std::fs::read_to_string(file).unwrap();
    text.split_whitespace().map(|p| p.parse().unwrap()).collect()
}

/// A command that stays in force as setting A, and its processes.
fn staying_in_force(before: &str) -> (Settings, Vec<i32>) {
    let dir = tempfile::tempdir().unwrap();
    let (command, file) = staying(dir.path(), before);
    (in_force(&command), pids(&file))
}

/// A command that stays, in force as setting A.
fn in_force(command: &str) -> Settings {
    let mut s = settings(command, "true");
    s.apply(0).unwrap();
    assert!(s.stays());
    s
}

fn all_gone(pids: &[i32]) -> bool {
    soon(|| !pids.iter().any(|p| pid_is_alive(*p)))
}

fn a_command_that_stays_ends_with_all_its_processes_before_the_other_setting() {
    let dir = tempfile::tempdir().unwrap();
    let (command, file, asked) = staying_until_asked(dir.path());
    let mut s = in_force(&command);
    let of_a = pids(&file);
    assert_eq!(of_a.len(), 2);
    assert!(of_a.iter().all(|p| pid_is_alive(*p)));
    s.apply(0).unwrap();
    assert_eq!(pids(&file), of_a, "not started again");
    s.apply(1).unwrap();
    assert!(!s.stays() && all_gone(&of_a));
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "yes\n", "it was asked, not killed");
}

fn a_command_that_does_not_want_to_end_is_killed() {
    let (s, of_a) = staying_in_force("trap '' TERM;");
    let begun_ns = monotonic_ns();
    drop(s);
    assert!(monotonic_ns() - begun_ns >= 2_000 * MS, "it was asked first");
    assert!(all_gone(&of_a));
}

fn what_a_dying_command_leaves_in_its_group_is_ended_too() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("pids");
    let command =
        format!("sh -c \"trap '' TERM; echo \\$\\$ > {}; sleep 300\" & sleep 0.9; exit 1", file.display());
    let mut s = in_force(&command);
    let left = pids(&file);
    nanosleep_until(monotonic_ns() + 1_000_000_000);
    assert!(s.check().is_err());
    assert!(left.len() == 1 && all_gone(&left));
}

fn a_command_that_stays_and_dies_is_noticed() {
    let mut s = in_force("echo began; sleep 0.9; echo 'ran out of luck'; exit 4");
    nanosleep_until(monotonic_ns() + 1_500_000_000);
    let text = s.check().unwrap_err().to_string();
    assert!(text.contains("ended while it was measured: exit status: 4: ran out of luck"), "{text}");
    s.check().unwrap();
}

fn a_command_that_talks_without_end_is_not_held_up() {
    let mut s = in_force("yes talking");
    s.check().unwrap();
    s.apply(1).unwrap();
}

/// A main program that has a setting in force and waits to be killed.
fn owner(arguments: &[OsString]) -> u8 {
    let command = arguments[0].to_str().unwrap();
    let _setting = in_force(command);
    nanosleep_until(monotonic_ns() + 60_000 * MS);
    0
}

fn a_setting_ends_with_the_program() {
    let dir = tempfile::tempdir().unwrap();
    let (command, file, asked) = staying_until_asked(dir.path());
    let mut owner = Spawn::worker("setting-owner").arg(command).start().unwrap();
    assert!(soon(|| file.exists()));
    nanosleep_until(monotonic_ns() + 700 * MS);
    let of_a = pids(&file);
    assert!(of_a.len() == 2 && of_a.iter().all(|p| pid_is_alive(*p)));
    kill_process(owner.pid()).unwrap();
    assert!(all_gone(&of_a));
    assert_eq!(std::fs::read_to_string(asked).unwrap(), "yes\n", "it was asked, not killed");
    assert!(owner.wait(10_000 * MS).is_some());
}

fn a_guard_that_is_killed_is_noticed_and_its_setting_ended() {
    let (mut s, of_a) = staying_in_force("");
    let own = std::process::id().to_string();
    for guard in commands_with(GUARD.name) {
        // Another run of these tests has guards of its own.
        let stat = std::fs::read_to_string(format!("/proc/{guard}/stat")).unwrap_or_default();
        if stat.rsplit(')').next().and_then(|s| s.split_whitespace().nth(1)) == Some(&own) {
            kill_process(guard).unwrap();
        }
    }
    let why = s.check().unwrap_err().to_string();
    assert!(why.contains("the process that guards it ended: signal: 9"), "{why}");
    assert!(all_gone(&of_a));
}

fn what_a_command_left_behind_goes_on_writing() {
    let dir = tempfile::tempdir().unwrap();
    let wrote = dir.path().join("wrote");
    let mut s = settings(&format!("(sleep 1; echo alive; echo > {}) &", wrote.display()), "true");
    s.apply(0).unwrap();
    assert!(!s.stays() && !wrote.exists());
    s.apply(1).unwrap();
    assert!(soon(|| wrote.exists()), "it was ended by SIGPIPE");
}
