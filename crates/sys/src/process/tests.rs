//! Real processes: this test executable starts itself again. A role is the name of an ignored test, which the test
//! harness of the child runs because the role is one of its arguments.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
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

struct Talking {
    child: Child,
    to: Option<TimedWriter>,
    lines: BufReader<File>,
}

impl Talking {
    fn start(spawn: Spawn<'_>) -> Self {
        let mut child = spawn.piped().start().unwrap();
        let (to, from) = child.take_pipes().unwrap();
        Self { child, to: Some(to), lines: BufReader::new(from.into()) }
    }

    /// The next line that a role wrote, past what the harness prints.
    fn said(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).unwrap() > 0, "the child says something before it ends");
            if let Some((_, said)) = line.split_once("say:") {
                return said.trim_end().to_owned();
            }
        }
    }

    fn tell(&mut self, line: &str) -> std::io::Result<()> {
        let to = self.to.as_mut().ok_or(std::io::ErrorKind::NotConnected)?;
        to.write_all(format!("{line}\n").as_bytes())
    }
}

/// As [`Talking::start`], where no emulator runs the tests.
fn talking(spawn: Spawn<'_>) -> Option<Talking> {
    (!crate::testing::is_emulated()).then(|| Talking::start(spawn))
}

fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "say:{text}").unwrap();
    out.flush().unwrap();
}

fn sleep_long() {
    nanosleep_until(monotonic_ns() + 60 * SECOND_NS);
}

fn comes_true(holds: impl Fn() -> bool) -> bool {
    child::look_until(monotonic_ns() + PATIENCE_NS, || holds().then_some(())).is_some()
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
    let mut tied = Talking::start(role("child_hangs").die_with_parent());
    let mut loose = Talking::start(role("child_hangs"));
    tied.said();
    loose.said();
    say(&format!("{} {}", tied.child.pid(), loose.child.pid()));
    sleep_long();
}

#[test]
#[ignore = "child process of another test"]
fn child_listens() {
    for line in std::io::stdin().lines() {
        say(&line.unwrap().to_uppercase());
    }
    say("end");
}

#[test]
#[ignore = "child process of another test"]
fn child_counts() {
    let mut lines = std::io::stdin().lines();
    let fd = lines.next().expect("a descriptor comes").unwrap();
    let counters = SharedCounters::open_fd(fd.parse().unwrap(), 2).unwrap();
    counters.add(1, 40);
    say(&counters.get(0).to_string());
    assert!(lines.next().is_none());
    counters.add(1, 2);
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
    let mut family = Talking::start(role("child_with_family"));
    family.said();
    let group = rustix::process::getpgrp().as_raw_nonzero().get();
    let before = processes_of_group(group).len();
    let cleared = kill_rest_of_group(monotonic_ns() + PATIENCE_NS);
    reap_orphans();
    say(&format!("{before} {cleared} {}", processes_of_group(group).len()));
}

#[test]
fn a_taken_stdout_ends_with_its_process_whoever_inherits() {
    let Some(mut child) = talking(role("child_takes_stdout").new_group()) else { return };
    let heir: i32 = child.said().parse().unwrap();
    assert_eq!(child.lines.read_line(&mut String::new()).unwrap(), 0);
    assert!(pid_is_alive(heir));
    // The heir is of the child's group, and goes with it.
    assert!(child.child.wait(PATIENCE_NS).unwrap().success());
    assert!(!pid_is_alive(heir));
}

#[test]
fn a_subreaper_kills_and_reaps_the_rest_of_its_group() {
    let Some(mut child) = talking(role("child_clears_its_group").new_group()) else { return };
    assert_eq!(child.said(), "4 true 1");
}

#[test]
fn a_child_that_hangs_is_killed_within_the_bound() {
    let Some(mut child) = talking(role("child_hangs").new_group()) else { return };
    assert_eq!(child.said(), "up");
    let begin_ns = monotonic_ns();
    let late = child.lines.get_mut().read_until(&mut [0; 8], Some(begin_ns + 20_000_000));
    assert_eq!(late.unwrap_err().kind(), std::io::ErrorKind::TimedOut);
    assert_eq!(child.child.wait(20_000_000), None);
    assert!(monotonic_ns() - begin_ns >= 40_000_000);
    let pid = child.child.pid();
    assert!(pid_is_alive(pid) && processes_of_group(pid) == [pid]);
    let begin_ns = monotonic_ns();
    drop(child);
    assert!(monotonic_ns() - begin_ns < 2 * SECOND_NS);
    assert!(!pid_is_alive(pid) && processes_of_group(pid).is_empty());
}

#[test]
fn a_stopped_child_is_seen_continued_and_killed() {
    let Some(mut child) = talking(role("child_hangs").new_group()) else { return };
    child.said();
    let pid = child.child.pid();
    stop_process(pid).unwrap();
    assert!(comes_true(|| state_of(pid) == Some('T')));
    continue_process(pid).unwrap();
    assert!(comes_true(|| state_of(pid) != Some('T')));
    stop_process(pid).unwrap();
    child.child.kill_group();
    assert_eq!(child.child.wait(PATIENCE_NS).unwrap().signal(), Some(libc::SIGKILL));
    assert_eq!(child.child.try_wait().unwrap().signal(), Some(libc::SIGKILL), "asked twice, answered alike");
}

#[test]
fn a_child_dies_with_its_parent_and_the_rest_with_the_group() {
    let Some(mut parent) = talking(role("child_with_family").new_group()) else { return };
    let pids: Vec<i32> = parent.said().split(' ').map(|p| p.parse().unwrap()).collect();
    let [tied, loose] = pids[..] else { panic!("{pids:?}") };
    assert!(pid_is_alive(tied) && pid_is_alive(loose));
    // The parent alone is killed: the tied one follows by the kernel's doing, the loose one stays.
    parent.child.kill();
    assert!(comes_true(|| !pid_is_alive(tied)));
    assert!(pid_is_alive(loose));
    // The end of the leader is noticed: what is left of its group goes.
    assert_eq!(parent.child.wait(PATIENCE_NS).unwrap().signal(), Some(libc::SIGKILL));
    assert!(!pid_is_alive(loose));
}

#[test]
fn lines_go_both_ways_and_the_end_of_stdin_is_the_end() {
    let Some(mut child) = talking(role("child_listens").new_group()) else { return };
    child.tell("once").unwrap();
    assert_eq!(child.said(), "ONCE");
    child.tell("again").unwrap();
    assert_eq!(child.said(), "AGAIN");
    child.to = None;
    assert_eq!(child.said(), "end");
    assert!(child.child.wait(PATIENCE_NS).unwrap().success());
}

#[test]
fn counters_are_seen_across_processes() {
    let counters = SharedCounters::create(2).unwrap();
    counters.add(0, 17);
    let Some(mut child) = talking(role("child_counts").pass_fd(counters.fd())) else { return };
    child.tell(&counters.fd().as_raw_fd().to_string()).unwrap();
    assert_eq!(child.said(), "17");
    assert_eq!(counters.get(1), 40);
    child.to = None;
    assert!(child.child.wait(PATIENCE_NS).unwrap().success());
    assert_eq!(counters.get(1), 42);
}

#[test]
fn what_can_not_be_started_says_why() {
    let null = std::fs::File::open("/dev/null").unwrap();
    let low = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    assert!(low.as_raw_fd() >= 3);
    let e = role("child_hangs").pass_fd(std::io::stderr().as_fd()).start().unwrap_err();
    assert!(e.to_string().contains("descriptor 2"), "{e}");
    assert!(role("child_hangs").pass_fd(null.as_fd()).start().unwrap().take_pipes().is_none());
    assert_eq!(program(), std::path::Path::new("/proc/self/exe"));
}
