//! Threads with a name, a CPU and a scheduling policy, and what the kernel says about the calling thread.
//!
//! The only place that starts threads which outlive a scope, so that every thread is placed on purpose.

use std::io;
use std::num::NonZeroU64;
use std::panic;
use std::sync::mpsc;
use std::thread::{Builder, JoinHandle, Scope, ScopedJoinHandle};

use crate::Refused;
use crate::affinity;
use crate::counters::schedstat::{Schedstat, SchedstatReader};
use crate::memory;
use crate::sched::{self, Policy};
use crate::task_headroom::TaskHeadroom;

/// Stack that is touched and locked before a placed thread's work begins; deeper use takes page faults as usual.
const PREPARED_STACK_BYTES: usize = 256 * 1024;

/// Why a thread is not where, or does not run as, it should.
fn misplaced(name: &str, why: &Refused) -> Refused {
    Refused(format!("thread '{name}': {why}"))
}

/// What a placed thread reported before its work began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    pub tid: i32,
    /// Policy in force, read back from the kernel.
    pub policy: Policy,
}

/// A running placed thread; a scoped one ends before its scope does.
#[derive(Debug)]
pub struct ScopedPlacedThread<'scope, T> {
    placed: Placed,
    handle: Handle<'scope, T>,
}

pub type PlacedThread<T> = ScopedPlacedThread<'static, T>;

#[derive(Debug)]
enum Handle<'scope, T> {
    Own(JoinHandle<Option<T>>),
    Scoped(ScopedJoinHandle<'scope, Option<T>>),
}

impl<T> Handle<'_, T> {
    fn join(self) -> std::thread::Result<Option<T>> {
        match self {
            Self::Own(handle) => handle.join(),
            Self::Scoped(handle) => handle.join(),
        }
    }
}

impl<T> ScopedPlacedThread<'_, T> {
    pub fn placed(&self) -> &Placed {
        &self.placed
    }

    pub fn is_finished(&self) -> bool {
        match &self.handle {
            Handle::Own(handle) => handle.is_finished(),
            Handle::Scoped(handle) => handle.is_finished(),
        }
    }

    /// Waits for the thread and returns its value; a panic in it continues here.
    pub fn join(self) -> T {
        match self.handle.join() {
            Ok(Some(value)) => value,
            Ok(None) => unreachable!("a handle exists only if the thread reported that its work begins"),
            Err(payload) => panic::resume_unwind(payload),
        }
    }
}

/// Starts a thread called `name`, pins it to `cpu`, prepares its stack, applies `policy` and runs `work`; returns
/// when it is placed. Errors: `work` then never runs and the thread has ended.
pub fn spawn_placed<T: Send + 'static>(
    name: &str,
    cpu: Option<usize>,
    policy: Policy,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<PlacedThread<T>, Refused> {
    let (report, reported) = mpsc::sync_channel(1);
    let body = place_and_run(name.to_owned(), cpu, policy, report, work);
    placed(name, Builder::new().name(name.to_owned()).spawn(body).map(Handle::Own), &reported)
}

/// As [`spawn_placed`], for a thread that borrows from its scope.
pub fn spawn_placed_scoped<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    cpu: Option<usize>,
    policy: Policy,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedPlacedThread<'scope, T>, Refused> {
    let (report, reported) = mpsc::sync_channel(1);
    let body = place_and_run(name.to_owned(), cpu, policy, report, work);
    placed(
        name,
        Builder::new().name(name.to_owned()).spawn_scoped(scope, body).map(Handle::Scoped),
        &reported,
    )
}

/// Starts a thread without placement, for housekeeping such as waiting for signals.
pub fn spawn_plain<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    Builder::new().name(name.to_owned()).spawn(work).map_err(TaskHeadroom::explain)
}

/// What `work` gives on a thread that ends at once. Errors: the thread cannot be started, or panicked.
pub fn on_its_own<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = Builder::new().spawn_scoped(scope, work).map_err(TaskHeadroom::explain)?;
        thread.join().map_err(|_| io::Error::other("it panicked"))
    })
}

fn place_and_run<T>(
    name: String,
    cpu: Option<usize>,
    policy: Policy,
    report: mpsc::SyncSender<Result<Placed, Refused>>,
    work: impl FnOnce() -> T,
) -> impl FnOnce() -> Option<T> {
    move || {
        let placed = place_current(&name, cpu, policy);
        let begin = placed.is_ok();
        let received = report.send(placed).is_ok();
        (begin && received).then(work)
    }
}

/// The thread, once it has reported that it is placed.
fn placed<'scope, T>(
    name: &str,
    started: io::Result<Handle<'scope, T>>,
    reported: &mpsc::Receiver<Result<Placed, Refused>>,
) -> Result<ScopedPlacedThread<'scope, T>, Refused> {
    let failed = |e| misplaced(name, &Refused(format!("cannot be started: {}", TaskHeadroom::explain(e))));
    let handle = started.map_err(failed)?;
    let died = |_| Err(failed(io::Error::other("it ended before it was placed")));
    match reported.recv().unwrap_or_else(died) {
        Ok(placed) => Ok(ScopedPlacedThread { placed, handle }),
        Err(e) => {
            let _ = handle.join();
            Err(e)
        }
    }
}

/// Pins, prepares and schedules the calling thread. The policy comes last, so that nothing slow happens in real time.
/// Errors: with `name` in its text; the thread may then be pinned already.
pub fn place_current(name: &str, cpu: Option<usize>, policy: Policy) -> Result<Placed, Refused> {
    if let Some(cpu) = cpu {
        affinity::pin(cpu).map_err(|e| misplaced(name, &e))?;
    }
    // A stack that the limits keep from being locked is touched all the same.
    let _ = memory::prepare_stack(PREPARED_STACK_BYTES);
    let in_force = sched::apply(policy).and_then(|()| sched::current());
    let policy = in_force.map_err(|e| misplaced(name, &e))?;
    Ok(Placed { tid: tid(), policy })
}

pub fn effective_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Kernel thread id of the calling thread.
pub fn tid() -> i32 {
    rustix::thread::gettid().as_raw_nonzero().get()
}

/// `CLOCK_MONOTONIC` in nanoseconds; safe in signal handlers.
pub fn monotonic_ns() -> u64 {
    clock_ns(rustix::time::ClockId::Monotonic)
}

/// CPU time of the calling thread so far, ns (`CLOCK_THREAD_CPUTIME_ID`).
pub fn thread_cpu_ns() -> u64 {
    clock_ns(rustix::time::ClockId::ThreadCPUTime)
}

#[inline]
pub(crate) fn clock_ns(clock: rustix::time::ClockId) -> u64 {
    let now = rustix::time::clock_gettime(clock);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[inline]
pub(crate) fn timespec(ns: u64) -> rustix::time::Timespec {
    rustix::time::Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// What getrusage(2) says of this thread, or of the children.
fn usage(of: libc::c_int) -> libc::rusage {
    // SAFETY: rusage consists of integers, for which all zeros are valid.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: a live, writable rusage; this target can't fail with a valid pointer.
    unsafe { libc::getrusage(of, &raw mut usage) };
    usage
}

/// CPU time of all children that were waited for, ns (`RUSAGE_CHILDREN`, in steps of a microsecond).
pub fn children_cpu_ns() -> u64 {
    let usage = usage(libc::RUSAGE_CHILDREN);
    let ns = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    ns(usage.ru_utime) + ns(usage.ru_stime)
}

/// Sleeps until `CLOCK_MONOTONIC` reaches `deadline_ns`; returns at once if it has. Signals don't end the sleep early.
pub fn nanosleep_until(deadline_ns: u64) {
    let deadline = timespec(deadline_ns);
    let clock = rustix::thread::ClockId::Monotonic;
    while let Err(rustix::io::Errno::INTR) = rustix::thread::clock_nanosleep_absolute(clock, &deadline) {}
}

/// How late the kernel may wake this thread from a sleep, ns (50 us by default; real-time: 0).
pub fn timer_slack_ns() -> io::Result<u64> {
    Ok(rustix::thread::current_timer_slack()?)
}

/// Sets the calling thread's timer slack; at least 1 ns (0 would mean "back to the default").
pub fn set_timer_slack_ns(slack_ns: u64) -> io::Result<()> {
    Ok(rustix::thread::set_current_timer_slack(NonZeroU64::new(slack_ns.max(1)))?)
}

/// Page faults and context switches of one thread since its start (`getrusage(RUSAGE_THREAD)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub minor_faults: u64,
    /// Faults that had to read from storage.
    pub major_faults: u64,
    /// Switches because the thread waited for something.
    pub voluntary_switches: u64,
    /// Switches because the scheduler took the CPU away.
    pub involuntary_switches: u64,
}

impl Usage {
    pub fn of_current_thread() -> Self {
        Self::of(libc::RUSAGE_THREAD)
    }

    /// Of all threads of this process, those that ended included.
    #[inline]
    pub fn of_process() -> Self {
        Self::of(libc::RUSAGE_SELF)
    }

    #[inline]
    fn of(who: libc::c_int) -> Self {
        let usage = usage(who);
        Self {
            minor_faults: usage.ru_minflt as u64,
            major_faults: usage.ru_majflt as u64,
            voluntary_switches: usage.ru_nvcsw as u64,
            involuntary_switches: usage.ru_nivcsw as u64,
        }
    }

    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
        }
    }
}

/// Run and wait time of the calling thread so far. Errors: the kernel has no `schedstat`.
pub fn schedstat() -> io::Result<Schedstat> {
    SchedstatReader::open_thread(tid())?.read()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placed_thread_runs_where_and_how_it_was_told() {
        let cpu = affinity::mask().unwrap().first().unwrap();
        let thread = spawn_placed("placed", Some(cpu), Policy::Batch, move || {
            (tid(), affinity::mask().unwrap().to_vec(), sched::current().unwrap())
        })
        .unwrap();
        let placed = thread.placed().clone();
        assert_eq!(thread.join(), (placed.tid, vec![cpu], Policy::Batch));
        assert_eq!(placed.policy, Policy::Batch);
    }

    #[test]
    fn a_scoped_thread_borrows_and_a_panic_reaches_the_joiner() {
        let data = [1_u64, 2, 3];
        let sum = std::thread::scope(|scope| {
            let other = Policy::ordinary();
            spawn_placed_scoped(scope, "sum", None, other, || data.iter().sum::<u64>()).unwrap().join()
        });
        assert_eq!(sum, 6);
        let failing = spawn_placed("failing", None, Policy::Batch, || panic!("on purpose")).unwrap();
        assert!(panic::catch_unwind(panic::AssertUnwindSafe(|| failing.join())).is_err());
    }

    #[test]
    fn a_missing_cpu_or_wrong_policy_is_one_clear_line_and_the_work_never_runs() {
        for cpu in [1_023, 70_000] {
            let e = spawn_placed("lost", Some(cpu), Policy::Batch, || panic!("must not run"))
                .unwrap_err()
                .to_string();
            assert!(e.contains("thread 'lost'") && e.contains(&cpu.to_string()) && !e.contains('\n'), "{e}");
        }
        let e =
            spawn_placed("bad", None, Policy::Fifo(0), || panic!("must not run")).unwrap_err().to_string();
        assert!(e.contains("priority 0"), "{e}");
    }

    #[test]
    fn sleep_never_ends_early_and_the_past_returns_at_once() {
        let begin_ns = monotonic_ns();
        nanosleep_until(begin_ns + 3_000_000);
        assert!(monotonic_ns() >= begin_ns + 3_000_000);
        nanosleep_until(begin_ns);
    }

    #[test]
    fn usage_counts_the_threads_own_faults_and_switches() {
        let before = Usage::of_current_thread();
        std::thread::sleep(std::time::Duration::from_millis(2));
        let fresh = crate::memory::LockedBuf::<u64>::new(64 * 1024).unwrap();
        let delta = Usage::of_current_thread().since(&before);
        assert!(delta.voluntary_switches >= 1, "{delta:?}");
        assert!(delta.minor_faults >= 1, "{delta:?} {}", fresh.as_slice().len());
    }

    #[test]
    fn schedstat_run_time_grows_with_work() {
        let Ok(before) = schedstat() else {
            return println!("skipped: no schedstat here");
        };
        let until_ns = monotonic_ns() + 20_000_000;
        while monotonic_ns() < until_ns {}
        let delta = schedstat().unwrap().since(&before);
        assert!(delta.run_ns > 0 && delta.run_ns + delta.wait_ns >= 10_000_000, "{delta:?}");
    }
}
