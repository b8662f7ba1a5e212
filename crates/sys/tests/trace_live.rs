//! The tracer against the real kernel. Every test prints why it is skipped where tracefs can't be used.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "allowed inside test functions as well")]

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use machmeter_sys::affinity;
use machmeter_sys::clock::{OrderedCounter, TickSource};
use machmeter_sys::pseudofs::KernelMount;
use machmeter_sys::sched::Policy;
use machmeter_sys::thread;
use machmeter_sys::topology::CpuSet;
use machmeter_sys::trace::{EventKind, TraceClock, TraceConfig, TraceLog, TraceSession};

fn last_cpu() -> usize {
    affinity::mask().unwrap().iter().next_back().unwrap()
}

fn start(config: &TraceConfig) -> Option<TraceSession> {
    match TraceSession::start(config) {
        Ok(session) => Some(session),
        Err(e) if e.to_string().starts_with("kernel events are not available: ") => {
            println!("skipped: {e}");
            assert!(!e.to_string().contains('\n'));
            None
        }
        Err(e) => panic!("{e}"),
    }
}

/// A buffer that also holds what a busy machine adds.
fn on_cpu(cpu: usize) -> TraceConfig {
    TraceConfig { buffer_bytes_per_cpu: 32 << 20, ..TraceConfig::on(CpuSet::single(cpu)) }
}

/// Reads the counter until `until_ns` and logs every step of more than `threshold_ticks` as (begin, end).
fn gaps(until_ns: u64, threshold_ticks: u64) -> Vec<(u64, u64)> {
    let mut gaps = Vec::with_capacity(1 << 16);
    let mut last = OrderedCounter::now();
    let mut turns = 0_u32;
    loop {
        let now = OrderedCounter::now();
        if now - last > threshold_ticks {
            gaps.push((last, now));
        }
        last = now;
        turns += 1;
        if turns.is_multiple_of(1 << 10) && thread::monotonic_ns() >= until_ns {
            return gaps;
        }
    }
}

/// Interrupts its CPU every 5 ms for about 200 us; returns the bursts as (begin, end).
fn intrude(until_ns: u64) -> Vec<(u64, u64)> {
    let mut bursts = Vec::new();
    let mut next_ns = thread::monotonic_ns();
    while next_ns < until_ns {
        next_ns += 5_000_000;
        thread::nanosleep_until(next_ns);
        let begin = OrderedCounter::now();
        let stop_ns = thread::monotonic_ns() + 200_000;
        while thread::monotonic_ns() < stop_ns {}
        bursts.push((begin, OrderedCounter::now()));
    }
    bursts
}

fn dropped(log: &TraceLog) -> u64 {
    log.dropped.iter().map(|d| d.events).sum()
}

fn switches_to<'l>(log: &'l TraceLog, comm: &'l str) -> impl DoubleEndedIterator<Item = u64> + 'l {
    log.events.iter().filter_map(move |e| match e.kind {
        EventKind::SwitchTo { next_comm, .. } if log.name(next_comm) == comm => Some(e.ticks),
        _ => None,
    })
}

fn switches_from<'l>(log: &'l TraceLog, comm: &'l str) -> impl Iterator<Item = u64> + 'l {
    log.events.iter().filter_map(move |e| match e.kind {
        EventKind::SwitchTo { prev_comm, .. } if log.name(prev_comm) == comm => Some(e.ticks),
        _ => None,
    })
}

#[test]
fn an_intruding_thread_is_named_inside_the_gaps_of_the_thread_it_interrupts() {
    let cpu = last_cpu();
    let Some(session) = start(&on_cpu(cpu)) else { return };
    if session.clock() != TraceClock::X86Tsc {
        return println!("skipped: the trace clock is {}", session.clock());
    }
    let until_ns = thread::monotonic_ns() + 800_000_000;
    let intruder =
        match thread::spawn_placed("mm-intruder", Some(cpu), Policy::Fifo(60), move || intrude(until_ns)) {
            Ok(thread) => thread,
            Err(e) => return println!("skipped: {e}"),
        };
    let other = Policy::Other { nice: 0 };
    let spinner =
        thread::spawn_placed("mm-spinner", Some(cpu), other, move || gaps(until_ns, 1_000)).unwrap();
    let (gaps, bursts) = (spinner.join(), intruder.join());
    let log = session.stop().unwrap();
    assert_eq!((log.malformed_records, dropped(&log)), (0, 0));
    assert!(log.events.is_sorted_by_key(|e| e.ticks));
    // A burst counts when the spinner was running before and after, so that the burst lies in one of its gaps.
    let mut lead_ticks = Vec::new();
    let (mut inside, mut named) = (0_usize, 0_usize);
    let enclosed = bursts.iter().filter_map(|b| Some((b, gaps.iter().find(|g| g.0 <= b.0 && b.1 <= g.1)?)));
    for (burst, gap) in enclosed {
        inside += 1;
        let switch = switches_to(&log, "mm-intruder").rfind(|t| gap.0 <= *t && *t <= burst.0);
        lead_ticks.extend(switch.map(|t| burst.0 - t));
        // Kernels may leave out the switch from some tasks, so the switch away from the intruder names it as well.
        let left = switches_from(&log, "mm-intruder").any(|t| burst.1 <= t && t <= gap.1);
        named += usize::from(switch.is_some() || left);
        if switch.is_none() && !left {
            let seen = log.events.iter().filter(|e| gap.0 <= e.ticks && e.ticks <= gap.1);
            println!(
                "not named: gap {gap:?}, burst {burst:?} of {}..{}",
                bursts[0].0,
                bursts[bursts.len() - 1].1
            );
            for event in seen {
                match event.kind {
                    EventKind::SwitchTo { prev_pid, next_pid, next_comm, .. } => {
                        println!("  {} switch {prev_pid} to {next_pid} {}", event.ticks, log.name(next_comm));
                    }
                    other => println!("  {} {other:?}", event.ticks),
                }
            }
        }
    }
    assert!(inside >= 20, "only {inside} of {} bursts lie in a gap", bursts.len());
    lead_ticks.sort_unstable();
    println!(
        "{inside} bursts in gaps, {named} named, {} at their begin; switch record to first user tick: min {} median {} max {} ticks; {} events",
        lead_ticks.len(),
        lead_ticks[0],
        lead_ticks[lead_ticks.len() / 2],
        lead_ticks[lead_ticks.len() - 1],
        log.events.len()
    );
    assert!(named * 100 >= inside * 99, "{named} of {inside} named");
    assert!(lead_ticks.len() * 10 >= inside * 8, "{} of {inside} begins seen", lead_ticks.len());
}

/// Two threads on `cpu` hand a byte to and fro: two switches per turn.
fn ping_pong(cpu: usize, turns: u32) -> u64 {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    let (mut a, mut b) = UnixStream::pair().unwrap();
    let other = Policy::Other { nice: 0 };
    let echo = thread::spawn_placed("mm-echo", Some(cpu), other, move || {
        let mut byte = [0];
        while b.read_exact(&mut byte).is_ok() && b.write_all(&byte).is_ok() {}
    });
    let echo = echo.unwrap();
    let caller = thread::spawn_placed("mm-call", Some(cpu), other, move || {
        let begin_ns = thread::monotonic_ns();
        for _ in 0..turns {
            a.write_all(&[1]).unwrap();
            a.read_exact(&mut [0]).unwrap();
        }
        thread::monotonic_ns() - begin_ns
    });
    let elapsed_ns = caller.unwrap().join();
    echo.join();
    elapsed_ns
}

#[test]
fn a_full_buffer_drops_with_a_count() {
    let cpu = last_cpu();
    let config = TraceConfig { buffer_bytes_per_cpu: 1, ..on_cpu(cpu) };
    let Some(mut session) = start(&config) else { return };
    ping_pong(cpu, 3_000);
    let first_read = session.drain().unwrap();
    ping_pong(cpu, 20);
    let log = session.stop().unwrap();
    println!("{first_read} read, then {} in all, {:?}", log.events.len(), log.dropped);
    assert!(first_read > 100);
    assert!(dropped(&log) > 1_000, "{:?}", log.dropped);
}

#[test]
fn reads_in_between_give_one_ordered_log() {
    let cpu = last_cpu();
    let Some(mut session) = start(&on_cpu(cpu)) else { return };
    let mut read = 0;
    for _ in 0..5 {
        ping_pong(cpu, 200);
        read += session.drain().unwrap();
    }
    let log = session.stop().unwrap();
    assert_eq!((log.malformed_records, dropped(&log)), (0, 0));
    assert!(log.events.len() >= read);
    assert!(log.events.is_sorted_by_key(|e| e.ticks));
    let switches = switches_to(&log, "mm-echo").count();
    assert!(switches >= 5 * 190, "{switches} switches seen");
    assert!(log.events.iter().all(|e| usize::from(e.cpu) == cpu));
}

#[test]
fn missing_events_are_listed() {
    let mut config = on_cpu(last_cpu());
    config.events.push("nowhere/no_such_event".to_owned());
    let Some(session) = start(&config) else { return };
    let skipped = session.stop().unwrap().skipped_events;
    assert!(skipped.iter().any(|s| s.event == "nowhere/no_such_event" && s.why.contains("kernel")));
    config = on_cpu(60_000);
    let e = TraceSession::start(&config).unwrap_err().to_string();
    assert!(e.contains("does every CPU exist") || e.contains("CPU mask"), "{e}");
}

/// What belongs to others: the settings of the top-level buffer.
fn top_level() -> Option<Vec<String>> {
    let mount = KernelMount::of_tracefs().ok()?;
    let files =
        ["tracing_on", "trace_clock", "set_event", "buffer_size_kb", "tracing_cpumask", "trace_options"];
    files.iter().map(|f| fs::read_to_string(mount.path().join(f)).ok()).collect()
}

#[test]
fn the_buffer_of_other_tracers_is_not_touched() {
    let Some(before) = top_level() else { return println!("skipped: tracefs can't be read") };
    let Some(session) = start(&on_cpu(last_cpu())) else { return };
    assert_eq!(top_level().unwrap(), before);
    session.stop().unwrap();
    assert_eq!(top_level().unwrap(), before);
}

fn instances() -> Vec<String> {
    let Ok(mount) = KernelMount::of_tracefs() else { return Vec::new() };
    let Ok(entries) = fs::read_dir(mount.path().join("instances")) else { return Vec::new() };
    entries.flatten().filter_map(|e| e.file_name().into_string().ok()).collect()
}

#[test]
#[ignore = "child process of another test"]
fn child_that_traces_until_it_is_killed() {
    machmeter_sys::guard::signals::install().unwrap();
    let Some(_session) = start(&on_cpu(last_cpu())) else { return };
    fs::write("ready", "").unwrap();
    std::thread::sleep(Duration::from_secs(30));
}

/// Starts the child above in `dir`, waits until it traces, sends `signals` with pauses and waits for its end.
fn end_child(dir: &Path, signals: &[libc::c_int]) -> u32 {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "child_that_traces_until_it_is_killed"])
        .current_dir(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    for _ in 0..2_000 {
        if dir.join("ready").exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(instances().contains(&format!("machmeter-{pid}")));
    for signal in signals {
        // SAFETY: plain integers; the child is ours and not yet waited for.
        assert_eq!(unsafe { libc::kill(pid as libc::pid_t, *signal) }, 0);
        std::thread::sleep(Duration::from_millis(400));
    }
    child.wait().unwrap();
    pid
}

#[test]
fn the_instance_goes_away_on_signals_and_after_a_kill_at_the_next_start() {
    if start(&on_cpu(last_cpu())).is_none() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let pid = end_child(dir.path(), &[libc::SIGTERM, libc::SIGTERM]);
    assert!(!instances().contains(&format!("machmeter-{pid}")), "two signals leave nothing behind");
    let dir = tempfile::tempdir().unwrap();
    let name = format!("machmeter-{}", end_child(dir.path(), &[libc::SIGKILL]));
    let mount = KernelMount::of_tracefs().unwrap();
    let said =
        |file: &str| fs::read_to_string(mount.path().join("instances").join(&name).join(file)).unwrap();
    assert_eq!(said("tracing_on").trim(), "0", "the trace goes on");
    // 32 MiB were asked for.
    let freed = said(&format!("per_cpu/cpu{}/buffer_size_kb", last_cpu()));
    assert!(freed.trim().parse::<u64>().unwrap() < 100, "{freed} kB are held");
    drop(start(&on_cpu(last_cpu())).unwrap());
    assert!(!instances().contains(&name), "the next start removes what a killed process left");
}

/// Draining from another thread while the traced one runs keeps every event.
#[test]
fn a_session_can_be_drained_by_another_thread() {
    let cpu = last_cpu();
    let Some(mut session) = start(&TraceConfig { buffer_bytes_per_cpu: 8 << 20, ..on_cpu(cpu) }) else {
        return;
    };
    let done = AtomicBool::new(false);
    let log = std::thread::scope(|scope| {
        let drainer = scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                session.drain().unwrap();
                std::thread::sleep(Duration::from_millis(5));
            }
            session.stop().unwrap()
        });
        ping_pong(cpu, 5_000);
        done.store(true, Ordering::Release);
        drainer.join().unwrap()
    });
    assert_eq!(log.malformed_records, 0);
    assert!(log.events.is_sorted_by_key(|e| e.ticks));
    let switches = switches_to(&log, "mm-echo").count() as u64;
    assert!(switches + dropped(&log) >= 4_900, "{switches} {:?}", log.dropped);
}
