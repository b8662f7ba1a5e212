//! Tests with killed ranks and programs: the measured part is kept, and no process is left.

use std::path::Path;
use std::time::Duration;

use machmeter_sys::process::{commands_with, kill_process};

use crate::program::{Lab, Running, cpu_time, descendants, soon, warned, words};
use crate::{PROGRAM, ROLE, launcher, mpis, nobody_is_left, on};

/// CPU time of a rank that has started MPI and measures: the start of an unoptimized program takes 0.2 s.
const MEASURING: Duration = Duration::from_millis(700);

#[test]
fn a_rank_that_is_killed_leaves_a_partial_record_and_nobody() {
    for mpi in mpis() {
        let lab = Lab::alone();
        // The second launch loses a rank.
        let line = "mpi -n 2 -t 9 -l soak --ops pingpong,barrier --sizes 0-64 --json -v";
        let mut running = Running::of(on(&lab, &mpi, line));
        running.hear("launch 2 of").expect("no second launch");
        let main = i32::try_from(running.id()).unwrap();
        // Two ranks and their launcher have this role; the youngest is a rank.
        let own = || descendants(main).into_iter().filter(|p| commands_with(ROLE).contains(p)).max();
        assert!(soon(|| own().is_some_and(|rank| kill_process(rank).is_ok())), "{}: no ranks", mpi.version);
        let ended = running.end();
        println!("{}: {:?}", mpi.version, ended.wall);
        let record = ended.expect(5).record();
        assert!(!record.complete);
        warned(&record, "W511");
        nobody_is_left();
    }
}

#[test]
fn a_program_that_is_killed_takes_its_ranks_along() {
    for mpi in mpis() {
        let lab = Lab::alone();
        let mut running = on(&lab, &mpi, "mpi -n 2 -t 30 --ops pingpong -q").spawn().unwrap();
        let started = soon(|| commands_with(ROLE).len() >= 3);
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(started, "{}: no ranks", mpi.version);
        nobody_is_left();
    }
}

#[test]
fn a_rank_of_a_foreign_launcher_that_is_killed_leaves_nobody() {
    let measurements = ["noise -t 10", "mpi -t 10 -l soak --ops pingpong,barrier --sizes 0-64"];
    for (mpi, measurement) in mpis().iter().flat_map(|mpi| measurements.map(|words| (mpi.clone(), words))) {
        let lab = Lab::alone();
        let line = format!("-n 2 {PROGRAM} {measurement} -o killed.json -q");
        let mut launcher = launcher(&lab, &mpi, &words(&line)).spawn().unwrap();
        let main = i32::try_from(launcher.id()).unwrap();
        let own = || descendants(main).into_iter().filter(|p| commands_with("killed.json").contains(p)).max();
        let is_measuring = |rank: i32| cpu_time(rank.cast_unsigned()) >= MEASURING;
        let killed = soon(|| own().is_some_and(|rank| is_measuring(rank) && kill_process(rank).is_ok()));
        // The exit code is the launcher's.
        let mut status = None;
        let ended = soon(|| {
            status = launcher.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            launcher.kill().unwrap();
            launcher.wait().unwrap();
        }
        assert!(killed && ended, "{}, {measurement}: killed {killed}, ended {ended}", mpi.version);
        assert!(status.is_some_and(|s| !s.success()));
        assert!(soon(|| commands_with("killed.json").is_empty()), "ranks are left");
        // A launcher that sends a catchable signal before SIGKILL leaves rank 0 time to save its part.
        let complete = |name: &String| lab.record(name).complete;
        let is_record = |f: &String| Path::new(f).extension().is_some_and(|e| e == "json");
        let kept: Vec<_> = lab.files().into_iter().filter(is_record).collect();
        println!("{}, {}: {status:?}, kept {kept:?}", mpi.version, measurement);
        assert!(!kept.iter().any(complete), "a record that says it is complete");
    }
}
