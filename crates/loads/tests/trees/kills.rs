//! Killing any process of a tree at any time leaves nothing behind.

use std::path::Path;

use machmeter_engine::load::Loads;
use machmeter_engine::role::Role;
use machmeter_loads::{AllLoads, LOADS};
use machmeter_stats::random::Random;
use machmeter_sys::process::{self, Spawn};
use machmeter_sys::thread::{monotonic_ns, spawn_plain};

use crate::tools::{SECOND_NS, entries, pause_ns, request, within, workers};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("random_kills_leave_nothing", random_kills_leave_nothing),
    ("a_killed_starter_takes_its_load_along", a_killed_starter_takes_its_load_along),
    ("a_stopped_worker_is_ended_all_the_same", a_stopped_worker_is_ended_all_the_same),
    (
        "what_nobody_could_remove_is_swept_at_the_next_start",
        what_nobody_could_remove_is_swept_at_the_next_start,
    ),
    ("a_dropped_load_is_stopped", a_dropped_load_is_stopped),
];

const ROUNDS: u64 = 100;
const STARTER_ROUNDS: usize = 12;
/// No start or stop may take longer, whoever was killed. The product's limit is 2 s; a busy machine gets some more.
const BOUND_NS: u64 = 3 * SECOND_NS;

fn loads() -> Vec<&'static str> {
    LOADS.iter().filter(|l| l.run.is_some()).map(|l| l.info.name).collect()
}

fn nothing_is_left(directory: &Path, of: &str) {
    let gone = within(BOUND_NS, || workers().is_empty());
    assert!(gone, "{of}: processes are left: {:?}", workers());
    let removed = within(BOUND_NS, || entries(directory).is_empty());
    assert!(removed, "{of}: files are left: {:?}", entries(directory));
}

/// A process that is dying has no command line any more, but is still of its group; zombies wait for their parent.
fn group_ends(group: i32) -> bool {
    within(BOUND_NS, || process::processes_of_group(group).iter().all(|p| !process::pid_is_alive(*p)))
}

/// Children of this process as `/proc` tells them (`proc_pid_stat(5)`, field 4), all of which should be reaped.
fn unreaped_children() -> Vec<String> {
    let parent = std::process::id().to_string();
    let stats = std::fs::read_dir("/proc").unwrap().flatten();
    stats
        .filter_map(|e| std::fs::read_to_string(e.path().join("stat")).ok())
        .filter(|s| {
            s.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)) == Some(parent.as_str())
        })
        .collect()
}

/// Kills one process of this program in a role, chosen at random, `after_ns`. Returns whether there was one.
fn kill_one(after_ns: u64, choice: usize) -> bool {
    pause_ns(after_ns);
    let all = workers();
    !all.is_empty() && process::kill_process(all[choice % all.len()]).is_ok()
}

/// Start, work and stop are each hit, since the kill comes 0 to 60 ms after the start, and the stop 30 ms after it.
fn random_kills_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(2026);
    let (mut hits, mut failures, mut slowest_ns) = (0, 0, 0);
    for round in 0..ROUNDS {
        let names = loads();
        let name = names[random.below(names.len())];
        let (after_ns, choice) = (random.below(60_000_000) as u64, random.below(1 << 20));
        let killer = spawn_plain("killer", move || kill_one(after_ns, choice)).unwrap();
        let begin_ns = monotonic_ns();
        let started = AllLoads.start(&request(name, directory.path()));
        let start_ns = monotonic_ns() - begin_ns;
        let mut failed = started.is_err();
        let (mut stop_ns, mut group) = (0, None);
        if let Ok(mut running) = started {
            group = running.processes().first().copied();
            pause_ns(30_000_000);
            failed |= running.failure().is_some();
            let begin_ns = monotonic_ns();
            let report = running.stop();
            stop_ns = monotonic_ns() - begin_ns;
            failed |= report.failure.is_some();
        }
        hits += u64::from(killer.join().unwrap());
        failures += u64::from(failed);
        slowest_ns = slowest_ns.max(start_ns.max(stop_ns));
        let what = format!("round {round}, {name}, kill after {after_ns} ns");
        assert!(start_ns < BOUND_NS && stop_ns < BOUND_NS, "{what}: {start_ns} ns, {stop_ns} ns");
        assert!(group.is_none_or(group_ends), "{what}: the group lives on");
        nothing_is_left(directory.path(), &what);
    }
    assert_eq!(unreaped_children(), Vec::<String>::new());
    println!("{hits} of {ROUNDS} kills hit, {failures} loads said so, slowest start or stop {slowest_ns} ns");
    assert!(hits >= ROUNDS / 4 && failures >= hits / 2, "{hits} hits, {failures} failures");
}

/// A main program that starts the load `name` and says the id of its group.
fn starter(name: &str, directory: &Path) -> Role<(), i32> {
    Role::start(Spawn::worker("test-starter").arg(name).arg(directory).new_group()).unwrap()
}

fn a_killed_starter_takes_its_load_along() {
    let directory = tempfile::tempdir().unwrap();
    let mut random = Random::new(7);
    let names = loads();
    let mut worked = 0;
    for round in 0..STARTER_ROUNDS {
        let name = names[round % names.len()];
        let mut starter = starter(name, directory.path());
        // Half of them while the load is starting, the others while it works.
        let group = if round % 2 == 0 {
            pause_ns(random.below(25_000_000) as u64);
            None
        } else {
            starter.receive(monotonic_ns() + 10 * SECOND_NS).ok()
        };
        starter.peer().kill();
        let gone = within(BOUND_NS, || workers().iter().all(|p| *p == starter.peer().pid()));
        assert!(gone, "{name}: processes are left: {:?}", workers());
        if let Some(group) = group.filter(|g| *g > 0) {
            worked += 1;
            assert!(group_ends(group), "{name}: {:?} live on", process::processes_of_group(group));
        }
        assert!(starter.peer_mut().wait(BOUND_NS).is_some());
        nothing_is_left(directory.path(), name);
    }
    assert!(worked > 0, "no load worked when its starter was killed");
}

fn a_stopped_worker_is_ended_all_the_same() {
    let directory = tempfile::tempdir().unwrap();
    for (stopped, is_leader) in [("stopped worker", false), ("stopped leader", true)] {
        let running = AllLoads.start(&request("burn", directory.path())).unwrap();
        process::stop_process(running.processes()[usize::from(!is_leader)]).unwrap();
        let begin_ns = monotonic_ns();
        let report = running.stop();
        assert!(monotonic_ns() - begin_ns < BOUND_NS, "{stopped}: {report:?}");
        assert!(!is_leader || report.failure.unwrap().contains("killed"));
        nothing_is_left(directory.path(), stopped);
    }
}

fn a_dropped_load_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    drop(AllLoads.start(&request("video", directory.path())).unwrap());
    nothing_is_left(directory.path(), "dropped");
}

/// Starter and leader are killed at once, so that nobody is there to remove files.
fn what_nobody_could_remove_is_swept_at_the_next_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut starter = starter("compile", directory.path());
    let group = starter.receive(monotonic_ns() + 10 * SECOND_NS).unwrap();
    assert!(within(BOUND_NS, || !entries(directory.path()).is_empty()));
    process::stop_process(group).unwrap();
    starter.peer().kill();
    process::kill_process(group).unwrap();
    assert!(starter.peer_mut().wait(BOUND_NS).is_some());
    // A dying process holds its lock until it has closed its files.
    assert!(group_ends(group) && workers().is_empty(), "{:?}", workers());
    assert_eq!(entries(directory.path()).len(), 1);
    drop(AllLoads.start(&request("burn", directory.path())).unwrap());
    nothing_is_left(directory.path(), "swept");
}
