//! Tests costs on the real machine: their order, and no cost for events that did not occur. The self-test of sync covers a killed member and a lock that
//! admits every thread.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]
#![allow(clippy::disallowed_methods, reason = "the wall time of whole runs, as a user's watch shows it")]

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::program::{Lab, names_in, of, price, some_cpu, warned, why};
use machmeter_data::Metric;
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};

/// Longest time of a run beyond its plan; tests run on busy machines.
const LATE: Duration = Duration::from_secs(6);

#[test]
fn a_run_prices_what_happened_and_keeps_its_time() {
    let lab = Lab::alone();
    let (files, directory) = folder(&lab);
    let priced =
        "add getppid clock_gettime page_fault_4k pread fork_exit_wait spawn thread_create_join".split(' ');
    // If neighbors disturb most samples, there is a reason instead of a cost, and more time helps.
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

/// A new folder in the working directory, and its path as an argument.
fn folder(lab: &Lab) -> (PathBuf, String) {
    let path = lab.work().join("folder");
    fs::create_dir(&path).unwrap();
    (path.clone(), path.to_str().unwrap().to_owned())
}

#[test]
fn huge_pages_that_are_denied_have_no_price() {
    let lab = Lab::alone();
    // Inherited by child processes; no other test of this program runs at the same time.
    rustix::thread::disable_transparent_huge_pages(true).unwrap();
    let record = lab.line("ops --parts calls -t 6 --json -q").record();
    let said = why(&record, "page_fault_huge");
    assert!(said.contains("huge pages granted") && said.contains(": 0 seen"), "{said}");
    warned(&record, "W443");
    assert!(price(&record, "page_fault_4k").is_some());
    let record = lab.line("memory --parts ladder -t 8 --json -q").record();
    warned(&record, "W401");
    let huge = |m: &&Metric| m.params.get("pages").is_some_and(|p| p.to_string().contains("huge"));
    assert!(of(&record, "memory.latency").any(|m| m.value.is_some()), "the rest is priced");
    assert!(of(&record, "memory.latency").filter(huge).all(|m| m.value.is_none()));
    rustix::thread::disable_transparent_huge_pages(false).unwrap();
}

/// The transfer of a line between two CPUs costs tens to hundreds of ns; if one of them has to wait for its time slice, ms.
const NO_TRANSFER_NS: f64 = 5_000.0;

/// Another process moves all threads of the run to one CPU again and again. A partner that can't run gives no distance.
#[test]
fn partners_that_are_pinned_away_give_no_distance() {
    let lab = Lab::alone();
    let (seconds, late) = (Duration::from_secs(2), Duration::from_secs(8));
    let running = lab.start("sync --parts transfer -t 2 --json -q");
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
