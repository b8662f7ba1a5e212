//! Tests that figures of the net probe are consistent.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::time::Duration;

use crate::program::{Lab, has_one_cpu, is_loaded, prompt_policy, value};

#[test]
fn figures_of_a_run_hang_together() {
    if has_one_cpu() {
        return;
    }
    let lab = Lab::alone();
    // With more loops than CPUs, polling ends seldom run at the same time under the ordinary policy.
    let ended = lab.line(&format!("net -t 6 --sizes 1-64K --prio {} --json -q", prompt_policy()));
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
        let metric = record.metric("net.message_time", &far).unwrap();
        let Some(each) = metric.value else {
            assert!(is_loaded(&record) && metric.why.is_some(), "{metric:?}");
            println!("{transport}: not judged, other threads kept the ends from running: {:?}", metric.why);
            continue;
        };
        // A message of a train costs no more than a round trip, and 64 KiB take at least some nanoseconds.
        assert!(each > 1.0 && each < 1.5 * polling, "{transport}: {each} beside {polling}");
    }
    // The transport without the kernel is the fastest, and no system call is faster than a cache line.
    assert!(["shm", "unix", "tcp"].map(|transport| trip(transport, "polling")).is_sorted_by(|a, b| a < b));
    assert_eq!(value(&record, "net.sync_threshold", &[("transport", "shm")]), Some(1_048_576.0));
    // The stored samples give the same figure again.
    let again = lab.run(&["report", "last", "--json"]).record();
    let key = ("net.round_trip", [("transport", "tcp"), ("wait", "polling")]);
    assert_eq!(value(&again, key.0, &key.1), value(&record, key.0, &key.1));
}
