//! Context-switch records against the real kernel, with and without rights.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "allowed inside test functions as well")]

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use machmeter_sys::clock::{MonotonicRaw, OrderedCounter, TickSource};
use machmeter_sys::perf::{Switch, SwitchLog, TickMap};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread;

/// A coarse clock map: rate over 20 ms, good for the comparisons of these tests.
fn tick_map() -> TickMap {
    // The tightest of many bracketed readings is the one that nothing interrupted.
    let bracketed = || {
        let before = OrderedCounter::now();
        let raw_ns = MonotonicRaw::now();
        let after = OrderedCounter::now();
        (after - before, (raw_ns, before.midpoint(after)))
    };
    let pair = || (0..200).map(|_| bracketed()).min().unwrap().1;
    let (raw_ns, ticks) = pair();
    std::thread::sleep(Duration::from_millis(20));
    let later = pair();
    TickMap { raw_ns, ticks, ticks_per_ns: (later.1 - ticks) as f64 / (later.0 - raw_ns) as f64 }
}

fn open(pages: usize) -> Option<SwitchLog> {
    match SwitchLog::open_for_current_thread(pages, tick_map()) {
        Ok(log) => Some(log),
        Err(e) => {
            println!("skipped: {e}");
            assert!(!e.to_string().contains('\n'));
            None
        }
    }
}

/// Sleeps `times` times and returns the counter right before and after each sleep.
fn sleeps(times: usize) -> Vec<(u64, u64)> {
    let nap = || {
        let before = OrderedCounter::now();
        thread::nanosleep_until(thread::monotonic_ns() + 1_000_000);
        (before, OrderedCounter::now())
    };
    (0..times).map(|_| nap()).collect()
}

/// Every sleep must enclose one voluntary switch out and, after it, one switch in; returns the margins in ticks.
fn margins(sleeps: &[(u64, u64)], switches: &[Switch]) -> (Vec<u64>, Vec<u64>) {
    let enclosed = |(begin, end): (u64, u64)| {
        let inside: Vec<&Switch> = switches.iter().filter(|s| begin <= s.ticks && s.ticks <= end).collect();
        let asleep = inside.iter().find(|s| s.out && !s.preempted)?.ticks;
        let awake = inside.iter().rev().find(|s| !s.out)?.ticks;
        (asleep < awake).then_some((asleep - begin, end - awake))
    };
    let (mut before, mut after): (Vec<u64>, Vec<u64>) = sleeps.iter().copied().filter_map(enclosed).unzip();
    before.sort_unstable();
    after.sort_unstable();
    (before, after)
}

fn check_sleeps() -> bool {
    let Some(log) = open(8) else { return false };
    let sleeps = sleeps(100);
    let (switches, lost) = log.stop();
    let (before, after) = margins(&sleeps, &switches);
    println!(
        "{} switches, lost {lost}; {} of 100 sleeps enclose their switches; ticks from call to switch-out: min {} \
         median {}; from switch-in to return: min {} median {}",
        switches.len(),
        before.len(),
        before[0],
        before[before.len() / 2],
        after[0],
        after[after.len() / 2]
    );
    assert_eq!(lost, 0);
    assert!(switches.is_sorted_by_key(|s| s.ticks));
    assert!(before.len() >= 99, "{switches:?}");
    true
}

#[test]
fn every_sleep_encloses_its_switches() {
    check_sleeps();
}

#[test]
#[ignore = "child process of another test"]
fn child_without_rights() {
    assert!(!rustix::process::getuid().is_root());
    println!("child: {}", if check_sleeps() { "checked" } else { "refused" });
}

#[test]
fn it_works_without_any_right() {
    if !rustix::process::getuid().is_root() {
        return println!("skipped: not root, so the other test shows it already");
    }
    let nobody = 65_534;
    // A way to the program that does not depend on the rights of its directories.
    let child = Command::new("/proc/self/exe")
        .args(["--ignored", "--exact", "child_without_rights", "--nocapture"])
        .uid(nobody)
        .gid(nobody)
        .output();
    let output = match child {
        Ok(output) => output,
        Err(e) => return println!("skipped: the child can't be started: {e}"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap_or_default();
    if paranoid.trim().parse::<i32>().is_ok_and(|level| level <= 2) {
        assert!(text.contains("child: checked") || text.contains("seccomp"), "{text}");
    }
}

#[test]
fn a_spinning_thread_is_seen_preempted_and_the_log_moves_to_another_thread() {
    let cpu = machmeter_sys::affinity::mask().unwrap().first().unwrap();

    let other = Policy::Other { nice: 0 };
    let spinner =
        thread::spawn_placed("mm-spinner", Some(cpu), other, move || {
            let log = open(8)?;
            let until_ns = thread::monotonic_ns() + 300_000_000;
            let rival = thread::spawn_placed("mm-rival", Some(cpu), other, move || {
                while thread::monotonic_ns() < until_ns {}
            });
            while thread::monotonic_ns() < until_ns {}
            rival.unwrap().join();
            Some(log)
        });
    // The ring outlives its thread and is drained here.
    let Some(mut log) = spinner.unwrap().join() else { return };
    let mut switches = Vec::new();
    log.drain(&mut switches);
    let preempted = switches.iter().filter(|s| s.preempted).count();
    println!("{} switches, {preempted} preemptions", switches.len());
    assert!(preempted >= 3, "{switches:?}");
    assert!(switches.iter().all(|s| s.out || !s.preempted));
    assert!(
        switches.windows(2).filter(|w| w[0].out == w[1].out).count() <= 1,
        "out and in alternate: {switches:?}"
    );
}

#[test]
fn a_full_ring_counts_what_it_lost() {
    let Some(mut log) = open(1) else { return };
    let naps = || {
        for _ in 0..200 {
            std::thread::sleep(Duration::from_micros(1));
        }
    };
    naps();
    let mut switches = Vec::new();
    let first = log.drain(&mut switches);
    naps();
    let (second, lost) = log.stop();
    println!("{first} first; {} then, lost {lost} in all", second.len());
    assert!(first <= 128 && second.len() <= 128);
    // 400 naps make 800 switches, preemptions not counted; kernels before 6.0 know only the first loss.
    assert!(lost >= 200, "{lost}");
}
