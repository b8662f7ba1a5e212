//! Real processes: this test executable starts itself again. A role is the name of an ignored test, which the test
//! harness of the child runs because the role is one of its arguments.

use std::io::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::ExitStatusExt;

use super::*;
use crate::shared::SharedCounters;
use crate::thread::{monotonic_ns, nanosleep_until};

const SECOND_NS: u64 = 1_000_000_000;
/// Far more than anything here takes, also on a busy machine.
const PATIENCE_NS: u64 = 30 * SECOND_NS;

fn role(name: &str) -> Spawn<'static> {
    Spawn::worker(&format!("process::tests::{name}"))
        .arg("--ignored")
        .arg("--exact")
        .arg("--nocapture")
        .arg("--test-threads=1")
}

/// The next line that a role wrote, past what the harness prints.
fn said(child: &mut Child) -> String {
    loop {
        let line = child.read_line(PATIENCE_NS).unwrap().expect("the child says something before it ends");
        if let Some((_, said)) = line.split_once("say:") {
            return said.to_owned();
        }
    }
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "say:{text}").unwrap();
    out.flush().unwrap();
}

fn sleep_long() {
    nanosleep_until(monotonic_ns() + 60 * SECOND_NS);
}

fn within(limit_ns: u64, holds: impl Fn() -> bool) -> bool {
    let deadline_ns = monotonic_ns() + limit_ns;
    loop {
        if holds() {
            return true;
        }
        if monotonic_ns() > deadline_ns {
            return false;
        }
        nanosleep_until(monotonic_ns() + 5_000_000);
    }
}

#[test]
#[ignore = "child process of another test"]
fn child_hangs() {
    say("up");
    sleep_long();
}

#[test]
#[ignore = "child process of another test"]
fn child_with_family() {
    let mut tied = role("child_hangs").die_with_parent().piped().start().unwrap();
    let mut loose = role("child_hangs").piped().start().unwrap();
    said(&mut tied);
    said(&mut loose);
    say(&format!("{} {}", tied.pid(), loose.pid()));
    sleep_long();
}

#[test]
#[ignore = "child process of another test"]
fn child_listens() {
    let life = life_line(|| say("on_end")).unwrap();
    loop {
        match life.next(PATIENCE_NS) {
            Received::Line(line) if line == "quit" => return,
            Received::Line(line) => say(&line.to_uppercase()),
            Received::Nothing => panic!("no line and no end"),
            Received::End => {
                say("end");
                // Gives the life line's own thread time to say its part.
                nanosleep_until(monotonic_ns() + SECOND_NS / 5);
                return;
            }
        }
    }
}

#[test]
#[ignore = "child process of another test"]
fn child_counts() {
    let life = life_line(|| {}).unwrap();
    let Received::Line(fd) = life.next(PATIENCE_NS) else { panic!("no descriptor came") };
    let counters = SharedCounters::open_fd(fd.parse().unwrap(), 2).unwrap();
    counters.add(1, 40);
    say(&counters.get(0).to_string());
    while life.next(PATIENCE_NS) != Received::End {}
    counters.add(1, 2);
}

#[test]
#[ignore = "child process of another test"]
fn child_says_without_end() {
    let bytes = "x".repeat(1 << 16);
    loop {
        print!("{bytes}");
    }
}

#[test]
#[ignore = "child process of another test"]
#[allow(clippy::zombie_processes, reason = "that the heir outlives its parent is what is tested")]
fn child_takes_stdout() {
    let mut to = take_stdout().unwrap();
    let heir = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    writeln!(to, "say:{}", heir.id()).unwrap();
}

#[test]
#[ignore = "child process of another test"]
fn child_clears_its_group() {
    become_subreaper().unwrap();
    let mut family = role("child_with_family").piped().start().unwrap();
    said(&mut family);
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    let before = processes_of_group(group).len();
    let cleared = kill_rest_of_group(monotonic_ns() + PATIENCE_NS);
    reap_orphans();
    say(&format!("{before} {cleared} {}", processes_of_group(group).len()));
}

#[test]
fn a_taken_stdout_ends_with_its_process_whoever_inherits() {
    let mut child = role("child_takes_stdout").new_group().piped().start().unwrap();
    let heir: i32 = said(&mut child).parse().unwrap();
    assert!(child.read_line(PATIENCE_NS).unwrap().is_none());
    assert!(pid_is_alive(heir));
    // The heir is of the child's group, and goes with it.
    assert!(child.wait(PATIENCE_NS).unwrap().success());
    assert!(!pid_is_alive(heir));
}

#[test]
fn a_subreaper_kills_and_reaps_the_rest_of_its_group() {
    let mut child = role("child_clears_its_group").new_group().piped().start().unwrap();
    assert_eq!(said(&mut child), "4 true 1");
}

#[test]
fn a_child_that_hangs_is_killed_within_the_bound() {
    let mut child = role("child_hangs").new_group().piped().start().unwrap();
    assert_eq!(said(&mut child), "up");
    let begin_ns = monotonic_ns();
    assert!(matches!(child.read_line(20_000_000), Err(ReadError::TimedOut { .. })));
    assert_eq!(child.wait(20_000_000), None);
    assert!(monotonic_ns() - begin_ns >= 40_000_000);
    let pid = child.pid();
    assert!(pid_is_alive(pid) && processes_of_group(pid) == [pid]);
    let begin_ns = monotonic_ns();
    drop(child);
    assert!(monotonic_ns() - begin_ns < 2 * SECOND_NS);
    assert!(!pid_is_alive(pid) && processes_of_group(pid).is_empty());
}

#[test]
fn a_stopped_child_is_seen_continued_and_killed() {
    let mut child = role("child_hangs").new_group().piped().start().unwrap();
    said(&mut child);
    let pid = child.pid();
    stop_process(pid).unwrap();
    assert!(within(PATIENCE_NS, || state_of(pid) == Some('T')));
    continue_process(pid).unwrap();
    assert!(within(PATIENCE_NS, || state_of(pid) != Some('T')));
    stop_process(pid).unwrap();
    child.kill_group();
    assert_eq!(child.wait(PATIENCE_NS).unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(child.try_wait().unwrap().signal(), Some(libc::SIGKILL), "asked twice, answered alike");
}

#[test]
fn a_child_dies_with_its_parent_and_the_rest_with_the_group() {
    let mut parent = role("child_with_family").new_group().piped().start().unwrap();
    let pids: Vec<i32> = said(&mut parent).split(' ').map(|p| p.parse().unwrap()).collect();
    let [tied, loose] = pids[..] else { panic!("{pids:?}") };
    assert!(pid_is_alive(tied) && pid_is_alive(loose));
    // The parent alone is killed: the tied one follows by the kernel's doing, the loose one stays.
    parent.kill();
    assert!(within(PATIENCE_NS, || !pid_is_alive(tied)));
    assert!(pid_is_alive(loose));
    // The end of the leader is noticed: what is left of its group goes.
    assert_eq!(parent.wait(PATIENCE_NS).unwrap().signal(), Some(libc::SIGKILL));
    assert!(!pid_is_alive(loose));
}

#[test]
fn lines_go_both_ways_and_the_end_of_stdin_is_the_end() {
    let mut child = role("child_listens").new_group().stdin_json("{\"first\":1}").start().unwrap();
    assert_eq!(said(&mut child), "{\"FIRST\":1}");
    child.write_line("again").unwrap();
    assert_eq!(said(&mut child), "AGAIN");
    child.close_stdin();
    let mut last = [said(&mut child), said(&mut child)];
    last.sort();
    assert_eq!(last, ["end", "on_end"]);
    assert!(child.wait(PATIENCE_NS).unwrap().success());
    assert!(child.write_line("late").is_err());

    let mut child = role("child_listens").stdin_json("quit").start().unwrap();
    assert!(child.wait(PATIENCE_NS).unwrap().success());
}

#[test]
fn counters_are_seen_across_processes() {
    let counters = SharedCounters::create(2).unwrap();
    counters.set(0, 17);
    let fd = counters.fd().as_raw_fd().to_string();
    let mut child = role("child_counts").pass_fd(counters.fd()).stdin_json(&fd).start().unwrap();
    assert_eq!(said(&mut child), "17");
    assert_eq!(counters.get(1), 40);
    child.close_stdin();
    assert!(child.wait(PATIENCE_NS).unwrap().success());
    assert_eq!(counters.get(1), 42);
}

#[test]
fn endless_output_without_a_line_is_cut_off() {
    let mut child = role("child_says_without_end").piped().start().unwrap();
    let error = loop {
        match child.read_line(PATIENCE_NS) {
            Ok(Some(_)) => {}
            other => break other,
        }
    };
    assert!(matches!(error, Err(ReadError::TooLong)), "{error:?}");
}

#[test]
fn what_can_not_be_started_says_why() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let low = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    assert!(low.as_raw_fd() >= 3);
    let e = role("child_hangs").pass_fd(std::io::stderr().as_fd()).start().unwrap_err();
    assert!(e.to_string().contains("descriptor 2"), "{e}");
    let mut unpiped = role("child_hangs").pass_fd(null.as_fd()).start().unwrap();
    assert!(unpiped.write_line("x").is_err() && unpiped.read_line(0).is_err());
    assert_eq!(program(), std::path::Path::new("/proc/self/exe"));
}
