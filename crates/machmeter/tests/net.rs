//! The net probe as a user runs it: figures that hang together, refusals, ends that are killed, nothing left behind.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use std::time::Duration;

use machmeter_data::Record;
use machmeter_sys::process::{commands_with, kill_process, pid_is_alive, stop_process};
use program::{Lab, descendants, is_root, turn, warned};
use rustix::process::Signal;

fn value(record: &Record, id: &str, params: &[(&str, &str)]) -> Option<f64> {
    record.metric(id, params)?.value
}

fn cpus() -> usize {
    machmeter_sys::affinity::mask().unwrap().to_vec().len()
}

#[test]
fn figures_of_a_run_hang_together() {
    if cpus() < 2 {
        println!("skipped: one CPU");
        return;
    }
    let _turn = turn();
    let lab = Lab::new();
    let ended = lab.run(&["net", "-t", "6", "--sizes", "1-64K", "--json", "-q"]);
    assert!(ended.wall < Duration::from_secs(12), "{:?}", ended.wall);
    let record = ended.record();
    let trip = |transport: &str, wait: &str| {
        value(&record, "net.round_trip", &[("transport", transport), ("wait", wait)]).unwrap()
    };
    for transport in ["shm", "unix", "tcp"] {
        let [polling, sleeping] = ["polling", "sleeping"].map(|wait| trip(transport, wait));
        println!("{transport}: {polling} ns polling, {sleeping} ns asleep");
        assert!(polling > 20.0 && sleeping > polling, "{transport}: {polling} {sleeping}");
        let far = [("transport", transport), ("direction", "there"), ("from_bytes", "1")];
        let each = value(&record, "net.message_time", &far);
        let each = each.unwrap_or_else(|| panic!("{:?}", record.metric("net.message_time", &far)));
        // A message of a train costs no more than a round trip, and the bytes of 64 KiB some nanoseconds at least.
        assert!(each > 1.0 && each < 1.5 * polling, "{transport}: {each} beside {polling}");
    }
    // What the kernel takes no part in is the quickest, and calls beat no cache line.
    assert!(
        trip("shm", "polling") < trip("unix", "polling") && trip("unix", "polling") < trip("tcp", "polling")
    );
    assert_eq!(value(&record, "net.sync_threshold", &[("transport", "shm")]), Some(1_048_576.0));
    // The stored samples say the same again.
    let again = lab.run(&["report", "last", "--json"]).record();
    let key = ("net.round_trip", [("transport", "tcp"), ("wait", "polling")]);
    assert_eq!(value(&again, key.0, &key.1), value(&record, key.0, &key.1));
}

#[test]
fn one_cpu_and_wrong_words_are_one_line() {
    let lab = Lab::new();
    let cpu = machmeter_sys::affinity::mask().unwrap().to_vec()[0].to_string();
    for (words, code, said) in [
        (&["net", "-c", &cpu, "-q"][..], 4, "needs two CPUs"),
        (&["net", "--transports", "smoke", "-q"], 2, "'smoke' is not one of"),
        (&["net", "--sizes", "9-1", "-q"], 2, "--sizes 9-1"),
    ] {
        let ended = lab.run(words);
        ended.expect(code);
        assert!(ended.errors()[0].contains(said), "{:?}", ended.errors());
    }
    assert!(lab.files().is_empty());
}

/// The far end of a running probe.
fn far_end(main: u32) -> i32 {
    let mut found = None;
    let is_there = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        found = descendants(i32::try_from(main).unwrap())
            .into_iter()
            .find(|p| commands_with("net-far").contains(p));
        found.is_some()
    });
    assert!(is_there, "the far end was started");
    found.unwrap()
}

#[test]
fn either_end_may_be_killed_or_stopped_and_nothing_hangs_or_stays() {
    if cpus() < 2 {
        println!("skipped: one CPU");
        return;
    }
    let _turn = turn();
    let lab = Lab::new();
    // The far end is gone: what was measured stays, the rest has a reason.
    let running = lab.start(&["net", "-t", "4", "--json", "-q"]);
    let far = far_end(running.id());
    std::thread::sleep(Duration::from_millis(600));
    kill_process(far).unwrap();
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(14), "{:?}", ended.wall);
    let record = ended.record();
    warned(&record, "W460");
    // It stands still: waits end at their limits.
    let running = lab.start(&["net", "-t", "4", "--json", "-q"]);
    let far = far_end(running.id());
    std::thread::sleep(Duration::from_millis(600));
    stop_process(far).unwrap();
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(14), "{:?}", ended.wall);
    ended.record();
    assert!(!pid_is_alive(far), "the far end was left behind");
    // The near end is killed: the far end goes with it.
    let mut child = lab.command(&["net", "-t", "20", "-q"]).spawn().unwrap();
    let far = far_end(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    let is_gone = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        !pid_is_alive(far)
    });
    assert!(is_gone, "the far end outlived the near one");
    // A signal ends it early, with what there is.
    let running = lab.start(&["net", "-t", "60", "--json", "-q"]);
    far_end(running.id());
    std::thread::sleep(Duration::from_millis(500));
    running.send(Signal::INT);
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(10), "{:?}", ended.wall);
    assert_eq!(ended.code, Some(130));
    ended.record();
}

#[test]
fn a_plain_user_needs_no_rights() {
    if !is_root() || cpus() < 2 {
        println!("skipped: needs root to become somebody else, and two CPUs");
        return;
    }
    let _turn = turn();
    let lab = Lab::new();
    let mut command = lab.as_nobody(&["net", "-t", "2", "--sizes", "1-4K", "--json", "-q"]);
    let output = command.output().unwrap();
    let record = program::sound(&String::from_utf8(output.stdout).unwrap(), "stdout");
    let tcp = [("transport", "tcp"), ("wait", "polling")];
    assert!(value(&record, "net.round_trip", &tcp).is_some());
}
