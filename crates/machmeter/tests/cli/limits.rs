//! A run takes what its limits leave, and says which limit is in its way.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::program::{Lab, NOBODY, Running, is_root};
use machmeter_sys::cgroup::Group;
use rustix::process::Signal;

/// Locked memory of a process, kB (`proc_pid_status(5)`).
fn locked_kb(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn a_long_run_fits_the_memory_of_its_control_group() {
    let lab = Lab::new();
    let group = match Group::create(&"memory=128M".parse().unwrap(), "robust") {
        Ok(group) => group,
        Err(e) => return println!("skipped: {e}"),
    };
    let mut run = lab.within(&group, "noise --json --no-save -v -t 600");
    run.hear("noise: ").expect("the recording did not begin");
    thread::sleep(Duration::from_secs(1));
    let locked = locked_kb(run.id());
    println!("{locked} kB locked");
    // A tenth of the group, and 256 kB of each stack.
    assert!(locked < (128 << 10) / 10 + (4 << 10), "{locked} kB are locked");
    run.send(Signal::INT);
    let record = run.end().expect(130).record();
    assert!(record.metrics.iter().any(|m| m.value.is_some()));
    lab.within(&group, "noise --json --no-save -v -t 1 --windows 100000000")
        .end()
        .refused("--windows 100000000");
    assert_eq!(group.oom_kills().unwrap_or(0), 0);
}

#[test]
fn a_user_without_room_for_processes_is_told_the_limit() {
    if !is_root() || !Path::new("/bin/bash").exists() {
        return println!("skipped: a user with few processes can only be had as root, with bash");
    }
    for tasks in 1..=4 {
        let lab = Lab::new();
        let words = ["interactive", "-t", "3", "--tasks", "video", "--loads", "burn", "-q"];
        let plain = lab.as_nobody(&words);
        let mut command = lab.after(&["/bin/bash", "-c"], &format!("ulimit -u {tasks}"), &plain);
        command.uid(NOBODY).gid(NOBODY);
        let ended = Running::of(command).end();
        ended.failed(4, "(ulimit -u)");
    }
}
