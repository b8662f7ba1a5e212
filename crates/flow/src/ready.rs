//! Who is ready: a heap, and a scan of all ports where a queue changed; or a bitmap, and counts of conditions that do not hold.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;

use crate::kernel::{Id, Table};
use crate::program::ReadyWay;
use crate::schedule::{Schedule, State, Waiter};
use crate::scheduler::Core;
use crate::timer::Timer;

pub(crate) struct ReadySet {
    heap: RefCell<BinaryHeap<u32>>,
    /// A bit a schedule, the last schedule first, and a bit a word that is not 0.
    bits: Table<Cell<u64>>,
    last: usize,
    words: Cell<u64>,
    /// Periodic schedules by the time they are due.
    pub(crate) periodic: RefCell<BinaryHeap<Reverse<(u64, u32)>>>,
    pub(crate) retry: RefCell<Vec<Id<Schedule>>>,
    /// Schedules in the two, to be looked at without borrowing them.
    pub(crate) pending: Cell<usize>,
}

/// Schedules of a program at most: a bit each, in two levels.
pub(crate) const MOST_SCHEDULES: usize = 64 * 64;

impl ReadySet {
    pub(crate) fn new(schedules: usize) -> Self {
        Self {
            heap: RefCell::new(BinaryHeap::with_capacity(schedules)),
            bits: (0..64).map(|_| Cell::new(0)).collect(),
            last: schedules.saturating_sub(1),
            words: Cell::new(0),
            periodic: RefCell::new(BinaryHeap::with_capacity(schedules)),
            retry: RefCell::new(Vec::with_capacity(schedules)),
            pending: Cell::new(0),
        }
    }
}

/// The published kernel's way. The schedule added last goes first, here and with [`Bitmap`]: queues stay short.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Heap;

/// Constant time for everything.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bitmap;

impl ReadyWay for Heap {
    const COUNTS: bool = false;
    fn insert(set: &ReadySet, _s: &Schedule, schedule: Id<Schedule>) {
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
    fn insert(set: &ReadySet, s: &Schedule, _schedule: Id<Schedule>) {
        let word = &set.bits[s.ready_word];
        word.set(word.get() | s.ready_bit);
        set.words.set(set.words.get() | s.ready_word_bit);
    }
    #[inline]
    fn is_empty(set: &ReadySet) -> bool {
        set.words.get() == 0
    }
    #[inline]
    fn take(set: &ReadySet) -> Option<Id<Schedule>> {
        let words = NonZeroU64::new(set.words.get())?;
        let number = words.trailing_zeros();
        let word = &set.bits[Id::new(number as usize)];
        let bits = NonZeroU64::new(word.get())?;
        let left = bits.get() & (bits.get() - 1);
        word.set(left);
        if left == 0 {
            set.words.set(words.get() & (words.get() - 1));
        }
        Some(Id::new(set.last - (number * 64 + bits.trailing_zeros()) as usize))
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
        if missing == 0 && s.state.get() == State::QueueWait {
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
