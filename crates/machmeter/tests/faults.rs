//! Faults put into runs of the memory and sync probes: one clear line or a reason instead of a price, never a number.
//!
//! Those of the ops probe (programs that are missing, fail, do not end or cannot start; files without room, permission or
//! length; huge pages and processes denied) are in `ops.rs`; a member that is killed and a lock that lets everybody in are in the
//! self-test of sync.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]
#![allow(clippy::disallowed_methods, reason = "the wall time of whole runs, as a user's watch shows it")]

mod program;

use std::fs;
use std::os::unix::process::CommandExt;
use std::time::{Duration, Instant};

use machmeter_data::{Metric, Record};
use machmeter_sys::cgroup::Group;
use program::{DOCUMENTED, Ended, Lab, Running, is_root, reasons, turn, warned};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Longest time beyond its plan that a run may take; tests run on busy machines.
const LATE: Duration = Duration::from_secs(8);
/// What two CPUs pay for a line is tens to hundreds of ns; where one of them has to wait for its turn it is ms.
const NO_TRANSFER_NS: f64 = 5_000.0;

fn of<'r>(record: &'r Record, id: &'r str) -> impl Iterator<Item = &'r Metric> {
    record.metrics.iter().filter(move |m| m.id == id)
}

fn some_cpu() -> usize {
    let mask = sched_getaffinity(None).unwrap();
    (0..CpuSet::MAX_CPU).find(|c| mask.is_set(*c)).unwrap()
}

#[test]
fn one_cpu_only_has_nobody_to_pay_for() {
    let _turn = turn();
    let lab = Lab::new();
    let cpu = some_cpu().to_string();
    let record = lab.run(&["sync", "-c", &cpu, "-t", "4", "--json", "-q"]).record();
    warned(&record, "W422");
    reasons(&record);
    for id in ["memory.core_to_core", "sync.handoff"] {
        assert!(of(&record, id).all(|m| m.value.is_none()), "{id}");
    }
    let record = lab.run(&["memory", "-c", &cpu, "--parts", "table", "-t", "4", "--json", "-q"]).record();
    warned(&record, "W415");
    reasons(&record);
}

/// Somebody else moves all threads of the run to one CPU, again and again: a partner that cannot run is no distance.
#[test]
fn partners_that_are_pinned_away_give_no_distance() {
    let _turn = turn();
    let lab = Lab::new();
    let seconds = Duration::from_secs(5);
    let running = lab.start(&["sync", "--parts", "transfer", "-t", "5", "--json", "-q"]);
    let mut one = CpuSet::new();
    one.set(some_cpu());
    let begun = Instant::now();
    let mut moved = 0;
    while begun.elapsed() < seconds {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", running.id())) else { break };
        for thread in threads.flatten() {
            let tid = thread.file_name().to_str().and_then(|n| n.parse().ok()).and_then(Pid::from_raw);
            moved += usize::from(sched_setaffinity(tid, &one).is_ok());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = running.end();
    assert!(moved > 0 && ended.wall < seconds + LATE, "{moved} moved, {:?}", ended.wall);
    let record = ended.record();
    reasons(&record);
    for m in of(&record, "memory.core_to_core") {
        println!("{:?} {:?} {:?}", m.params, m.value, m.why);
        assert!(m.value.is_none_or(|ns| ns < NO_TRANSFER_NS), "{m:?}");
    }
}

#[test]
fn huge_pages_that_are_denied_leave_no_row() {
    let _turn = turn();
    let lab = Lab::new();
    // Inherited by what this process starts; no other test of this file asks for huge pages.
    rustix::thread::disable_transparent_huge_pages(true).unwrap();
    let record = lab.run(&["memory", "--parts", "ladder", "-t", "8", "--json", "-q"]).record();
    warned(&record, "W401");
    reasons(&record);
    let huge = |m: &&Metric| m.params.get("pages").is_some_and(|p| p.to_string().contains("huge"));
    assert!(of(&record, "memory.latency").any(|m| m.value.is_some()), "the rest is priced");
    assert!(of(&record, "memory.latency").filter(huge).all(|m| m.value.is_none()));
}

/// A documented exit code, and a line on stderr or a record with reasons.
fn told(ended: &Ended) {
    assert!(ended.code.is_some_and(|c| DOCUMENTED.contains(&c)), "{ended:?}");
    if ended.stdout.is_empty() {
        assert!(!ended.stderr.is_empty(), "{ended:?}");
    } else {
        reasons(&ended.record());
    }
}

#[test]
fn too_little_memory_files_or_processes_are_named() {
    let _turn = turn();
    let lab = Lab::new();
    for (before, arguments) in [
        ("ulimit -v 200000", "memory -t 4"),
        ("ulimit -v 200000", "sync --parts locks -t 2"),
        ("ulimit -n 8", "sync --parts wakeups -t 3"),
    ] {
        let words: Vec<&str> = arguments.split(' ').chain(["--json", "-q"]).collect();
        let ended = Running::of(lab.after(&["/bin/sh", "-c"], before, &lab.command(&words))).end();
        println!("{before}, {arguments}: exit code {:?}, {}", ended.code, ended.stderr);
        told(&ended);
    }
    if !is_root() {
        println!("skipped: a user with few processes can only be had as root");
        return;
    }
    let models = lab.as_nobody(&["sync", "--parts", "models", "-t", "3", "--json", "-q"]);
    let mut command = lab.after(&["/bin/bash", "-c"], "ulimit -u 3", &models);
    command.uid(program::NOBODY).gid(program::NOBODY);
    let ended = Running::of(command).end();
    told(&ended);
}

/// A container: what its limit leaves counts, not what the machine has. The shared memory of the table is charged to it too.
#[test]
fn table_a_fits_the_limit_of_its_control_group() {
    const LIMIT: &str = "memory=112M";
    let _turn = turn();
    let lab = Lab::new();
    let group = match Group::create(&LIMIT.parse().unwrap(), "faults") {
        Ok(group) => group,
        Err(e) => {
            println!("skipped: {e}");
            return;
        }
    };
    let join: Vec<String> =
        group.directories().map(|d| format!("echo $$ > {}/cgroup.procs", d.display())).collect();
    let within = |arguments: &[&str]| {
        let command = lab.command(&[&["memory", "--parts", "table", "--json", "-q"], arguments].concat());
        Running::of(lab.after(&["/bin/sh", "-c"], &join.join(" && "), &command)).end()
    };
    let record = within(&["-t", "6"]).record();
    let priced = of(&record, "memory.shared").filter(|m| m.value.is_some()).count();
    println!("{priced} rows priced, {:?}", record.warnings);
    assert!(priced > 3, "{:?}", record.warnings);
    reasons(&record);
    // More than the limit leaves is refused before it is taken.
    within(&["-t", "2", "--cache-size", "48M"]).refused("--cache-size");
    assert_eq!(group.oom_kills().unwrap_or(0), 0, "{LIMIT}: the kernel ended a process");
}
