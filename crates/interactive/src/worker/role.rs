//! Inside the task's process: the thread that listens and answers, and the thread that is the task.

use std::ffi::OsString;
use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::role::{self, MessageReader, MessageWriter, RoleError};
use machmeter_engine::stream::{Fate, Job, RealMachine, Release, Stop, Stream, run as run_stream};
use machmeter_engine::worker::NOTHING;
use machmeter_sys::counters::schedstat::SchedstatReader;
use machmeter_sys::process::{self, WORKER_ARGUMENT};
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::{memory, thread};

use super::{Ready, Reply, Request, TaskRequest};
use crate::oracle::given_up;
use crate::samples::Segment;

/// A segment whose start has passed when all is prepared begins so much later, ns.
const LEAD_NS: u64 = 5_000_000;
const STACK_BYTES: usize = 64 << 10;

/// What takes replies to the main process. Where nobody listens any more, the end of stdin says so, too.
type Replies = MessageWriter<Reply, fs::File>;

struct Order {
    start_ns: u64,
    length_ns: u64,
    jobs: Vec<Job>,
}

pub(super) fn run(_: &[OsString]) -> u8 {
    let Ok((requests, mut out)) = role::starter() else { return 1 };
    match serve(requests, &mut out) {
        Ok(()) => 0,
        Err(why) => {
            let _ = out.send(&Reply::Refused(why));
            1
        }
    }
}

fn serve(mut requests: MessageReader<Request>, out: &mut Replies) -> Result<(), String> {
    let inherited = favor_listening();
    let request = match requests.next(None) {
        Ok(Request::Begin(request)) => request,
        Ok(_) => return Err("a segment was asked for before a task".to_owned()),
        Err(RoleError::Ended(_)) => return Ok(()),
        Err(e) => return Err(asked_wrongly(&e)),
    };
    let stop = Arc::new(AtomicBool::new(false));
    let (answers, replies) = channel();
    let (orders, ordered) = sync_channel(1);
    let (of_task, stop_of_task, said) = (request.clone(), Arc::clone(&stop), answers.clone());
    thread::spawn_plain("mm-task", move || task(&of_task, inherited, &stop_of_task, &ordered, &said))
        .map_err(|e| format!("the thread of a task could not be started: {e}"))?;
    let hear = move |asked| {
        if let Err(why) = obey(asked, &request.stream, &orders, &stop) {
            let _ = answers.send(Reply::Refused(why));
        }
    };
    requests.listen(hear).map_err(|e| e.to_string())?;
    for reply in replies {
        let _ = out.send(&reply);
        if matches!(reply, Reply::Refused(_)) {
            break;
        }
    }
    Ok(())
}

fn asked_wrongly(e: &RoleError) -> String {
    format!("the starter of a task {e}")
}

fn obey(
    asked: Result<Request, RoleError>,
    stream: &Stream,
    orders: &SyncSender<Order>,
    stop: &AtomicBool,
) -> Result<(), String> {
    match asked {
        Ok(Request::Stop) => stop.store(true, Ordering::Relaxed),
        Ok(Request::Record { start_ns, length_ns }) => {
            stop.store(false, Ordering::Relaxed);
            let jobs = room_for(stream.jobs_in(length_ns));
            let sent = orders.send(Order { start_ns, length_ns, jobs });
            sent.map_err(|_| "the thread of the task ended")?;
        }
        Ok(Request::Begin(_)) => return Err("a process has one task".to_owned()),
        Err(RoleError::Ended(_)) => end_everything(),
        Err(e) => return Err(asked_wrongly(&e)),
    }
    Ok(())
}

/// Favors the listening thread, which must run beside any load, where permitted. The policy before, which the task has.
fn favor_listening() -> Option<Policy> {
    let inherited = sched::current().ok()?;
    if matches!(inherited, Policy::Other { .. }) {
        // A refusal leaves it as it is.
        let _ = sched::apply(Policy::Other { nice: -20 });
    }
    Some(inherited)
}

/// The main process is gone: this one ends at once, whatever its threads do, and with it what it started.
fn end_everything() {
    let own = std::process::id() as i32;
    process::kill_group_of(own);
    // It may have been started without a group of its own.
    let _ = process::kill_process(own);
}

/// An empty list with `n` places, whose pages are all there and, if possible, locked.
fn room_for(n: usize) -> Vec<Job> {
    let mut jobs = vec![given_up(0, 0, 0, Fate::Dropped); n];
    // The compiler cannot know that nobody looks, so the pages are written.
    std::hint::black_box(jobs.as_mut_slice());
    jobs.clear();
    let _ = memory::lock_present();
    jobs
}

fn task(
    request: &TaskRequest,
    inherited: Option<Policy>,
    stop: &Arc<AtomicBool>,
    orders: &Receiver<Order>,
    answers: &Sender<Reply>,
) {
    let (mut machine, ready) = match prepare(request, inherited, stop) {
        Ok(prepared) => prepared,
        Err(why) => return drop(answers.send(Reply::Refused(why))),
    };
    let threads = ready.tids.clone();
    let _ = answers.send(Reply::Ready(ready));
    let mut seed = request.seed;
    while let Ok(order) = orders.recv() {
        let reply = match request.attributes.apply() {
            Ok(()) => Reply::Segment(record(request, &mut machine, &threads, order, seed)),
            Err(why) => Reply::Refused(why),
        };
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        if answers.send(reply).is_err() {
            return;
        }
    }
}

fn prepare(
    request: &TaskRequest,
    inherited: Option<Policy>,
    stop: &Arc<AtomicBool>,
) -> Result<(RealMachine, Ready), String> {
    if let Some(policy) = inherited {
        sched::apply(policy).map_err(|e| e.to_string())?;
    }
    // A slack that cannot be set is reported as it is.
    let _ = thread::set_timer_slack_ns(1);
    request.attributes.apply()?;
    // A task whose memory cannot be locked runs all the same.
    let _ = memory::prepare_stack(STACK_BYTES).and_then(|()| memory::lock_present());
    let before = own_threads();
    let begun_ns = thread::monotonic_ns();
    let launch = (process::program(), vec![WORKER_ARGUMENT.into(), NOTHING.name.into()]);
    let machine = RealMachine::new(&request.stream, Arc::clone(stop), launch).map_err(|e| e.to_string())?;
    let calibration_ns = thread::monotonic_ns() - begun_ns;
    let mut tids = vec![thread::tid()];
    tids.extend(own_threads().into_iter().filter(|t| !before.contains(t)));
    let ready = Ready {
        pid: std::process::id() as i32,
        tids,
        policy: sched::current().map_err(|e| e.to_string())?.to_string(),
        timer_slack_ns: thread::timer_slack_ns().ok(),
        turns_per_ms: machine.spinner().turns_per_ms(),
        calibration_ns,
    };
    Ok((machine, ready))
}

fn own_threads() -> Vec<i32> {
    let entries = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    entries.filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
}

fn record(
    request: &TaskRequest,
    machine: &mut RealMachine,
    threads: &[i32],
    order: Order,
    seed: u64,
) -> Segment {
    let Order { mut start_ns, mut length_ns, mut jobs } = order;
    let before = Account::of(threads);
    // What this process did before it could sleep is no lateness of the first release.
    let now_ns = thread::monotonic_ns();
    if now_ns > start_ns {
        start_ns = now_ns + LEAD_NS;
    }
    let ended = run_stream(machine, &request.stream, start_ns, length_ns, seed, &mut jobs);
    let after = Account::of(threads);
    let (asked_ns, passed_ns) = (length_ns, thread::monotonic_ns().saturating_sub(start_ns));
    match ended {
        Stop::Asked => {
            length_ns = stopped_at(&request.stream, jobs.len() as u64, passed_ns).min(length_ns);
        }
        Stop::Full => length_ns = passed_ns.min(length_ns),
        Stop::Time => {}
    }
    let scheduled = match request.stream.release {
        // By the clock alone, so that nothing the runner leaves out can hide.
        Release::Periodic { period_ns } => length_ns.div_ceil(period_ns.max(1)),
        Release::Poisson { .. } | Release::Closed { .. } => jobs.len() as u64,
    };
    if let (Stop::Asked, Release::Periodic { period_ns }) = (ended, request.stream.release) {
        // It was stopped while it was behind: what it did not get to is given up now, and counts.
        give_up_rest(&mut jobs, scheduled, period_ns, passed_ns);
    }
    let trouble = match ended {
        // Its time was over, and it was told so because it was hopelessly behind.
        Stop::Asked if passed_ns >= asked_ns && scheduled == jobs.len() as u64 => None,
        Stop::Asked => Some(format!("stopped after {length_ns} of {asked_ns} ns")),
        Stop::Full => Some(format!(
            "ended after {} of {}: no room for more than {} jobs",
            human(length_ns as f64, Unit::Nanoseconds),
            human(asked_ns as f64, Unit::Nanoseconds),
            jobs.len()
        )),
        Stop::Time if scheduled != jobs.len() as u64 => {
            Some(format!("{scheduled} releases by schedule, {} on record", jobs.len()))
        }
        Stop::Time => None,
    };
    let both = |f: fn(&Account) -> Option<u64>| f(&after).zip(f(&before)).map(|(a, b)| a.saturating_sub(b));
    Segment {
        start_ns,
        length_ns,
        jobs,
        scheduled,
        run_delay_ns: both(|a| a.wait_ns),
        on_cpu_ns: both(|a| a.run_ns),
        voluntary: after.voluntary.saturating_sub(before.voluntary),
        involuntary: after.involuntary.saturating_sub(before.involuntary),
        trouble,
        ..Segment::default()
    }
}

/// Length of a segment stopped after `passed_ns`, ns. A stop is heard at the next release, which is then not begun.
fn stopped_at(stream: &Stream, jobs: u64, passed_ns: u64) -> u64 {
    match stream.release {
        Release::Periodic { period_ns } if passed_ns.saturating_sub(jobs * period_ns) <= period_ns => {
            passed_ns.min(jobs * period_ns)
        }
        _ => passed_ns,
    }
}

/// Adds the releases of a periodic stream that are not on record, as far as there is room, as dropped at `now_ns`.
fn give_up_rest(jobs: &mut Vec<Job>, scheduled: u64, period_ns: u64, now_ns: u64) {
    let room = jobs.capacity() as u64;
    for number in jobs.len() as u64..scheduled.min(room) {
        let release_ns = number * period_ns;
        jobs.push(given_up(number, release_ns, now_ns.max(release_ns), Fate::Dropped));
    }
}

struct Account {
    wait_ns: Option<u64>,
    run_ns: Option<u64>,
    voluntary: u64,
    involuntary: u64,
}

impl Account {
    fn of(threads: &[i32]) -> Self {
        let stats = || threads.iter().map(|t| SchedstatReader::open_thread(*t).and_then(|r| r.read()).ok());
        let switches: Vec<(u64, u64)> = threads.iter().map(|t| switches(*t)).collect();
        Self {
            wait_ns: stats().map(|s| s.map(|s| s.wait_ns)).sum(),
            run_ns: stats().map(|s| s.map(|s| s.run_ns)).sum(),
            voluntary: switches.iter().map(|s| s.0).sum(),
            involuntary: switches.iter().map(|s| s.1).sum(),
        }
    }
}

/// Voluntary and involuntary switches of a thread of this process (proc(5), `/proc/PID/task/TID/status`).
fn switches(tid: i32) -> (u64, u64) {
    let text = fs::read_to_string(format!("/proc/self/task/{tid}/status")).unwrap_or_default();
    let of = |key: &str| text.lines().find_map(|l| l.strip_prefix(key)?.trim().parse().ok()).unwrap_or(0);
    (of("voluntary_ctxt_switches:"), of("nonvoluntary_ctxt_switches:"))
}

#[cfg(test)]
mod tests {
    use machmeter_engine::Attributes;

    use super::*;
    use crate::tasks::periodic;

    #[test]
    fn what_was_slow_to_prepare_is_no_lateness() {
        let stream = periodic(10_000_000, 1_000);
        let stop = Arc::new(AtomicBool::new(false));
        let mut machine = RealMachine::new(&stream, stop, (process::program(), Vec::new())).unwrap();
        let request = TaskRequest { stream, attributes: Attributes::default(), seed: 1 };
        let mut begun_late = || {
            let jobs = room_for(request.stream.jobs_in(50_000_000));
            // As when the task's thread was kept from the CPU for a second.
            let start_ns = thread::monotonic_ns() - 1_000_000_000;
            let order = Order { start_ns, length_ns: 50_000_000, jobs };
            let s = record(&request, &mut machine, &[thread::tid()], order, 1);
            assert!(s.start_ns > start_ns + 1_000_000_000, "{s:?}");
            s.scheduled == 5 && s.jobs.len() == 5 && s.jobs[0].slept()
        };
        // Others may take the CPU for longer than the lead: one of five is enough.
        assert!((0..5).any(|_| begun_late()));
    }
}
