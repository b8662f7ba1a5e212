//! The ops probe as a user runs it: what did not happen has no price, the time is kept, nothing is left behind.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use machmeter_data::Record;
use machmeter_sys::process::commands_with;
use machmeter_sys::thread::monotonic_ns;
use program::{DOCUMENTED, Ended, Lab, Running, is_root, names_in, reasons, turn, warned};
use rustix::process::Signal;

/// Longest time beyond its plan that a run may take; tests run on busy machines.
const LATE: Duration = Duration::from_secs(6);
const ON_FILES: [&str; 4] = ["open_close", "pread", "stat", "page_fault_file"];

fn arguments<'a>(part: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["ops", "--parts", part, "-t", "2", "--json", "-q"], more].concat()
}

fn price(record: &Record, operation: &str) -> Option<f64> {
    record.metric("ops.cost", &[("operation", operation)])?.value
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
    let _turn = turn();
    let lab = Lab::new();
    let files = lab.work().join("files");
    fs::create_dir(&files).unwrap();
    let directory = files.to_str().unwrap();
    let priced = [
        "add",
        "getppid",
        "clock_gettime",
        "page_fault_4k",
        "pread",
        "fork_exit_wait",
        "spawn",
        "thread_create_join",
    ];
    // Where neighbors disturb most samples there is a reason instead of a price, and more time helps.
    let mut record = None;
    for seconds in [6, 15, 40] {
        let time = seconds.to_string();
        let ended = lab.run(&["ops", "-t", &time, "--json", "-q", "--directory", directory]);
        assert!(ended.wall < Duration::from_secs(seconds) + LATE, "{:?}", ended.wall);
        let seen = ended.record();
        let unknown: Vec<_> = priced.iter().filter(|o| price(&seen, o).is_none()).collect();
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
        assert!(
            ns.is_some_and(|ns| ns > 0.0),
            "{operation}: {:?}",
            record.metric("ops.cost", &[("operation", operation)])
        );
    }
    let more = |a: &str, b: &str| assert!(price(&record, a) > price(&record, b), "{a} against {b}");
    more("getppid", "add");
    more("fork_exit_wait", "getppid");
    more("spawn", "thread_create_join");
    assert!(names_in(&files).is_empty(), "{:?}", names_in(&files));
}

#[test]
fn wrong_requests_are_refused_in_one_line() {
    let _turn = turn();
    let lab = Lab::new();
    lab.run(&["ops", "--exec-target", "/nowhere/at/all", "-t", "2", "-q"]).refused("/nowhere/at/all");
    lab.run(&["ops", "--directory", "/nowhere/at/all", "-t", "2", "-q"]).refused("/nowhere/at/all");
    lab.run(&["ops", "--parts", "sums", "-t", "2", "-q"]).refused("arithmetic, calls, processes");
}

#[test]
fn programs_that_fail_or_do_not_end_have_no_price() {
    let _turn = turn();
    let lab = Lab::new();
    let program = |name: &str, text: &str| {
        let path = lab.work().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let failing = program("failing", "#!/bin/sh\nexit 3\n");
    let endless = program("endless", "#!/bin/sh\nexec sleep 100\n");
    let broken = program("broken", "#!/nowhere/at/all\n");
    for (target, reason) in [(failing, "3 instead of 0"), (endless, "did not end"), (broken, "No such file")]
    {
        let ended = lab.run(&arguments("processes", &["--exec-target", &target]));
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

/// A program that hangs from its start `from` on, with a child; `mark` is among the child's arguments.
fn tiring(lab: &Lab, from: u32, mark: &str) -> String {
    let path = lab.work().join("tiring");
    let count = lab.work().join("starts");
    let count = count.display();
    let text = format!(
        "#!/bin/sh\necho >> {count}\n[ $(wc -l < {count}) -lt {from} ] && exit 0\nsleep {mark} &\nwait\n"
    );
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

#[test]
fn a_program_that_stops_ending_is_killed_with_its_children_and_the_run_goes_on() {
    let _turn = turn();
    let lab = Lab::new();
    let target = tiring(&lab, 31, "7101.31");
    let ended = lab.run(&arguments("processes", &["--exec-target", &target]));
    assert!(ended.wall < Duration::from_secs(2) + LATE, "{:?}", ended.wall);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let record = ended.record();
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
    let _turn = turn();
    let lab = Lab::new();
    let target = tiring(&lab, 1, "7102.31");
    let running = lab.start(&["ops", "--parts", "processes", "-t", "60", "--exec-target", &target]);
    let hangs = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !commands_with("7102.31").is_empty()
    });
    assert!(hangs, "the program was started");
    let asked_ns = monotonic_ns();
    running.send(Signal::INT);
    let ended = running.end();
    // A visit would be waited for 3 s.
    let answered = Duration::from_nanos(monotonic_ns() - asked_ns);
    assert!(answered < Duration::from_secs(2), "{answered:?}");
    assert_eq!(ended.code, Some(130), "{ended:?}");
    assert!(commands_with("7102.31").is_empty(), "nothing is left behind");
}

#[test]
fn directories_without_room_give_reasons_and_no_prices() {
    let _turn = turn();
    let lab = Lab::new();
    let check = |ended: Ended, reason: &str| {
        let record = ended.record();
        for operation in ON_FILES {
            let said = why(&record, operation);
            assert!(said.contains(reason), "{operation}: {said}");
        }
        warned(&record, "W442");
        assert!(price(&record, "getppid").is_some(), "the rest is priced");
    };
    let small = lab.work().join("small");
    fs::create_dir(&small).unwrap();
    let directory = ["--directory", small.to_str().unwrap()];
    // 512 or 1024 bytes each, by the shell.
    let calls = lab.command(&arguments("calls", &directory));
    let limited = lab.after(&["/bin/sh", "-c"], "ulimit -f 2000", &calls);
    check(Running::of(limited).end(), "ulimit -f");
    if !is_root() {
        println!("skipped: full and closed directories need root");
        return;
    }
    let mount = format!("mount -t tmpfs -o size=1m none {}", small.display());
    let ended = Running::of(lab.after(&["unshare", "-m", "/bin/sh", "-c"], &mount, &calls)).end();
    if ended.stdout.is_empty() {
        println!("skipped: no file systems can be mounted here: {}", ended.stderr);
    } else {
        check(ended, "No space left");
    }
    let closed = lab.as_nobody(&arguments("calls", &directory));
    check(Running::of(closed).end(), "Permission denied");
    assert!(names_in(&small).is_empty());
}

#[test]
fn huge_pages_that_are_denied_have_no_price() {
    let _turn = turn();
    let lab = Lab::new();
    // Inherited by what this process starts; the other tests of this file do not ask for huge pages to be granted.
    rustix::thread::disable_transparent_huge_pages(true).unwrap();
    let record = lab.run(&["ops", "--parts", "calls", "-t", "12", "--json", "-q"]).record();
    let said = why(&record, "page_fault_huge");
    assert!(said.contains("huge pages granted: 0 seen"), "{said}");
    warned(&record, "W443");
    assert!(price(&record, "page_fault_4k").is_some());
}

#[test]
fn limits_of_processes_are_named_or_the_run_is_refused() {
    if !is_root() || !Path::new("/bin/bash").exists() {
        println!("skipped: a user with few processes can only be had as root, with bash");
        return;
    }
    let _turn = turn();
    let lab = Lab::new();
    for tasks in [1, 3, 4] {
        let processes = lab.as_nobody(&arguments("processes", &[]));
        let mut command = lab.after(&["/bin/bash", "-c"], &format!("ulimit -u {tasks}"), &processes);
        command.uid(program::NOBODY).gid(program::NOBODY);
        let ended = Running::of(command).end();
        assert!(ended.code.is_some_and(|c| DOCUMENTED.contains(&c)), "{ended:?}");
        println!("{tasks} tasks: exit code {:?}, {}", ended.code, ended.stderr);
        if ended.stdout.is_empty() {
            assert!(!ended.stderr.is_empty());
            continue;
        }
        reasons(&ended.record());
    }
}

#[test]
fn a_signal_leaves_no_files() {
    let _turn = turn();
    let lab = Lab::new();
    let files = lab.work().join("files");
    fs::create_dir(&files).unwrap();
    let directory = files.to_str().unwrap();
    let running = lab.start(&["ops", "--parts", "calls", "-t", "30", "--directory", directory]);
    let begun = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(20));
        !names_in(&files).is_empty()
    });
    assert!(begun, "the run made its directory");
    running.send(Signal::TERM);
    let ended = running.end();
    assert!(ended.code.is_some_and(|c| DOCUMENTED.contains(&c)), "{ended:?}");
    assert!(names_in(&files).is_empty(), "{:?}", names_in(&files));
}
