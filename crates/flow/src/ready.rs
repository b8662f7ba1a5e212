//! Who is ready: a heap, and a scan of all ports where a queue changed; or a bitmap, and counts of conditions that do not hold.

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::program::ReadyWay;
use crate::schedule::{Schedule, State};
use crate::scheduler::Core;

/// What a schedule needs from one side: a port, or any of several.
pub(crate) struct Condition {
    pub(crate) schedule: usize,
    pub(crate) members: Box<[Member]>,
    /// Members that hold.
    pub(crate) met: Cell<u32>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Member {
    Read(usize),
    Write(usize),
    Group(usize),
}

impl Member {
    #[inline]
    fn holds(self, core: &Core) -> bool {
        match self {
            Self::Read(end) => {
                let e = &core.ends[end];
                e.has_enough(core.queues[e.queue].written.get())
            }
            Self::Write(queue) => core.queues[queue].has_room(),
            Self::Group(group) => !core.groups[group].is_awaited.get(),
        }
    }
}

/// Ready and pending schedules.
pub(crate) struct ReadySet {
    heap: RefCell<BinaryHeap<u32>>,
    /// A bit a schedule, and a bit a word that is not 0.
    bits: Box<[Cell<u64>]>,
    words: Cell<u64>,
    /// Periodic schedules by the time they are due.
    pub(crate) periodic: RefCell<BinaryHeap<Reverse<(u64, usize)>>>,
    pub(crate) retry: RefCell<Vec<usize>>,
    /// Lengths of the two, to be looked at without borrowing them.
    pub(crate) pending_periodic: Cell<usize>,
    pub(crate) pending_retry: Cell<usize>,
}

/// Schedules of a program at most: a bit each, in two levels.
pub(crate) const MOST_SCHEDULES: usize = 64 * 64;

impl ReadySet {
    pub(crate) fn new(schedules: usize) -> Self {
        Self {
            heap: RefCell::new(BinaryHeap::with_capacity(schedules)),
            bits: vec![Cell::new(0); schedules.div_ceil(64).max(1)].into(),
            words: Cell::new(0),
            periodic: RefCell::new(BinaryHeap::with_capacity(schedules)),
            retry: RefCell::new(Vec::with_capacity(schedules)),
            pending_periodic: Cell::new(0),
            pending_retry: Cell::new(0),
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
    fn insert(set: &ReadySet, schedule: usize) {
        set.heap.borrow_mut().push(schedule as u32);
    }
    fn take(set: &ReadySet) -> Option<usize> {
        set.heap.borrow_mut().pop().map(|s| s as usize)
    }
    fn now_holds(core: &Core, _is_met: &Cell<bool>, condition: usize) {
        let s = core.conditions[condition].schedule;
        if core.schedules[s].state.get() == State::QueueWait && Self::can_run(core, &core.schedules[s]) {
            core.enter_ready::<Self>(s);
        }
    }
    fn group_is_free(core: &Core, condition: usize) {
        Self::now_holds(core, &Cell::new(false), condition);
    }
    fn can_run(core: &Core, s: &Schedule) -> bool {
        let holds = |c: &Condition| c.members.iter().any(|m| m.holds(core));
        core.conditions[s.conditions.clone()].iter().all(holds)
    }
}

impl ReadyWay for Bitmap {
    #[inline]
    fn insert(set: &ReadySet, schedule: usize) {
        let word = &set.bits[schedule / 64];
        word.set(word.get() | 1 << (schedule % 64));
        set.words.set(set.words.get() | 1 << (schedule / 64));
    }
    #[inline]
    fn take(set: &ReadySet) -> Option<usize> {
        let word = set.words.get().checked_ilog2()? as usize;
        let bits = set.bits[word].get();
        let bit = bits.ilog2();
        let left = bits & !(1 << bit);
        set.bits[word].set(left);
        if left == 0 {
            set.words.set(set.words.get() & !(1 << word));
        }
        Some(word * 64 + bit as usize)
    }
    #[inline]
    fn now_holds(core: &Core, is_met: &Cell<bool>, condition: usize) {
        if is_met.replace(true) {
            return;
        }
        let c = &core.conditions[condition];
        let met = c.met.get();
        c.met.set(met + 1);
        if met > 0 {
            return;
        }
        let s = &core.schedules[c.schedule];
        s.missing.set(s.missing.get() - 1);
        if s.missing.get() == 0 && s.state.get() == State::QueueWait {
            core.enter_ready::<Self>(c.schedule);
        }
    }
    fn group_is_free(core: &Core, condition: usize) {
        Self::now_holds(core, &Cell::new(false), condition);
    }
    /// Counts anew: during a run only what became true is told.
    #[inline]
    fn can_run(core: &Core, s: &Schedule) -> bool {
        let mut missing = 0;
        for c in &core.conditions[s.conditions.clone()] {
            let mut met = 0;
            for m in &c.members {
                let holds = m.holds(core);
                match m {
                    Member::Read(end) => core.ends[*end].is_met.set(holds),
                    Member::Write(queue) => core.queues[*queue].is_met.set(holds),
                    Member::Group(_) => {}
                }
                met += u32::from(holds);
            }
            c.met.set(met);
            missing += u32::from(met == 0);
        }
        s.missing.set(missing);
        missing == 0
    }
}
