//! Every load starts, works, and stops in time.

use std::fs;
use std::path::{Path, PathBuf};

use machmeter_engine::attributes::Attributes;
use machmeter_engine::load::{LoadError, LoadRequest, Loads};
use machmeter_loads::{AllLoads, LOADS};
use machmeter_sys::process;
use machmeter_sys::thread::monotonic_ns;

use crate::tools::{SECOND_NS, entries, request, started, within, workers};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("every_load_starts_works_and_stops", every_load_starts_works_and_stops),
    ("wrong_requests_are_refused_in_one_line", wrong_requests_are_refused_in_one_line),
    ("a_unit_of_work_costs_what_it_says", a_unit_of_work_costs_what_it_says),
    ("burn_has_as_many_threads_as_asked_for", burn_has_as_many_threads_as_asked_for),
    ("attributes_reach_the_load_and_not_its_leader", attributes_reach_the_load_and_not_its_leader),
    ("a_real_time_load_can_be_stopped", a_real_time_load_can_be_stopped),
    ("the_deadline_policy_is_for_threads", the_deadline_policy_is_for_threads),
    ("a_load_in_a_control_group_leaves_no_group", a_load_in_a_control_group_leaves_no_group),
];

fn every_load_starts_works_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    for load in LOADS.iter().filter(|l| l.run.is_some()) {
        let name = load.info.name;
        let begin_ns = monotonic_ns();
        let mut running = match AllLoads.start(&request(name, directory.path())) {
            Ok(running) => running,
            Err(LoadError::Usage(why)) if name == "rt-hog" => {
                assert!(why.contains("CAP_SYS_NICE") || why.contains("RT"), "{why}");
                println!("{name}: refused here: {why}");
                continue;
            }
            Err(e) => panic!("{name}: {e}"),
        };
        let started_ns = monotonic_ns() - begin_ns;
        let processes = running.processes();
        // Leader and worker; children of the worker come and go.
        let mut lasting = processes.iter().take(2);
        assert!(processes.len() >= 2 && lasting.all(|p| process::pid_is_alive(*p)), "{name}");
        assert!(within(10 * SECOND_NS, || running.work() > 0), "{name}: no work is done");
        assert!(within(10 * SECOND_NS, || running.work() > 1), "{name}: no more work is done");
        assert_eq!(running.failure(), None, "{name}");
        let begin_ns = monotonic_ns();
        let report = running.stop();
        let stopped_ns = monotonic_ns() - begin_ns;
        assert_eq!(report.failure, None, "{name}");
        assert!(report.work > 1 && stopped_ns < 2 * SECOND_NS, "{name}: {report:?} after {stopped_ns} ns");
        assert!(workers().is_empty() && process::processes_of_group(processes[0]).is_empty(), "{name}");
        assert!(entries(directory.path()).is_empty(), "{name}: {:?}", entries(directory.path()));
        println!("{name}: start {started_ns} ns, stop {stopped_ns} ns, {} {}", report.work, load.info.work);
    }
}

fn wrong_requests_are_refused_in_one_line() {
    let directory = tempfile::tempdir().unwrap();
    let burn = || request("burn", directory.path());
    let with = |name: &str, attributes| LoadRequest { attributes, ..request(name, directory.path()) };
    let with_policy = |name: &str, policy: &str| {
        with(name, Attributes { policy: Some(policy.to_owned()), ..Attributes::default() })
    };
    let with_cpus =
        |cpus: &str| with("burn", Attributes { cpus: Some(cpus.to_owned()), ..Attributes::default() });
    let hog = |custom| LoadRequest { custom: Some(custom), ..request("rt-hog", directory.path()) };
    for (request, part) in [
        (request("brun", directory.path()), "no load 'brun': choose from burn, "),
        (LoadRequest { threads: Some(0), ..burn() }, "0 threads"),
        (LoadRequest { threads: Some(1_000_000), ..burn() }, "1000000"),
        (with_policy("burn", "fifo:100"), "100"),
        (with_policy("burn", "fifo:99"), "99"),
        (with_policy("rt-hog", DEADLINE_POLICY), "deadline"),
        (with_policy("rt-hog", "other:5"), "other:5"),
        (hog((0.51, 1_000_000)), "51 %"),
        (hog((0.0, 1_000_000)), "0 %"),
        (hog((f64::NAN, 1_000_000)), "NaN"),
        (hog((0.1, 10)), "10 ns"),
        (with_cpus("1-x"), "1-x"),
        (with_cpus("1023"), "1023"),
        (LoadRequest { cpus: "a".to_owned(), ..burn() }, "'a'"),
    ] {
        let Err(LoadError::Usage(why)) = AllLoads.start(&request) else { panic!("{part}: not refused") };
        assert!(why.contains(part) && !why.contains('\n'), "{why}");
        assert!(workers().is_empty());
    }
    // Without the right to real time, that is the only reason to refuse.
    let half = LoadRequest { custom: Some((0.5, 1_000_000)), ..with_policy("rt-hog", "rr:10") };
    for allowed in [hog((0.5, 1_000_000)), half, with_policy("rt-hog", "fifo:98")] {
        let refused = AllLoads.check(&allowed).map_err(|e| e.to_string());
        assert!(refused.as_ref().map_or_else(|e| e.contains("refused: "), |()| true), "{refused:?}");
    }
}

/// Policy number and nice value of a process as `/proc` tells them (`proc_pid_stat(5)`, fields 41 and 19).
fn policy_and_nice(pid: i32) -> (String, String) {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    (fields[38].to_owned(), fields[16].to_owned())
}

fn attributes_reach_the_load_and_not_its_leader() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request("burn", directory.path());
    request.attributes.policy = Some("other:7".to_owned());
    let running = AllLoads.start(&request).unwrap();
    let all = running.processes();
    let (leader, worker) = (policy_and_nice(all[0]), policy_and_nice(all[1]));
    assert_eq!((leader.0.as_str(), worker.0.as_str(), worker.1.as_str()), ("0", "0", "7"));
    assert_ne!(leader.1, "7");
    drop(running);

    request.attributes.policy = Some("batch".to_owned());
    let running = AllLoads.start(&request).unwrap();
    let all = running.processes();
    assert_eq!((policy_and_nice(all[0]).0, policy_and_nice(all[1]).0), ("0".to_owned(), "3".to_owned()));
}

/// One thread keeps one CPU; what has to stop it is on that CPU, too.
fn a_real_time_load_can_be_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request("burn", directory.path());
    let cpus = machmeter_sys::affinity::mask().unwrap();
    request.cpus = cpus.first().unwrap().to_string();
    request.attributes.cpus = Some(request.cpus.clone());
    request.attributes.policy = Some("fifo:3".to_owned());
    let Some(running) = started(&request) else { return };
    let all = running.processes();
    assert_eq!((policy_and_nice(all[0]).0, policy_and_nice(all[1]).0), ("1".to_owned(), "1".to_owned()));
    assert!(within(10 * SECOND_NS, || running.work() > 20));
    let begin_ns = monotonic_ns();
    let report = running.stop();
    let stopped_ns = monotonic_ns() - begin_ns;
    assert!(report.failure.is_none() && stopped_ns < 3 * SECOND_NS, "{report:?} after {stopped_ns} ns");
    assert!(workers().is_empty());
}

fn a_load_in_a_control_group_leaves_no_group() {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request("burn", directory.path());
    request.attributes.cgroup = Some("max=20%".to_owned());
    for kill in [None, Some(0), Some(1)] {
        let Some(running) = started(&request) else { return };
        let all = running.processes();
        let place = fs::read_to_string(format!("/proc/{}/cgroup", all[1])).unwrap();
        let line = place.lines().find(|l| l.contains("/machmeter-") && l.contains("burn"));
        let line = line.unwrap_or_else(|| panic!("the worker is in no group of ours: {place}")).to_owned();
        let leaf = line.rsplit('/').next().unwrap().to_owned();
        if let Some(victim) = kill {
            process::kill_process(all[victim]).unwrap();
        }
        drop(running);
        let left = within(3 * SECOND_NS, || directories_named(Path::new("/sys/fs/cgroup"), &leaf) == 0);
        assert!(left, "{leaf} is left after a kill of {kill:?}");
    }
}

fn directories_named(below: &Path, name: &str) -> usize {
    let inner = fs::read_dir(below).into_iter().flatten().flatten();
    inner
        .filter(|e| e.file_type().is_ok_and(|t| t.is_dir()))
        .map(|e| usize::from(e.file_name() == name) + directories_named(&e.path(), name))
        .sum()
}

/// What the kernel tells of each thread of a process.
fn tasks(pid: i32) -> Vec<PathBuf> {
    fs::read_dir(format!("/proc/{pid}/task")).unwrap().map(|e| e.unwrap().path()).collect()
}

/// CPU time of all threads of a process so far, ns.
fn cpu_ns(pid: i32) -> u64 {
    let run_ns = |task: &PathBuf| -> u64 {
        let text = fs::read_to_string(task.join("schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    tasks(pid).iter().map(run_ns).sum()
}

/// However much of the CPU others take: a job's CPU time is counted by its thread's own clock.
fn a_unit_of_work_costs_what_it_says() {
    let directory = tempfile::tempdir().unwrap();
    if !Path::new("/proc/self/schedstat").exists() {
        return println!("this kernel does not tell the CPU time of threads");
    }
    for (name, unit_ns) in [("burn", 1e6), ("video", 6_666_667.0), ("custom", 1.5e6), ("rt-hog", 2e6)] {
        let Some(running) = started(&request(name, directory.path())) else {
            assert_eq!(name, "rt-hog");
            return;
        };
        let worker = running.processes()[1];
        // What comes before the first unit (the start of the program, calibration) is no work.
        assert!(within(10 * SECOND_NS, || running.work() > 1));
        let (work, begin_ns) = (running.work(), cpu_ns(worker));
        assert!(within(20 * SECOND_NS, || running.work() >= work + 100), "{name}");
        let unit = (cpu_ns(worker) - begin_ns) as f64 / (running.work() - work) as f64;
        println!("{name}: {unit:.0} ns of CPU time per unit of work");
        assert!((0.9..1.15).contains(&(unit / unit_ns)), "{name}: {unit} ns instead of {unit_ns} ns");
    }
}

fn burn_has_as_many_threads_as_asked_for() {
    let directory = tempfile::tempdir().unwrap();
    let cpus = machmeter_sys::affinity::mask().unwrap().len();
    for (threads, expected) in [(Some(3), 3), (None, cpus)] {
        let request = LoadRequest { threads, ..request("burn", directory.path()) };
        let running = AllLoads.start(&request).unwrap();
        let is_named =
            |task: &&PathBuf| fs::read_to_string(task.join("comm")).is_ok_and(|n| n.trim() == "mm-burn");
        let named = || tasks(running.processes()[1]).iter().filter(is_named).count();
        assert!(within(10 * SECOND_NS, || named() == expected), "{} threads", named());
    }
}

const DEADLINE_POLICY: &str = "deadline:1ms/10ms/10ms";
/// Its number in the kernel's tables (sched.h).
const DEADLINE: &str = "6";

fn the_deadline_policy_is_for_threads() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["burn", "membw", "video", "ring"] {
        let mut request = request(name, directory.path());
        request.threads = Some(2);
        request.attributes.policy = Some(DEADLINE_POLICY.to_owned());
        let Some(running) = started(&request) else { return };
        let tasks = tasks(running.processes()[1]);
        let tids = tasks.iter().map(|t| t.file_name().unwrap().to_str().unwrap().parse::<i32>().unwrap());
        assert_eq!(tids.filter(|tid| policy_and_nice(*tid).0 == DEADLINE).count(), 2, "{name}");
        assert!(within(10 * SECOND_NS, || running.work() > 0), "{name}");
        assert_eq!(running.stop().failure, None);
    }
}
