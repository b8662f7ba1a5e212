//! The probes of costs as a user runs them, with faults put into their runs: what did not happen has no price but one clear line
//! or a reason, the time is kept, nothing is left behind. A member that is killed and a lock that lets everybody in are in the
//! self-test of sync.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]
#![allow(clippy::disallowed_methods, reason = "the wall time of whole runs, as a user's watch shows it")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::program::{Ended, Lab, NOBODY, Running, can_mount, is_root, names_in, soon, value, warned, words};
use machmeter_data::{Metric, Record};
use machmeter_sys::cgroup::Group;
use machmeter_sys::process::commands_with;
use machmeter_sys::thread::monotonic_ns;
use rustix::process::{Pid, Signal};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Longest time beyond its plan that a run may take; tests run on busy machines.
const LATE: Duration = Duration::from_secs(6);
const ON_FILES: [&str; 4] = ["open_close", "pread", "stat", "page_fault_file"];

fn price(record: &Record, operation: &str) -> Option<f64> {
    value(record, "ops.cost", &[("operation", operation)])
}

/// Why an operation has no price.
#[track_caller]
fn why(record: &Record, operation: &str) -> String {
    let m = record.metric("ops.cost", &[("operation", operation)]);
    let m = m.unwrap_or_else(|| panic!("{operation} is not mentioned"));
    assert_eq!(m.value, None, "{operation} has a price");
    m.why.clone().unwrap()
}

#[test]
fn a_run_prices_what_happened_and_keeps_its_time() {
    let lab = Lab::alone();
    let (files, directory) = folder(&lab);
    let priced =
        "add getppid clock_gettime page_fault_4k pread fork_exit_wait spawn thread_create_join".split(' ');
    // Where neighbors disturb most samples there is a reason instead of a price, and more time helps.
    let mut record = None;
    for seconds in [6, 15, 40] {
        let ended = lab.line(&format!("ops -t {seconds} --json -q --directory {directory}"));
        assert!(ended.wall < Duration::from_secs(seconds) + LATE, "{:?}", ended.wall);
        let seen = ended.record();
        let unknown: Vec<_> = priced.clone().filter(|o| price(&seen, o).is_none()).collect();
        for operation in &unknown {
            println!("{operation} in {seconds} s: {}", why(&seen, operation));
        }
        let all = unknown.is_empty();
        record = Some(seen);
        if all {
            break;
        }
    }
    let record = record.unwrap();
    for operation in priced {
        let ns = price(&record, operation);
        println!("{operation}: {ns:?} ns");
        assert!(ns.is_some_and(|ns| ns > 0.0), "{operation}: {ns:?}");
    }
    let more = |a: &str, b: &str| assert!(price(&record, a) > price(&record, b), "{a} against {b}");
    more("getppid", "add");
    more("fork_exit_wait", "getppid");
    more("spawn", "thread_create_join");
    assert!(names_in(&files).is_empty(), "{:?}", names_in(&files));
}

#[test]
fn programs_that_fail_or_do_not_end_have_no_price() {
    let lab = Lab::alone();
    for (name, text, reason) in [
        ("failing", "#!/bin/sh\nexit 3\n", "3 instead of 0"),
        ("endless", "#!/bin/sh\nexec sleep 100\n", "did not end"),
        ("broken", "#!/nowhere/at/all\n", "No such file"),
    ] {
        let target = lab.script(name, text);
        let ended = lab.line(&format!("ops --parts processes -t 2 --json -q --exec-target {target}"));
        assert!(ended.wall < Duration::from_secs(2) + LATE, "{target}: {:?}", ended.wall);
        let record = ended.record();
        for operation in ["spawn", "fork_exec"] {
            if record.metric("ops.cost", &[("operation", operation)]).is_some() {
                let said = why(&record, operation);
                assert!(said.contains(reason) && said.contains(&target), "{said}");
            }
        }
        warned(&record, "W445");
    }
}

/// A new folder in the working directory, and its path as an argument.
fn folder(lab: &Lab) -> (PathBuf, String) {
    let path = lab.work().join("folder");
    fs::create_dir(&path).unwrap();
    (path.clone(), path.to_str().unwrap().to_owned())
}

/// A line on stderr, or a record with reasons.
fn told(ended: &Ended) {
    if ended.stdout.is_empty() {
        assert!(!ended.stderr.is_empty(), "{ended:?}");
    } else {
        ended.record();
    }
}

/// A program that hangs from its start `from` on, with a child; `mark` is among the child's arguments.
fn tiring(lab: &Lab, from: u32, mark: &str) -> String {
    let count = lab.work().join("starts");
    let count = count.display();
    let text = format!(
        "#!/bin/sh\necho >> {count}\n[ $(wc -l < {count}) -lt {from} ] && exit 0\nsleep {mark} &\nwait\n"
    );
    lab.script("tiring", &text)
}

#[test]
fn a_program_that_stops_ending_is_killed_with_its_children_and_the_run_goes_on() {
    let lab = Lab::alone();
    let target = tiring(&lab, 31, "7101.31");
    let ended = lab.line(&format!("ops --parts processes -t 2 --json -q --exec-target {target}"));
    assert!(ended.wall < Duration::from_secs(2) + LATE, "{:?}", ended.wall);
    let record = ended.expect(0).record();
    for operation in ["spawn", "fork_exec"] {
        let said = why(&record, operation);
        assert!(said.contains(&target) && said.contains("did not end within"), "{said}");
    }
    warned(&record, "W445");
    assert!(price(&record, "fork_exit_wait").is_some() && price(&record, "thread_create_join").is_some());
    assert!(commands_with("7101.31").is_empty(), "nothing is left behind");
}

#[test]
fn a_signal_is_answered_at_once_while_a_program_hangs() {
    let lab = Lab::alone();
    let target = tiring(&lab, 1, "7102.31");
    let running = lab.start(&format!("ops --parts processes -t 60 --exec-target {target}"));
    assert!(soon(|| !commands_with("7102.31").is_empty()), "the program was started");
    let asked_ns = monotonic_ns();
    running.send(Signal::INT);
    let ended = running.end();
    // A visit would be waited for 3 s.
    let answered = Duration::from_nanos(monotonic_ns() - asked_ns);
    assert!(answered < Duration::from_secs(2), "{answered:?}");
    ended.expect(130);
    assert!(commands_with("7102.31").is_empty(), "nothing is left behind");
}

#[test]
fn directories_without_room_give_reasons_and_no_prices() {
    let lab = Lab::alone();
    let check = |ended: Ended, reason: &str| {
        let record = ended.record();
        for operation in ON_FILES {
            let said = why(&record, operation);
            assert!(said.contains(reason), "{operation}: {said}");
        }
        warned(&record, "W442");
        assert!(price(&record, "getppid").is_some(), "the rest is priced");
    };
    let (small, path) = folder(&lab);
    let line = format!("ops --parts calls -t 2 --json -q --directory {path}");
    // 512 or 1024 bytes each, by the shell.
    let calls = lab.command(&words(&line));
    let limited = lab.after(&["/bin/sh", "-c"], "ulimit -f 2000", &calls);
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
fn huge_pages_that_are_denied_have_no_price() {
    let lab = Lab::alone();
    // Inherited by what this process starts; the other tests of this file do not ask for huge pages to be granted.
    rustix::thread::disable_transparent_huge_pages(true).unwrap();
    let record = lab.line("ops --parts calls -t 12 --json -q").record();
    let said = why(&record, "page_fault_huge");
    assert!(said.contains("huge pages granted: 0 seen"), "{said}");
    warned(&record, "W443");
    assert!(price(&record, "page_fault_4k").is_some());
    let record = lab.line("memory --parts ladder -t 8 --json -q").record();
    warned(&record, "W401");
    let huge = |m: &&Metric| m.params.get("pages").is_some_and(|p| p.to_string().contains("huge"));
    assert!(of(&record, "memory.latency").any(|m| m.value.is_some()), "the rest is priced");
    assert!(of(&record, "memory.latency").filter(huge).all(|m| m.value.is_none()));
}

#[test]
fn a_signal_leaves_no_files() {
    let lab = Lab::alone();
    let (files, directory) = folder(&lab);
    let running = lab.start(&format!("ops --parts calls -t 30 --directory {directory}"));
    assert!(soon(|| !names_in(&files).is_empty()), "the run made its directory");
    running.send(Signal::TERM);
    running.end();
    assert!(names_in(&files).is_empty(), "{:?}", names_in(&files));
}

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
    let lab = Lab::alone();
    let cpu = some_cpu();
    let record = lab.line(&format!("sync -c {cpu} -t 4 --json -q")).record();
    warned(&record, "W422");
    for id in ["memory.core_to_core", "sync.handoff"] {
        assert!(of(&record, id).all(|m| m.value.is_none()), "{id}");
    }
    let record = lab.line(&format!("memory -c {cpu} --parts table -t 4 --json -q")).record();
    warned(&record, "W415");
}

/// Somebody else moves all threads of the run to one CPU, again and again: a partner that cannot run is no distance.
#[test]
fn partners_that_are_pinned_away_give_no_distance() {
    let lab = Lab::alone();
    let (seconds, late) = (Duration::from_secs(5), Duration::from_secs(8));
    let running = lab.start("sync --parts transfer -t 5 --json -q");
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
    assert!(moved > 0 && ended.wall < seconds + late, "{moved} moved, {:?}", ended.wall);
    let record = ended.record();
    for m in of(&record, "memory.core_to_core") {
        println!("{:?} {:?} {:?}", m.params, m.value, m.why);
        assert!(m.value.is_none_or(|ns| ns < NO_TRANSFER_NS), "{m:?}");
    }
}

#[test]
fn too_little_memory_files_or_processes_are_named() {
    let lab = Lab::alone();
    for (before, arguments) in [
        ("ulimit -v 200000", "memory -t 4"),
        ("ulimit -v 200000", "sync --parts locks -t 2"),
        ("ulimit -n 8", "sync --parts wakeups -t 3"),
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
        let plain = lab.as_nobody(&[probe, "--parts", part, "-t", "3", "--json", "-q"]);
        let mut command = lab.after(&["/bin/bash", "-c"], &format!("ulimit -u {tasks}"), &plain);
        command.uid(NOBODY).gid(NOBODY);
        let ended = Running::of(command).end();
        println!("{tasks} tasks, {part}: exit code {:?}, {}", ended.code, ended.stderr);
        told(&ended);
    }
}

/// A container: what its limit leaves counts, not what the machine has. The shared memory of the table is charged to it too.
#[test]
fn table_a_fits_the_limit_of_its_control_group() {
    const LIMIT: &str = "memory=112M";
    let lab = Lab::alone();
    let group = match Group::create(&LIMIT.parse().unwrap(), "faults") {
        Ok(group) => group,
        Err(e) => return println!("skipped: {e}"),
    };
    let record = lab.within(&group, "memory --parts table --json -q -t 6").end().record();
    let priced = of(&record, "memory.shared").filter(|m| m.value.is_some()).count();
    println!("{priced} rows priced, {:?}", record.warnings);
    assert!(priced > 3, "{:?}", record.warnings);
    // More than the limit leaves is refused before it is taken.
    lab.within(&group, "memory --parts table --json -q -t 2 --cache-size 48M").end().refused("--cache-size");
    assert_eq!(group.oom_kills().unwrap_or(0), 0, "{LIMIT}: the kernel ended a process");
}
