//! Who is ready: a heap, and a scan of all ports where a queue changed; or a bitmap, and counts of conditions that do not hold.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::kernel::{Id, Table};
use crate::program::ReadyWay;
use crate::schedule::{Schedule, State, Waiter};
use crate::scheduler::Core;
use crate::timer::Timer;

pub(crate) struct ReadySet {
    heap: RefCell<BinaryHeap<u32>>,
    /// A bit a schedule, the last schedule first.
    bits: Table<Cell<u64>>,
    last: usize,
    /// Periodic schedules by the time they are due.
    pub(crate) periodic: RefCell<BinaryHeap<Reverse<(u64, u32)>>>,
    pub(crate) retry: RefCell<Vec<Id<Schedule>>>,
    /// Schedules in the two, to be looked at without borrowing them.
    pub(crate) pending: Cell<usize>,
}

impl ReadySet {
    pub(crate) fn new(schedules: usize) -> Self {
        Self {
            heap: RefCell::new(BinaryHeap::with_capacity(schedules)),
            bits: (0..schedules.div_ceil(64)).map(|_| Cell::new(0)).collect(),
            last: schedules - 1,
            periodic: RefCell::new(BinaryHeap::with_capacity(schedules)),
            retry: RefCell::new(Vec::with_capacity(schedules)),
            pending: Cell::new(0),
        }
    }
}

/// The published kernel's way. The schedule added last goes first, here and with [`Bitmap`]: queues stay short.
pub(crate) struct Heap;

/// One look at 64 schedules.
pub(crate) struct Bitmap;

impl ReadyWay for Heap {
    const COUNTS: bool = false;
    fn insert(set: &ReadySet, schedule: Id<Schedule>) {
        set.heap.borrow_mut().push(schedule.number() as u32);
    }
    fn is_empty(set: &ReadySet) -> bool {
        set.heap.borrow().is_empty()
    }
    fn take(set: &ReadySet) -> Option<Id<Schedule>> {
        set.heap.borrow_mut().pop().map(|s| Id::new(s as usize))
    }
    fn now_holds<T: Timer>(core: &Core, _is_met: &Cell<bool>, waiter: Waiter) {
        let s = &core.schedules[waiter.schedule];
        if s.state.get() == State::QueueWait && Self::can_run(core, s) {
            core.enter_ready::<Self, T>(waiter.schedule);
        }
    }
    fn can_run(core: &Core, s: &Schedule) -> bool {
        s.tokens_from.iter().all(|end| core.ends[*end].has_enough())
            && s.room_in.iter().all(|queue| core.queues[*queue].has_room())
            && (s.any_of.is_empty() || s.any_of.iter().any(|end| core.ends[*end].has_enough()))
            && s.group.is_none_or(|group| !core.groups[group].is_awaited.get())
    }
}

impl ReadyWay for Bitmap {
    const COUNTS: bool = true;
    #[inline]
    fn insert(set: &ReadySet, schedule: Id<Schedule>) {
        let place = set.last - schedule.number();
        let word = &set.bits[Id::new(place / 64)];
        word.set(word.get() | 1 << (place % 64));
    }
    #[inline]
    fn is_empty(set: &ReadySet) -> bool {
        set.bits.iter().all(|word| word.get() == 0)
    }
    #[inline]
    fn take(set: &ReadySet) -> Option<Id<Schedule>> {
        let mut last = set.last;
        for word in &*set.bits {
            let bits = word.get();
            if bits > 0 {
                word.set(bits & (bits - 1));
                return Some(Id::new(last - bits.trailing_zeros() as usize));
            }
            last = last.wrapping_sub(64);
        }
        None
    }
    #[inline]
    fn now_holds<T: Timer>(core: &Core, is_met: &Cell<bool>, waiter: Waiter) {
        if is_met.replace(true) {
            return;
        }
        let s = &core.schedules[waiter.schedule];
        if waiter.is_any {
            let met = s.any_met.get();
            s.any_met.set(met + 1);
            if met > 0 {
                return;
            }
        }
        let missing = s.missing.get() - 1;
        s.missing.set(missing);
        if missing == 0 {
            core.enter_ready::<Self, T>(waiter.schedule);
        }
    }
    /// Counts anew: while a schedule runs only what became true is told.
    #[inline]
    fn can_run(core: &Core, s: &Schedule) -> bool {
        let mut missing = 0;
        for end in &s.tokens_from {
            let holds = core.ends[*end].has_enough();
            core.ends[*end].is_met.set(holds);
            missing += u32::from(!holds);
        }
        for queue in &s.room_in {
            let q = &core.queues[*queue];
            let holds = q.has_room();
            q.is_met.set(holds);
            missing += u32::from(!holds);
        }
        if !s.any_of.is_empty() || s.group.is_some() {
            missing += missing_more(core, s);
        }
        s.missing.set(missing);
        missing == 0
    }
}

/// Conditions of several members, and those of groups.
fn missing_more(core: &Core, s: &Schedule) -> u32 {
    let mut met = 0;
    for end in &s.any_of {
        let holds = core.ends[*end].has_enough();
        core.ends[*end].is_met.set(holds);
        met += u32::from(holds);
    }
    s.any_met.set(met);
    let awaits = s.group.is_some_and(|group| core.groups[group].is_awaited.get());
    u32::from(met == 0 && !s.any_of.is_empty()) + u32::from(awaits)
}
