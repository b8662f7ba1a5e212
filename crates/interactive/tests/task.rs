//! Real processes of tasks. This program is started for them, too: no test harness, `main` answers the roles first.
#![allow(clippy::print_stdout, reason = "it tells which tests passed, as the test harness does")]
#![allow(
    clippy::unwrap_used,
    reason = "a test ends with what went wrong; the lint knows tests of the harness only"
)]

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::Attributes;
use machmeter_engine::role::{self, Role};
use machmeter_engine::stream::{Deadline, Demand, Overload, Release, Stream};
use machmeter_engine::worker::{ARGUMENT, NOTHING, Worker};
use machmeter_interactive::WORKERS;
use machmeter_interactive::samples::Segment;
use machmeter_interactive::tasks::periodic;
use machmeter_interactive::worker::{TaskProcess, TaskRequest, WORKER};
use machmeter_sys::affinity;
use machmeter_sys::process::{Spawn, commands_with, kill_process, pid_is_alive, stop_process};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until, spawn_placed_scoped};

const MS: u64 = 1_000_000;
const ROLES: [Worker; 2] = [NOTHING, Worker { name: "owner", run: owner }];

type Test = (&'static str, fn());

const TESTS: [Test; 10] = [
    ("every_release_is_accounted_for", every_release_is_accounted_for),
    ("one_process_records_many_segments", one_process_records_many_segments),
    ("a_chain_is_one_task", a_chain_is_one_task),
    ("closed_loops_and_launches_work", closed_loops_and_launches_work),
    ("what_is_refused_says_why", what_is_refused_says_why),
    ("a_stop_ends_a_segment_early", a_stop_ends_a_segment_early),
    ("a_starved_task_is_lifted_and_tells", a_starved_task_is_lifted_and_tells),
    ("what_a_task_could_not_get_to_counts_as_dropped", what_a_task_could_not_get_to_counts_as_dropped),
    ("a_task_that_does_not_answer_is_killed", a_task_that_does_not_answer_is_killed),
    ("nothing_outlives_the_main_process", nothing_outlives_the_main_process),
];

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    if arguments.first().is_some_and(|a| a == ARGUMENT) {
        let mut roles = ROLES.iter().chain(WORKERS);
        let role = roles.find(|w| arguments.get(1).is_some_and(|a| a == w.name));
        return role.map_or(ExitCode::from(2), |w| ExitCode::from((w.run)(&arguments[2..])));
    }
    // As of the test harness: words choose tests, options are its own affair.
    let words: Vec<_> = arguments.iter().filter_map(|a| a.to_str()).filter(|a| !a.starts_with('-')).collect();
    for (name, test) in TESTS {
        if words.is_empty() || words.iter().any(|w| name.contains(w)) {
            test();
            println!("test {name} ... ok");
        }
    }
    ExitCode::SUCCESS
}

/// Has a task at work and waits to be killed.
fn owner(_: &[OsString]) -> u8 {
    let mut task = start(periodic(10 * MS, MS), Attributes::default());
    task.go(monotonic_ns() + 20 * MS, 60_000 * MS).unwrap();
    let (_requests, mut to) = role::starter::<(), i32>().unwrap();
    to.send(&task.ready.pid).unwrap();
    nanosleep_until(monotonic_ns() + 60_000 * MS);
    0
}

fn start(stream: Stream, attributes: Attributes) -> TaskProcess {
    TaskProcess::start(&TaskRequest { stream, attributes, seed: 5 }).unwrap()
}

fn record(task: &mut TaskProcess, length_ns: u64) -> Segment {
    task.go(monotonic_ns() + 20 * MS, length_ns).unwrap();
    task.collect(30_000 * MS).unwrap()
}

/// Waits until it `holds`, 10 s at most; whether it does.
fn soon(mut holds: impl FnMut() -> bool) -> bool {
    let until_ns = monotonic_ns() + 10_000 * MS;
    while !holds() {
        if monotonic_ns() > until_ns {
            return false;
        }
        nanosleep_until(monotonic_ns() + 2 * MS);
    }
    true
}

fn here() -> Attributes {
    let cpu = affinity::mask().unwrap().iter().next_back().unwrap();
    Attributes { cpus: Some(cpu.to_string()), ..Attributes::default() }
}

fn every_release_is_accounted_for() {
    let mut task = start(periodic(10 * MS, MS), here());
    assert!(task.ready.turns_per_ms > 100.0 && task.ready.timer_slack_ns == Some(1), "{:?}", task.ready);
    let s = record(&mut task, 505 * MS);
    assert_eq!((s.scheduled, s.jobs.len(), s.trouble.as_deref()), (51, 51, None));
    let numbers: Vec<u64> = s.jobs.iter().map(|j| j.number).collect();
    assert_eq!(numbers, (0..51).collect::<Vec<_>>());
    let ran: Vec<_> = s.jobs.iter().filter(|j| j.ran()).collect();
    let asked_ns = ran.len() as u64 * MS;
    let got_ns: u64 = ran.iter().map(|j| j.cpu_ns).sum();
    let enough = got_ns >= asked_ns * 98 / 100 && got_ns < asked_ns * 3 / 2;
    assert!(!ran.is_empty() && enough, "{got_ns} of {asked_ns}");
    // The kernel's account holds the jobs and what is between them.
    let on_cpu_ns = s.on_cpu_ns.unwrap();
    assert!(on_cpu_ns >= got_ns && on_cpu_ns < got_ns * 2 + 100 * MS, "{on_cpu_ns} {got_ns}");
    assert!(s.run_delay_ns.is_some() && s.voluntary as usize + 1 >= ran.len() / 2, "{s:?}");
    assert!(s.jobs.iter().all(|j| j.preempt_ns() > -1_000));
}

fn one_process_records_many_segments() {
    let stream = Stream { release: Release::Poisson { mean_ns: 2 * MS }, ..periodic(MS, 10_000) };
    let mut task = start(stream, Attributes::default());
    let pid = task.ready.pid;
    let segments: Vec<Segment> = (0..3).map(|_| record(&mut task, 200 * MS)).collect();
    assert!(segments.iter().all(|s| s.trouble.is_none() && s.jobs.len() > 40));
    assert_ne!(segments[0].jobs[0].release_ns, segments[1].jobs[0].release_ns, "each draws its own");
    assert!(task.is_alive() && task.ready.pid == pid);
}

fn a_chain_is_one_task() {
    let stages = vec![Demand::Cpu { ns: MS }, Demand::Cpu { ns: MS / 2 }];
    let mut task = start(Stream { stages, ..periodic(20 * MS, MS) }, Attributes::default());
    assert_eq!(task.ready.tids.len(), 3, "{:?}", task.ready);
    let s = record(&mut task, 400 * MS);
    assert_eq!(s.jobs.len(), 20);
    let ran = s.jobs.iter().filter(|j| j.ran()).count() as u64;
    // The stages' threads count, too: 2.5 ms a job.
    assert!(ran > 0 && s.on_cpu_ns.unwrap() > ran * 2_400_000, "{ran} {:?}", s.on_cpu_ns);
}

fn closed_loops_and_launches_work() {
    let closed =
        Stream { release: Release::Closed { think_ns: 0 }, deadline: Deadline::None, ..periodic(MS, 5 * MS) };
    let s = record(&mut start(closed.clone(), Attributes::default()), 200 * MS);
    assert!(!s.jobs.is_empty() && s.scheduled == s.jobs.len() as u64 && s.trouble.is_none());
    // Jobs of one turn fill the room for those of 0.1 ms long before the end: the segment is as long as it lasted.
    let short = Stream { demand: Demand::Turns { turns: 1 }, ..closed.clone() };
    let s = record(&mut start(short, Attributes::default()), 2_000 * MS);
    assert!(s.trouble.as_deref().is_some_and(|t| t.contains("no room")), "{:?}", s.trouble);
    let last_ns = s.jobs.last().map_or(0, |j| j.release_ns + j.response_ns);
    assert!(s.length_ns >= last_ns && s.length_ns < 2_000 * MS, "{} {last_ns}", s.length_ns);
    let launch = Stream { release: Release::Closed { think_ns: 20 * MS }, demand: Demand::Launch, ..closed };
    let s = record(&mut start(launch, Attributes::default()), 300 * MS);
    assert!(s.jobs.iter().all(|j| j.cpu_ns > 50_000) && !s.jobs.is_empty(), "{:?}", s.jobs);
}

fn what_is_refused_says_why() {
    let with = |policy: &str| Attributes { policy: Some(policy.to_owned()), ..Attributes::default() };
    let refused = |attributes| {
        let request = TaskRequest { stream: periodic(10 * MS, MS), attributes, seed: 1 };
        TaskProcess::start(&request).unwrap_err()
    };
    let why = refused(with("fifo:0"));
    assert!(why.contains("priority 0 is outside 1..99") && !why.contains('\n'), "{why}");
    let why = refused(Attributes { cpus: Some("4000".to_owned()), ..Attributes::default() });
    assert!(why.contains("4000"), "{why}");
    // Nobody may have the whole of a CPU for ever.
    let whole = Attributes { policy: Some("deadline:10ms/10ms/10ms".to_owned()), ..here() };
    let why = refused(whole);
    assert!(!why.is_empty() && !why.contains('\n'), "{why}");
    assert_eq!(start(periodic(10 * MS, MS), with("batch")).ready.policy, "batch");
}

fn a_stop_ends_a_segment_early() {
    let mut task = start(periodic(10 * MS, MS), Attributes::default());
    let begun_ns = monotonic_ns();
    task.go(begun_ns + 20 * MS, 40_000 * MS).unwrap();
    nanosleep_until(begun_ns + 300 * MS);
    task.stop();
    // The end by schedule is far away: what comes before it comes from the stop.
    let s = task.collect(MS).unwrap();
    assert!(monotonic_ns() - begun_ns < 30_000 * MS);
    assert!(s.trouble.as_deref().is_some_and(|t| t.contains("stopped after")), "{:?}", s.trouble);
    assert!(s.length_ns < 30_000 * MS && !s.jobs.is_empty() && s.jobs.len() as u64 <= s.scheduled);
    assert_eq!(record(&mut task, 50 * MS).jobs.len(), 5);
}

fn a_starved_task_is_lifted_and_tells() {
    let attributes = Attributes { policy: Some("idle".to_owned()), ..here() };
    let cpu = attributes.cpus.as_deref().and_then(|c| c.parse().ok());
    let mut task = start(periodic(5 * MS, 4 * MS), attributes);
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Beside ordinary threads the small weight of the idle policy leaves the task hardly anything.
        for _ in 0..2 {
            let spin = || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            };
            spawn_placed_scoped(scope, "spin", cpu, Policy::Other { nice: 0 }, spin).unwrap();
        }
        let begun_ns = monotonic_ns();
        let s = record(&mut task, 300 * MS);
        stop.store(true, Ordering::Relaxed);
        assert!(monotonic_ns() - begun_ns < 31_000 * MS);
        assert_eq!(s.jobs.len() as u64, s.scheduled);
        assert!(s.jobs.iter().filter(|j| !j.ran()).count() > 10, "{s:?}");
    });
    let s = record(&mut task, 50 * MS);
    assert_eq!((s.scheduled, task.ready.policy.as_str()), (10, "idle"));
}

fn what_a_task_could_not_get_to_counts_as_dropped() {
    // Twice as much work as time, and a queue without end: it cannot make up for it in the time it is given.
    let overload = Overload::Queue { most_periods: 0 };
    let mut task = start(Stream { overload, ..periodic(5 * MS, 10 * MS) }, here());
    task.go(monotonic_ns() + 20 * MS, 1_000 * MS).unwrap();
    let s = task.collect(900 * MS).unwrap();
    assert_eq!((s.scheduled, s.jobs.len(), s.trouble.as_deref()), (200, 200, None));
    let given_up_ns = s.jobs.iter().filter(|j| !j.ran()).map(|j| j.release_ns + j.response_ns).min();
    assert!(given_up_ns.is_some_and(|ns| ns >= 1_000 * MS), "{s:?}");
    assert!(s.jobs.iter().zip(0..).all(|(j, k)| j.number == k && j.release_ns == k * 5 * MS));
}

fn a_task_that_does_not_answer_is_killed() {
    let mut task = start(periodic(5 * MS, MS), Attributes::default());
    let pid = task.ready.pid;
    task.go(monotonic_ns() + 20 * MS, 50 * MS).unwrap();
    stop_process(pid).unwrap();
    let begun_ns = monotonic_ns();
    let why = task.collect(300 * MS).unwrap_err();
    assert!(why.contains("did not answer in time"), "{why}");
    assert!(monotonic_ns() - begun_ns < 20_000 * MS);
    assert!(soon(|| !task.is_alive()) && !pid_is_alive(pid));
    assert!(task.go(monotonic_ns(), MS).is_err());
}

fn nothing_outlives_the_main_process() {
    let mut owner: Role<(), i32> = Role::start(Spawn::worker("owner")).unwrap();
    let pid = owner.receive(monotonic_ns() + 30_000 * MS).unwrap();
    assert!(pid_is_alive(pid) && commands_with(WORKER.name).contains(&pid));
    kill_process(owner.peer().pid()).unwrap();
    assert!(soon(|| !pid_is_alive(pid)) && !commands_with(WORKER.name).contains(&pid));
    assert!(owner.peer_mut().wait(10_000 * MS).is_some());
}
