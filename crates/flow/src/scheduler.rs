//! The dynamic scheduler: takes a ready schedule, fits its granularity to what its queues hold, runs it, and sees what it waits for.

use std::cell::Cell;
use std::cmp::Reverse;
use std::time::Duration;

use machmeter_sys::thread::monotonic_ns;

use crate::Outcome;
use crate::kernel::{Erased, Memory, Place, run_schedule};
use crate::names::Name;
use crate::program::{Ended, Kernel, ReadyWay};
use crate::queue::{Operations, OperationsOf, Queue, ReadEnd, consume, place_output, read_dq, write_dqs};
use crate::ready::{Condition, ReadySet};
use crate::schedule::{Schedule, State};
use crate::segment::{self, Group};
use crate::timer::{Log, Off, On, Timer};

/// First pause when all that is left waits to be tried again; doubled up to the longest.
const PAUSE_NS: u64 = 2_000;
const LONGEST_PAUSE_NS: u64 = 1_000_000;

/// Everything of a program that runs.
pub struct Core {
    pub(crate) schedules: Box<[Schedule]>,
    pub(crate) queues: Box<[Queue]>,
    pub(crate) ends: Box<[ReadEnd]>,
    pub(crate) conditions: Box<[Condition]>,
    pub(crate) groups: Box<[Group]>,
    pub(crate) boxes: Box<[Erased]>,
    pub(crate) places: Box<[Place]>,
    /// Static edges, and copies of what is in queues.
    pub(crate) memory: Memory,
    pub(crate) ready: ReadySet,
    pub(crate) operations: Cell<&'static Operations>,
    pub(crate) log: Log,
    /// One schedule, no queues.
    pub(crate) is_static: bool,
}

impl Core {
    /// A schedule can run.
    #[inline]
    pub(crate) fn enter_ready<R: ReadyWay>(&self, schedule: usize) {
        self.schedules[schedule].state.set(State::Ready);
        R::insert(&self.ready, schedule);
    }
}

fn enter_ready<K: Kernel, T: Timer>(core: &Core, schedule: usize) {
    T::enter(&core.log, Name::EnterReady as u8);
    core.enter_ready::<K::Ready>(schedule);
    T::leave(&core.log);
}

#[inline]
fn next_schedule<K: Kernel, T: Timer>(core: &Core) -> Option<usize> {
    T::enter(&core.log, Name::NextSchedule as u8);
    T::enter(&core.log, Name::ExitPending as u8);
    if core.ready.pending_periodic.get() > 0 {
        leave_periodic::<K, T>(core);
    }
    T::leave(&core.log);
    T::enter(&core.log, Name::ExitPending as u8);
    if core.ready.pending_retry.get() > 0 {
        leave_retry::<K, T>(core);
    }
    T::leave(&core.log);
    T::enter(&core.log, Name::ExitReady as u8);
    let next = K::Ready::take(&core.ready);
    T::leave(&core.log);
    T::leave(&core.log);
    next
}

#[cold]
fn leave_periodic<K: Kernel, T: Timer>(core: &Core) {
    let now_ns = monotonic_ns();
    let mut waiting = core.ready.periodic.borrow_mut();
    while let Some(Reverse((due_ns, schedule))) = waiting.peek().copied() {
        if due_ns > now_ns {
            break;
        }
        waiting.pop();
        become_ready_or_wait::<K, T>(core, schedule);
    }
    core.ready.pending_periodic.set(waiting.len());
}

#[cold]
fn leave_retry<K: Kernel, T: Timer>(core: &Core) {
    for schedule in core.ready.retry.borrow_mut().drain(..) {
        become_ready_or_wait::<K, T>(core, schedule);
    }
    core.ready.pending_retry.set(0);
}

#[inline]
fn become_ready_or_wait<K: Kernel, T: Timer>(core: &Core, schedule: usize) {
    let s = &core.schedules[schedule];
    s.state.set(State::QueueWait);
    if K::Ready::can_run(core, s) {
        enter_ready::<K, T>(core, schedule);
    }
}

/// As many iterations as all queues allow; 0 where some do not even allow one.
#[inline]
fn set_granularity<K: Kernel, T: Timer>(core: &Core, s: &Schedule) {
    T::enter(&core.log, Name::SetGranularity as u8);
    let mut granularity = u64::from(s.most.get()).min(s.left.get());
    let mut fit = |tokens: u64, need: u64| {
        if tokens < need * granularity {
            granularity = tokens / need;
        }
    };
    for i in &s.inputs {
        let e = &core.ends[i.end];
        fit(e.readable(core.queues[e.queue].written.get()), i.need);
    }
    for o in &s.outputs {
        fit(core.queues[o.queue].room(), o.need);
    }
    s.granularity.set(granularity as u32);
    T::leave(&core.log);
}

/// Runs the next ready schedule; false if there is none.
#[inline(never)]
pub(crate) fn turn<K: Kernel, T: Timer>(core: &Core) -> bool {
    let Some(schedule) = next_schedule::<K, T>(core) else { return false };
    let s = &core.schedules[schedule];
    T::enter(&core.log, Name::EnterRunning as u8);
    s.state.set(State::Running);
    let goes = !s.has_segments || s.resume.get() > 0 || segment::prepare::<K, T>(core, s);
    T::leave(&core.log);
    let outcome = if goes { run::<K, T>(core, s) } else { Outcome::Done };
    T::enter(&core.log, Name::ExitRunning as u8);
    match outcome {
        Outcome::Over => s.state.set(State::Over),
        Outcome::Retry => retry_later::<T>(core, schedule),
        _ if s.period_ns.is_some() && outcome == Outcome::Done => wait_for_period::<T>(core, schedule),
        _ => become_ready_or_wait::<K, T>(core, schedule),
    }
    T::leave(&core.log);
    true
}

#[inline]
fn run<K: Kernel, T: Timer>(core: &Core, s: &Schedule) -> Outcome {
    if s.resume.get() == 0 {
        set_granularity::<K, T>(core, s);
        let granularity = u64::from(s.granularity.get());
        for i in &s.inputs {
            read_dq::<K, T>(core, i, granularity);
        }
        for o in &s.outputs {
            place_output::<K>(core, o, granularity);
        }
    }
    let (at, outcome) = run_schedule::<T>(core, s);
    s.resume.set(at);
    if outcome == Outcome::Done {
        finish::<K, T>(core, s);
        if s.left.get() > 0 {
            return outcome;
        }
    } else if outcome != Outcome::Over {
        return outcome;
    }
    over::<K, T>(core, s)
}

#[cold]
fn over<K: Kernel, T: Timer>(core: &Core, s: &Schedule) -> Outcome {
    s.resume.set(0);
    if !s.has_segments || s.in_segment.get() {
        segment::end_of_segment::<K, T>(core, s);
    }
    Outcome::Over
}

/// What a whole run took from and gave to queues becomes known.
#[inline]
fn finish<K: Kernel, T: Timer>(core: &Core, s: &Schedule) {
    let granularity = u64::from(s.granularity.get());
    for o in &s.outputs {
        write_dqs::<K, T>(core, o, granularity);
    }
    for i in &s.inputs {
        consume::<K, T>(core, i.end, granularity * i.need);
    }
    s.left.set(s.left.get() - granularity);
    keep_delays(core, s, granularity);
}

#[inline]
fn keep_delays(core: &Core, s: &Schedule, granularity: u64) {
    for d in &s.delays {
        core.memory.copy(
            d.offset + d.iteration_bytes * granularity as usize,
            &core.memory,
            d.offset,
            d.bytes,
        );
    }
}

#[cold]
fn retry_later<T: Timer>(core: &Core, schedule: usize) {
    T::enter(&core.log, Name::EnterPendingRetry as u8);
    core.schedules[schedule].state.set(State::PendingRetry);
    core.ready.retry.borrow_mut().push(schedule);
    core.ready.pending_retry.set(core.ready.pending_retry.get() + 1);
    T::leave(&core.log);
}

/// Due times are multiples of the period from the first run on; those that were missed are left out.
#[cold]
fn wait_for_period<T: Timer>(core: &Core, schedule: usize) {
    T::enter(&core.log, Name::EnterPendingPeriodic as u8);
    let s = &core.schedules[schedule];
    let (now_ns, period_ns) = (monotonic_ns(), s.period_ns.unwrap_or(1).max(1));
    let last_ns = if s.due_ns.get() == 0 { now_ns } else { s.due_ns.get() };
    let due_ns = last_ns + period_ns * (now_ns.saturating_sub(last_ns) / period_ns + 1);
    s.due_ns.set(due_ns);
    s.state.set(State::PendingPeriodic);
    let mut waiting = core.ready.periodic.borrow_mut();
    waiting.push(Reverse((due_ns, schedule)));
    core.ready.pending_periodic.set(waiting.len());
    T::leave(&core.log);
}

/// Nothing is ready: sleeps until something may be. False if nothing will be.
#[cold]
fn idle(core: &Core, pause_ns: &mut u64) -> bool {
    let due_ns = core.ready.periodic.borrow().peek().map(|Reverse((due_ns, _))| *due_ns);
    let has_retries = core.ready.pending_retry.get() > 0;
    let left_ns = match (due_ns, has_retries) {
        (None, false) => return false,
        (Some(due_ns), false) => due_ns.saturating_sub(monotonic_ns()),
        (due_ns, true) => {
            let left_ns = due_ns.map_or(u64::MAX, |d| d.saturating_sub(monotonic_ns()));
            *pause_ns = (*pause_ns * 2).min(LONGEST_PAUSE_NS);
            left_ns.min(*pause_ns)
        }
    };
    std::thread::sleep(Duration::from_nanos(left_ns));
    true
}

/// A turn of a graph that is one static schedule: there is nothing to choose.
#[inline(never)]
fn static_turn<T: Timer>(core: &Core) -> bool {
    let s = &core.schedules[0];
    if s.state.get() == State::Over {
        return false;
    }
    if s.resume.get() == 0 {
        s.granularity.set(u64::from(s.most.get()).min(s.left.get()) as u32);
    }
    let (at, outcome) = run_schedule::<T>(core, s);
    s.resume.set(at);
    let is_over = match outcome {
        Outcome::Done => {
            let granularity = u64::from(s.granularity.get());
            s.left.set(s.left.get() - granularity);
            keep_delays(core, s, granularity);
            s.left.get() == 0
        }
        Outcome::Over => true,
        _ => {
            std::thread::sleep(Duration::from_nanos(PAUSE_NS));
            false
        }
    };
    if is_over {
        s.state.set(State::Over);
        core.boxes[s.boxes.clone()].iter().for_each(|b| b.eos(core));
    }
    true
}

#[inline]
fn a_turn<K: Kernel, T: Timer>(core: &Core) -> bool {
    if core.is_static { static_turn::<T>(core) } else { turn::<K, T>(core) }
}

/// Which turns are timed.
#[derive(Debug, Clone, Copy)]
pub enum Sampling {
    Never,
    Always,
    /// One of so many at random.
    OneOf(u32),
}

/// Runs until nothing more can run, or `most` turns.
pub(crate) fn drive<K: Kernel>(core: &Core, sampling: Sampling, most: u64, seed: u64) -> Ended {
    for (i, s) in core.schedules.iter().enumerate() {
        if s.state.get() == State::QueueWait && K::Ready::can_run(core, s) {
            core.enter_ready::<K::Ready>(i);
        }
    }
    let mut random = seed | 1;
    let mut pause_ns = PAUSE_NS;
    core.operations.set(&OperationsOf::<K, Off>::ALL);
    if matches!(sampling, Sampling::Always) {
        core.operations.set(&OperationsOf::<K, On>::ALL);
        core.log.start();
    }
    let mut turns = 0;
    let ended = loop {
        if turns == most {
            break Ended::Paused;
        }
        let ran = match sampling {
            Sampling::Never => a_turn::<K, Off>(core),
            Sampling::Always => a_turn::<K, On>(core),
            Sampling::OneOf(n) => sampled_turn::<K>(core, n, &mut random),
        };
        if ran {
            turns += 1;
            pause_ns = PAUSE_NS;
        } else if !idle(core, &mut pause_ns) {
            break Ended::Over;
        }
    };
    if matches!(sampling, Sampling::Always) {
        core.log.stop();
    }
    ended
}

/// Which turns are timed follows no period that a graph may have: Marsaglia's xorshift.
fn sampled_turn<K: Kernel>(core: &Core, one_of: u32, random: &mut u64) -> bool {
    *random ^= *random << 13;
    *random ^= *random >> 7;
    *random ^= *random << 17;
    if !random.is_multiple_of(u64::from(one_of.max(1))) {
        return a_turn::<K, Off>(core);
    }
    core.operations.set(&OperationsOf::<K, On>::ALL);
    core.log.start();
    let ran = a_turn::<K, On>(core);
    core.log.stop();
    core.operations.set(&OperationsOf::<K, Off>::ALL);
    ran
}
