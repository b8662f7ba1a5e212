//! The dynamic scheduler: takes a ready schedule, fits its granularity to what its queues hold, runs it, and sees what it waits for.

use std::cell::Cell;
use std::cmp::Reverse;
use std::time::Duration;

use machmeter_stats::random::Random;
use machmeter_sys::mirror::Memory;
use machmeter_sys::thread::monotonic_ns;

use crate::Outcome;
use crate::kernel::{Erased, Id, Place, Table, Watched, run_schedule};
use crate::names::Name;
use crate::program::{Ended, Kernel, ReadyWay};
use crate::queue::{Queue, ReadEnd, consume, read_dq, write_dqs};
use crate::ready::ReadySet;
use crate::schedule::{Schedule, State};
use crate::segment::{self, Group};
use crate::timer::{Log, Off, On, Timer};
use crate::views::{Operations, OperationsOf};

/// First pause when all that is left waits to be tried again; doubled up to the longest.
const PAUSE_NS: u64 = 2_000;
const LONGEST_PAUSE_NS: u64 = 1_000_000;

/// Everything of a program that runs.
pub struct Core {
    pub(crate) schedules: Table<Schedule>,
    pub(crate) queues: Table<Queue>,
    pub(crate) ends: Table<ReadEnd>,
    pub(crate) groups: Table<Group>,
    pub(crate) boxes: Box<[Erased]>,
    pub(crate) watched: Vec<std::rc::Rc<Watched>>,
    pub(crate) places: Table<Place>,
    /// Static edges, and copies of what is in queues.
    pub(crate) memory: Memory,
    pub(crate) ready: ReadySet,
    pub(crate) operations: Cell<&'static Operations>,
    pub(crate) log: Log,
    /// One schedule, no queues.
    pub(crate) is_static: bool,
}

impl Core {
    #[inline]
    pub(crate) fn enter_ready<R: ReadyWay, T: Timer>(&self, schedule: Id<Schedule>) {
        T::enter(&self.log, Name::EnterReady as u8);
        if !R::COUNTS {
            self.schedules[schedule].state.set(State::Ready);
        }
        R::insert(&self.ready, schedule);
        T::leave(&self.log);
    }
}

#[inline(always)]
fn next_schedule<K: Kernel, T: Timer>(core: &Core) -> Option<Id<Schedule>> {
    T::enter(&core.log, Name::NextSchedule as u8);
    if T::ON || core.ready.pending.get() > 0 {
        T::enter(&core.log, Name::ExitPending as u8);
        leave_periodic::<K, T>(core);
        T::leave(&core.log);
        T::enter(&core.log, Name::ExitPending as u8);
        leave_retry::<K, T>(core);
        T::leave(&core.log);
    }
    if T::ON && K::Ready::is_empty(&core.ready) {
        T::leave(&core.log);
        return None;
    }
    T::enter(&core.log, Name::ExitReady as u8);
    let next = K::Ready::take(&core.ready);
    T::leave(&core.log);
    T::leave(&core.log);
    next
}

#[inline(never)]
fn leave_periodic<K: Kernel, T: Timer>(core: &Core) {
    let mut waiting = core.ready.periodic.borrow_mut();
    if waiting.is_empty() {
        return;
    }
    let now_ns = monotonic_ns();
    while let Some(Reverse((due_ns, schedule))) = waiting.peek().copied() {
        if due_ns > now_ns {
            break;
        }
        waiting.pop();
        core.ready.pending.set(core.ready.pending.get() - 1);
        become_ready_or_wait::<K, T>(core, Id::new(schedule as usize));
    }
}

#[inline(never)]
fn leave_retry<K: Kernel, T: Timer>(core: &Core) {
    for schedule in core.ready.retry.borrow_mut().drain(..) {
        core.ready.pending.set(core.ready.pending.get() - 1);
        become_ready_or_wait::<K, T>(core, schedule);
    }
}

#[inline]
fn become_ready_or_wait<K: Kernel, T: Timer>(core: &Core, schedule: Id<Schedule>) {
    let s = &core.schedules[schedule];
    s.state.set(State::QueueWait);
    if K::Ready::can_run(core, s) {
        core.enter_ready::<K::Ready, T>(schedule);
    }
}

/// As many iterations as all queues allow, up to `most`.
#[inline]
fn set_granularity<K: Kernel, T: Timer>(core: &Core, s: &Schedule, most: u64) -> u64 {
    T::enter(&core.log, Name::SetGranularity as u8);
    let mut granularity = most;
    // Each condition holds, so that one iteration is there.
    if most > 1 {
        let mut fit = |tokens: u64, need: u64| {
            if tokens < need * granularity {
                granularity = tokens / need;
            }
        };
        s.inputs.iter().for_each(|i| fit(core.ends[i.end].readable(), i.need));
        s.outputs.iter().for_each(|o| fit(core.queues[o.queue].room(), o.need));
    }
    T::leave(&core.log);
    granularity
}

/// Runs the next ready schedule; false if there is none.
#[inline(always)]
pub(crate) fn turn<K: Kernel, T: Timer>(core: &Core) -> bool {
    let Some(schedule) = next_schedule::<K, T>(core) else { return false };
    let s = &core.schedules[schedule];
    if !s.is_plain.get() {
        other_turn::<K, T>(core, schedule);
        return true;
    }
    T::enter(&core.log, Name::EnterRunning as u8);
    T::leave(&core.log);
    let granularity = set_granularity::<K, T>(core, s, u64::from(s.most));
    for i in &s.inputs {
        read_dq::<K, T>(core, i, granularity);
    }
    let (at, outcome) = run_schedule::<T>(core, s, false, 0, granularity as u32);
    if outcome != Outcome::Done {
        left_early::<K, T>(core, schedule, at, granularity, outcome);
        return true;
    }
    let missing = finish::<K, T>(core, s, granularity);
    T::enter(&core.log, Name::ExitRunning as u8);
    if K::Ready::COUNTS {
        s.missing.set(missing);
        if missing == 0 {
            core.enter_ready::<K::Ready, T>(schedule);
        }
    } else {
        become_ready_or_wait::<K, T>(core, schedule);
    }
    T::leave(&core.log);
    true
}

/// A turn of a schedule with segments, delays, a period, an end, dynamic ports, or one that was left in the middle.
#[inline(never)]
fn other_turn<K: Kernel, T: Timer>(core: &Core, schedule: Id<Schedule>) {
    let s = &core.schedules[schedule];
    T::enter(&core.log, Name::EnterRunning as u8);
    s.state.set(State::Running);
    // What becomes true while it runs is seen to at its end.
    s.missing.set(NEVER);
    let is_left = s.resume.get() > 0;
    let goes = is_left || !s.has_segments || segment::prepare::<K, T>(core, s);
    T::leave(&core.log);
    let (mut at, mut outcome) = (0, Outcome::Done);
    if goes {
        if !is_left {
            let most = u64::from(s.most).min(s.left.get());
            s.granularity.set(set_granularity::<K, T>(core, s, most) as u32);
            for i in &s.inputs {
                read_dq::<K, T>(core, i, u64::from(s.granularity.get()));
            }
        }
        (at, outcome) = run_schedule::<T>(core, s, s.is_cyclic, s.resume.get(), s.granularity.get());
        s.resume.set(at);
        if outcome == Outcome::Done {
            let granularity = u64::from(s.granularity.get());
            finish::<K, T>(core, s, granularity);
            keep_delays(core, s, granularity);
            s.left.set(s.left.get() - granularity);
            s.is_plain.set(s.is_always_plain);
        }
    }
    left_early::<K, T>(core, schedule, at, u64::from(s.granularity.get()), outcome);
}

/// More conditions than can be told to hold: the schedule never runs again, nor while it is pending.
const NEVER: u32 = u32::MAX;

/// Where a schedule goes that is not done, or of which more is to be seen to than queues.
#[inline(never)]
fn left_early<K: Kernel, T: Timer>(
    core: &Core,
    schedule: Id<Schedule>,
    at: usize,
    granularity: u64,
    mut outcome: Outcome,
) {
    let s = &core.schedules[schedule];
    s.granularity.set(granularity as u32);
    s.resume.set(at);
    if at > 0 {
        s.is_plain.set(false);
    }
    if outcome == Outcome::Over || s.left.get() == 0 {
        outcome = Outcome::Over;
        s.resume.set(0);
        if !s.has_segments || s.in_segment.get() {
            segment::end_of_segment::<K, T>(core, s);
        }
    }
    T::enter(&core.log, Name::ExitRunning as u8);
    match outcome {
        Outcome::Over => {
            s.state.set(State::Over);
            s.missing.set(NEVER);
        }
        Outcome::Retry => retry_later::<T>(core, schedule),
        Outcome::Done if s.period_ns.is_some() => wait_for_period::<T>(core, schedule),
        _ => become_ready_or_wait::<K, T>(core, schedule),
    }
    T::leave(&core.log);
}

/// What a whole run took from and gave to queues becomes known. Static ports that lack what the next run needs.
#[inline(always)]
fn finish<K: Kernel, T: Timer>(core: &Core, s: &Schedule, granularity: u64) -> u32 {
    let mut missing = 0;
    for o in &s.outputs {
        missing += u32::from(!write_dqs::<K, T>(core, o, granularity));
    }
    for i in &s.inputs {
        missing += u32::from(!consume::<K, T>(core, i.end, i.queue, Some(i.place), granularity * i.need));
    }
    missing
}

#[inline]
fn keep_delays(core: &Core, s: &Schedule, granularity: u64) {
    for d in &s.delays {
        let from = d.offset + d.iteration_bytes * granularity as usize;
        core.memory.copy(from, &core.memory, d.offset, d.bytes);
    }
}

#[cold]
fn retry_later<T: Timer>(core: &Core, schedule: Id<Schedule>) {
    T::enter(&core.log, Name::EnterPendingRetry as u8);
    let s = &core.schedules[schedule];
    s.state.set(State::PendingRetry);
    s.missing.set(NEVER);
    core.ready.retry.borrow_mut().push(schedule);
    core.ready.pending.set(core.ready.pending.get() + 1);
    T::leave(&core.log);
}

/// Due times are multiples of the period from the first run on; those that were missed are left out.
#[cold]
fn wait_for_period<T: Timer>(core: &Core, schedule: Id<Schedule>) {
    T::enter(&core.log, Name::EnterPendingPeriodic as u8);
    let s = &core.schedules[schedule];
    let (now_ns, period_ns) = (monotonic_ns(), s.period_ns.unwrap_or(1).max(1));
    let last_ns = if s.due_ns.get() == 0 { now_ns } else { s.due_ns.get() };
    let due_ns = last_ns + period_ns * (now_ns.saturating_sub(last_ns) / period_ns + 1);
    s.due_ns.set(due_ns);
    s.state.set(State::PendingPeriodic);
    s.missing.set(NEVER);
    let mut waiting = core.ready.periodic.borrow_mut();
    waiting.push(Reverse((due_ns, schedule.number() as u32)));
    core.ready.pending.set(core.ready.pending.get() + 1);
    T::leave(&core.log);
}

/// Nothing is ready: sleeps until something may be. False if nothing will be.
#[cold]
fn idle(core: &Core, pause_ns: &mut u64) -> bool {
    let due_ns = core.ready.periodic.borrow().peek().map(|Reverse((due_ns, _))| *due_ns);
    let mut left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(monotonic_ns()));
    if !core.ready.retry.borrow().is_empty() {
        *pause_ns = (*pause_ns * 2).min(LONGEST_PAUSE_NS);
        left_ns = Some(left_ns.map_or(*pause_ns, |left_ns| left_ns.min(*pause_ns)));
    }
    left_ns.is_some_and(|left_ns| {
        std::thread::sleep(Duration::from_nanos(left_ns));
        true
    })
}

/// A turn of a graph that is one static schedule: there is nothing to choose.
#[inline(never)]
fn static_turn<T: Timer>(core: &Core) -> bool {
    let s = &core.schedules[Id::new(0)];
    if s.state.get() == State::Over {
        return false;
    }
    if s.resume.get() == 0 {
        s.granularity.set(u64::from(s.most).min(s.left.get()) as u32);
    }
    let (at, outcome) = run_schedule::<T>(core, s, s.is_cyclic, s.resume.get(), s.granularity.get());
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
        core.boxes[s.boxes.clone()].iter().for_each(|b| b.node().eos(core));
    }
    true
}

#[inline(never)]
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
            core.enter_ready::<K::Ready, Off>(Id::new(i));
        }
    }
    let mut random = Random::new(seed);
    let mut pause_ns = PAUSE_NS;
    core.operations.set(&OperationsOf::<K, Off>::ALL);
    if matches!(sampling, Sampling::Always) {
        core.operations.set(&OperationsOf::<K, On>::ALL);
        core.log.start();
    }
    let mut turns = 0;
    let ended = loop {
        if matches!(sampling, Sampling::Never) && !core.is_static {
            while turns < most && turn::<K, Off>(core) {
                turns += 1;
            }
        }
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

/// Which turns are timed follows no period that a graph may have.
fn sampled_turn<K: Kernel>(core: &Core, one_of: u32, random: &mut Random) -> bool {
    if random.below(one_of as usize) > 0 {
        return a_turn::<K, Off>(core);
    }
    core.operations.set(&OperationsOf::<K, On>::ALL);
    core.log.start();
    let ran = a_turn::<K, On>(core);
    core.log.stop();
    core.operations.set(&OperationsOf::<K, Off>::ALL);
    ran
}
