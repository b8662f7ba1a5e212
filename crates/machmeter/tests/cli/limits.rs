//! Tests that a run fits into its limits, or names the limit that it exceeds: memory, processes, files, CPUs, disk space.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use crate::program::{
    Ended, Lab, NOBODY, Running, can_mount, is_loaded, is_root, names_in, of, some_cpu, warned, why, words,
};
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
    thread::sleep(Duration::from_millis(300));
    let locked = locked_kb(run.id());
    println!("{locked} kB locked");
    // A tenth of the group's limit, and 256 kB of each stack.
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
        let words = ["interactive", "-t", "1500ms", "--tasks", "video", "--loads", "burn", "-q"];
        let plain = lab.as_nobody(&words);
        let mut command = lab.after(&["/bin/bash", "-c"], &format!("ulimit -u {tasks}"), &plain);
        command.uid(NOBODY).gid(NOBODY);
        let ended = Running::of(command).end();
        ended.failed(4, "(ulimit -u)");
    }
}

const ON_FILES: [&str; 4] = ["open_close", "pread", "stat", "page_fault_file"];

#[test]
fn directories_without_room_give_reasons_and_no_prices() {
    let lab = Lab::new();
    let check = |ended: Ended, reason: &str| {
        let record = ended.record();
        for operation in ON_FILES {
            let said = why(&record, operation);
            assert!(said.contains(reason), "{operation}: {said}");
        }
        warned(&record, "W442");
        // A run this short can have too few samples for a cost; it was measured anyway.
        let rest = record.metric("ops.cost", &[("operation", "getppid")]).unwrap();
        let is_measured = |why: &String| why.contains("undisturbed samples of");
        assert!(rest.value.is_some() || rest.why.as_ref().is_some_and(is_measured), "{rest:?}");
    };
    let small = lab.work().join("folder");
    fs::create_dir(&small).unwrap();
    let path = small.to_str().unwrap();
    let line = format!("ops --parts calls -t 300ms --json -q --directory {path}");
    // Blocks of 512 or 1024 bytes, depending on the shell.
    let calls = lab.command(&words(&line));
    let limited = lab.after(&["/bin/sh", "-c"], "ulimit -f 1000", &calls);
    check(Running::of(limited).end(), "ulimit -f");
    if !is_root() {
        return println!("skipped: full and closed directories need root");
    }
    if can_mount(&small) {
        let mount = format!("mount -t tmpfs -o size=1m none {}", small.display());
        let full = lab.after(&["unshare", "-m", "/bin/sh", "-c"], &mount, &calls);
        check(Running::of(full).end(), "No space left");
    } else {
        println!("skipped: no file systems can be mounted here");
    }
    check(lab.nobody(&line), "Permission denied");
    assert!(names_in(&small).is_empty());
}

#[test]
fn one_cpu_only_has_nobody_to_pay_for() {
    let lab = Lab::new();
    let cpu = some_cpu();
    let record = lab.line(&format!("sync -c {cpu} -t 300ms --json -q")).record();
    warned(&record, "W422");
    for id in ["memory.core_to_core", "sync.handoff"] {
        assert!(of(&record, id).all(|m| m.value.is_none()), "{id}");
    }
    let record = lab.line(&format!("memory -c {cpu} --parts table -t 300ms --json -q")).record();
    warned(&record, "W415");
}

/// Checks for a line on stderr, or a record with reasons.
fn told(ended: &Ended) {
    if ended.stdout.is_empty() {
        assert!(!ended.stderr.is_empty(), "{ended:?}");
    } else {
        ended.record();
    }
}

#[test]
fn too_little_memory_files_or_processes_are_named() {
    let lab = Lab::new();
    for (before, arguments) in [
        ("ulimit -v 200000", "memory -t 300ms"),
        ("ulimit -v 200000", "sync --parts locks -t 200ms"),
        ("ulimit -n 8", "sync --parts wakeups -t 200ms"),
    ] {
        let plain = lab.command(&words(&format!("{arguments} --json -q")));
        let ended = Running::of(lab.after(&["/bin/sh", "-c"], before, &plain)).end();
        println!("{before}, {arguments}: exit code {:?}, {}", ended.code, ended.stderr);
        told(&ended);
    }
    if !is_root() || !Path::new("/bin/bash").exists() {
        return println!("skipped: a user with few processes can only be had as root, with bash");
    }
    for (tasks, probe, part) in
        [(3, "sync", "models"), (1, "ops", "processes"), (3, "ops", "processes"), (4, "ops", "processes")]
    {
        let plain = lab.as_nobody(&[probe, "--parts", part, "-t", "300ms", "--json", "-q"]);
        let mut command = lab.after(&["/bin/bash", "-c"], &format!("ulimit -u {tasks}"), &plain);
        command.uid(NOBODY).gid(NOBODY);
        let ended = Running::of(command).end();
        println!("{tasks} tasks, {part}: exit code {:?}, {}", ended.code, ended.stderr);
        told(&ended);
    }
}

/// In a container its limit counts, not the memory of the machine. The shared memory of the table is charged to it, too.
#[test]
fn table_a_fits_the_limit_of_its_control_group() {
    const LIMIT: &str = "memory=112M";
    let lab = Lab::new();
    let group = match Group::create(&LIMIT.parse().unwrap(), "faults") {
        Ok(group) => group,
        Err(e) => return println!("skipped: {e}"),
    };
    let record = lab.within(&group, "memory --parts table --json -q -t 3").end().record();
    let priced = of(&record, "memory.shared").filter(|m| m.value.is_some()).count();
    println!("{priced} rows priced, {:?}", record.warnings);
    assert!(priced > 3 || is_loaded(&record), "{:?}", record.warnings);
    // A size above the limit is rejected before allocation.
    lab.within(&group, "memory --parts table --json -q -t 300ms --cache-size 48M")
        .end()
        .refused("--cache-size");
    assert_eq!(group.oom_kills().unwrap_or(0), 0, "{LIMIT}: the kernel ended a process");
}
