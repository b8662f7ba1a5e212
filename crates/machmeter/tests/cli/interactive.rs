//! Tests of the interactive probe: refusals, the content of a record, and that it leaves no process or file, however it ends.

#![allow(clippy::disallowed_methods, reason = "wall times, and the number of kills from outside")]
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::thread;
use std::time::Duration;

use crate::program::{Ended, Lab, descendants, soon, value, warned};
use machmeter_data::Record;
use machmeter_stats::random::Random;
use machmeter_sys::process::{commands_with, kill_process, pid_is_alive};
use rustix::process::Signal;

/// Longest time of a run beyond its plan, whichever process is killed; tests run on busy machines.
const LATE: Duration = Duration::from_secs(6);

/// Waits until none of `processes` is left.
#[track_caller]
fn all_gone(processes: &[i32], place: &str) {
    assert!(soon(|| !processes.iter().any(|p| pid_is_alive(*p))), "{place}: some of {processes:?} are left");
}

/// Value of a metric for a cell.
pub(crate) fn figure(record: &Record, id: &str, task: &str, load: &str) -> Option<f64> {
    value(record, id, &[("task", task), ("load", load)])
}

/// Checks that every release of every cell is counted.
#[track_caller]
pub(crate) fn balanced(record: &Record) {
    let scheduled = record.metrics.iter().filter(|m| m.id == "interactive.scheduled");
    for m in scheduled {
        let of = |id: &str| {
            let other = record.metrics.iter().find(|o| o.id == id && o.params == m.params);
            other.and_then(|o| o.value).unwrap()
        };
        let seen = of("interactive.recorded") + of("interactive.dropped");
        assert_eq!(m.value.unwrap(), seen, "{:?}", m.params);
    }
}

/// Checks that the working directory has only the files of the record.
pub(crate) fn nothing_left(lab: &Lab, ended: &Ended) {
    let strange: Vec<String> = lab.files().into_iter().filter(|f| f.starts_with("machmeter-load")).collect();
    assert!(strange.is_empty(), "machmeter {}: left {strange:?}", ended.shown);
}

#[test]
fn a_run_measures_every_cell_and_accounts_for_every_release() {
    let lab = Lab::new();
    let ended = lab.line("interactive --tasks Audio,video,audio-pro --loads none,burn,write -t 5 --json -q");
    let record = ended.expect(0).record();
    balanced(&record);
    for task in ["audio", "video", "audio-pro"] {
        for load in ["none", "burn", "write"] {
            assert!(figure(&record, "interactive.lateness", task, load).is_some(), "{task}/{load}");
            assert!(figure(&record, "interactive.deadlines_met", task, load).unwrap() <= 1.0);
            assert!(figure(&record, "interactive.load_work", task, load).is_some() == (load != "none"));
        }
    }
    assert!(record.datasets("interactive.met").count() == 1 && record.complete);
    assert_eq!(record.summary.lines[0].section, "INTERACTIVE");
    nothing_left(&lab, &ended);
}

#[test]
fn killing_the_program_takes_everything_along() {
    for load in ["burn", "compile", "write", "memload"] {
        let lab = Lab::new();
        let mut run = lab.start(&format!("interactive --tasks audio-pro,launch --loads {load} -t 30 -v"));
        run.hear(&format!("load {load}")).expect("the load did not begin");
        let mut below = Vec::new();
        let is_complete = soon(|| {
            below = descendants(run.id() as i32);
            below.len() >= 3
        });
        assert!(is_complete, "a task, a leader, a worker: {below:?}");
        run.send(Signal::KILL);
        all_gone(&below, load);
        drop(run);
        assert!(soon(|| lab.files().is_empty()), "{load}: {:?} is left", lab.files());
    }
}

#[test]
fn a_killed_task_or_load_makes_a_run_partial() {
    for (loads, worker) in [("none", "interactive-task"), ("burn", "load")] {
        let lab = Lab::new();
        let mut run = lab.start(&format!("interactive -t 4s --tasks video --loads {loads} --json -v"));
        run.hear("load ").expect("it did not begin");
        // By now the task is recording, so there is data to keep.
        thread::sleep(Duration::from_millis(800));
        let is_killed = soon(|| {
            let below = descendants(run.id() as i32);
            let mut workers = commands_with(worker).into_iter().filter(|pid| below.contains(pid));
            workers.any(|pid| kill_process(pid).is_ok())
        });
        assert!(is_killed, "no {worker} to kill");
        let record = run.end().expect(5).record();
        assert!(!record.complete);
        warned(&record, "W311");
    }
}

/// Kills random processes of short runs. `MACHMETER_KILLS=100` sets their number.
#[test]
fn random_kills_leave_a_valid_record_and_nothing_else() {
    let wanted: usize = std::env::var("MACHMETER_KILLS").ok().and_then(|n| n.parse().ok()).unwrap_or(12);
    let mut random = Random::new(4);
    let (mut hit, mut latest) = (0, Duration::ZERO);
    while hit < wanted {
        let lab = Lab::new();
        let loads = ["burn,compile", "write,ring", "memload,video", "read,hack"][random.below(4)];
        let line = format!("interactive --tasks audio-pro,video --loads none,{loads} -t 4 --json -v");
        let mut run = lab.start(&line);
        run.hear("load ").expect("it did not begin");
        let main = run.id() as i32;
        let mut below = Vec::new();
        for _ in 0..4 {
            thread::sleep(Duration::from_millis(100 + random.below(400) as u64));
            below = descendants(main);
            if let Some(pid) = (!below.is_empty()).then(|| below[random.below(below.len())]) {
                hit += usize::from(kill_process(pid).is_ok());
            }
        }
        let ended = run.end();
        latest = latest.max(ended.wall);
        let record = ended.record();
        assert!(matches!(ended.code, Some(0 | 5)), "{:?}: {}", ended.code, ended.stderr);
        balanced(&record);
        assert!(ended.wall < Duration::from_secs(4) + LATE, "{:?}", ended.wall);
        all_gone(&below, "after kills");
        nothing_left(&lab, &ended);
    }
    println!("{hit} kills, the latest run of 4 s took {latest:?}");
}
