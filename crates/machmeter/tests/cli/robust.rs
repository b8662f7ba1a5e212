//! Tests that a run leaves nothing behind and affects no other process. `signals` covers signals, `outputs` covers outputs that can't be written.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::program::{Lab, Running, is_root, names_in, soon};
use rustix::process::Signal;

/// Scheduling attributes of a process: policy, priorities, nice value, CPUs.
fn scheduling_of(pid: u32) -> (Vec<String>, String) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // Fields are counted after the name, which ends with the last parenthesis: 18 priority, 19 nice, 40 and 41 real time.
    let fields: Vec<&str> = stat[stat.rfind(')').unwrap() + 2..].split(' ').collect();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let cpus = status.lines().find(|l| l.starts_with("Cpus_allowed_list")).unwrap().to_owned();
    ([18, 19, 40, 41].map(|i: usize| fields[i - 3].to_owned()).to_vec(), cpus)
}

fn settings() -> Vec<Option<String>> {
    ["sched_rt_runtime_us", "sched_rt_period_us", "perf_event_paranoid", "kptr_restrict"]
        .map(|s| fs::read_to_string(Path::new("/proc/sys/kernel").join(s)).ok())
        .to_vec()
}

/// Trace instances of the process `pid`; `None` if they are not visible. Tracefs is often not mounted, so it is mounted in a mount namespace that ends with
/// the listing.
fn instances_of(pid: u32) -> Option<Vec<String>> {
    let list =
        "d=$(mktemp -d) && mount -t tracefs none $d && ls $d/instances; s=$?; umount $d; rmdir $d; exit $s";
    let listed =
        Command::new("unshare").args(["-m", "sh", "-c", list]).stderr(Stdio::null()).output().ok()?;
    let ours = format!("machmeter-{pid}");
    let names = String::from_utf8_lossy(&listed.stdout).into_owned();
    let names = names.lines().filter(|n| *n == ours || n.starts_with(&format!("{ours}-"))).map(str::to_owned);
    listed.status.success().then(|| names.collect())
}

#[test]
fn nothing_is_left_behind_and_nobody_is_touched() {
    let lab = Lab::new();
    let mut bystander = Command::new("sleep").arg("60").spawn().unwrap();
    let before = (scheduling_of(bystander.id()), scheduling_of(std::process::id()), settings());
    let mut seen = Vec::new();
    let policies = ["auto", "other", "fifo:40"];
    for prio in policies.into_iter().filter(|p| *p != "fifo:40" || is_root()) {
        let run = lab.start(&format!("noise -t 100ms --no-save --prio {prio}"));
        let id = run.id();
        run.end().expect(0);
        seen.extend(instances_of(id).unwrap_or_default());
    }
    let mut stopped = lab.start("noise -t 30s --no-save -v");
    let id = stopped.id();
    stopped.hear("noise: ").unwrap();
    stopped.send(Signal::TERM);
    stopped.end().expect(143);
    seen.extend(instances_of(id).unwrap_or_default());
    let after = (scheduling_of(bystander.id()), scheduling_of(std::process::id()), settings());
    bystander.kill().unwrap();
    bystander.wait().unwrap();
    assert_eq!(before, after);
    assert!(seen.is_empty(), "trace instances left: {seen:?}");
    assert!(lab.files().is_empty(), "{:?}", lab.files());
    assert!(names_in(&lab.state().join("runs")).is_empty());
}

#[test]
fn what_a_killed_run_left_goes_with_the_next_start() {
    if !is_root() || instances_of(0).is_none() {
        return println!("skipped: needs root and tracefs");
    }
    let lab = Lab::new();
    let mut killed = lab.command(&["noise", "-t", "30s", "--attribution", "trace"]);
    killed.stderr(Stdio::null()).stdout(Stdio::null());
    let mut child = killed.spawn().unwrap();
    let there = |pid| instances_of(pid).is_some_and(|i| !i.is_empty());
    let appeared = soon(|| there(child.id()));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(appeared, "no trace instance was made");
    assert!(there(child.id()), "nothing was left to clean: the test tests nothing");
    // Process ids are far below this number.
    let (load, calls) = ("machmeter-load-999999999-00", "machmeter-calls-999999999-00");
    for left in [load, calls] {
        fs::create_dir(lab.work().join(left)).unwrap();
    }
    let mut next = lab.command(&["list", "codes"]);
    next.env("TMPDIR", lab.work());
    Running::of(next).end().expect(0);
    assert!(!there(child.id()));
    assert!(lab.files().is_empty(), "{:?}", lab.files());
}
