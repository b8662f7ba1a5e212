//! Segments of queues, and groups of branches of which one at a time has a segment.
//!
//! The end of a queue that reads sees: no segment, open (tokens come), draining (its end is known), ended (nothing is left of it).

use std::cell::{Cell, RefCell, RefMut};
use std::rc::Rc;

use crate::kernel::Id;
use crate::names::Name;
use crate::program::{Kernel, ReadyWay};
use crate::queue::{NO_LIMIT, Queue, ReadEnd, consume};
use crate::schedule::{Schedule, Waiter};
use crate::scheduler::Core;
use crate::timer::Timer;

/// A group of branches, to lend a state to them.
pub struct Exclusive {
    pub(crate) owner: Rc<Cell<Option<usize>>>,
}

impl Exclusive {
    /// The state as a branch of this number gets it.
    pub fn lend<S>(&self, state: &Rc<RefCell<S>>, branch: usize) -> Lent<S> {
        Lent { state: Rc::clone(state), owner: Rc::clone(&self.owner), branch }
    }
}

/// A state outside of a branch, lent to it while it has the segment.
pub struct Lent<S> {
    state: Rc<RefCell<S>>,
    owner: Rc<Cell<Option<usize>>>,
    branch: usize,
}

impl<S> Lent<S> {
    pub fn borrow(&self) -> RefMut<'_, S> {
        debug_assert_eq!(self.owner.get(), Some(self.branch), "the state is lent to another branch");
        self.state.borrow_mut()
    }
}

pub(crate) struct Group {
    pub(crate) owner: Rc<Cell<Option<usize>>>,
    /// Segments begun whose end has not passed the merge.
    pub(crate) under_way: Cell<u64>,
    /// The distributor waits for the group.
    pub(crate) is_awaited: Cell<bool>,
    pub(crate) distributor: Id<Schedule>,
}

/// Begins a segment on a queue; false while another branch of its group has one.
pub(crate) fn begin<K: Kernel, T: Timer>(core: &Core, queue: Id<Queue>) -> bool {
    let q = &core.queues[queue];
    assert!(q.is_segmented && !q.is_open.get(), "{}: a segment begins in a segment", q.name);
    T::enter(&core.log, Name::SegmentBegin as u8);
    if let Some((group, branch)) = q.group {
        let g = &core.groups[group];
        if g.owner.get().is_some_and(|owner| owner != branch) {
            g.is_awaited.set(true);
            T::leave(&core.log);
            return false;
        }
        g.owner.set(Some(branch));
        g.under_way.set(g.under_way.get() + 1);
    }
    T::enter(&core.log, Name::NextSegment as u8);
    q.is_open.set(true);
    q.begun.set(q.begun.get() + 1);
    T::leave(&core.log);
    T::leave(&core.log);
    true
}

/// Ends the segment of a queue: those that read it learn where it ends.
pub(crate) fn end<K: Kernel, T: Timer>(core: &Core, queue: Id<Queue>) {
    let q = &core.queues[queue];
    assert!(q.is_open.get(), "{}: a segment ends outside of one", q.name);
    T::enter(&core.log, Name::SegmentEnd as u8);
    T::enter(&core.log, Name::EnterDraining as u8);
    q.is_open.set(false);
    let at = q.written.get();
    T::enter(&core.log, Name::UpdateOnProduce as u8);
    for end in q.readers.iter().copied() {
        let e = &core.ends[end];
        e.later_ends.borrow_mut().push_back(at);
        if !e.has_end() {
            e.limit.set(at);
        }
        e.look(at);
        if e.has_enough() {
            K::Ready::now_holds::<T>(core, &e.is_met, e.waiter);
        }
    }
    T::leave(&core.log);
    T::leave(&core.log);
    T::leave(&core.log);
}

/// Goes on behind the end of the segment; what is left of it is discarded and counted.
pub(crate) fn pass<K: Kernel, T: Timer>(core: &Core, end: Id<ReadEnd>) {
    let e = &core.ends[end];
    discard::<K, T>(core, end);
    T::enter(&core.log, Name::NextSegment as u8);
    let mut ends = e.later_ends.borrow_mut();
    ends.pop_front();
    e.limit.set(ends.front().copied().unwrap_or(NO_LIMIT));
    e.passed.set(e.passed.get() + 1);
    drop(ends);
    e.look(core.queues[e.queue].written.get());
    T::leave(&core.log);
    if let Some(group) = e.group {
        let g = &core.groups[group];
        g.under_way.set(g.under_way.get() - 1);
        if g.under_way.get() == 0 {
            g.owner.set(None);
            if g.is_awaited.replace(false) {
                K::Ready::now_holds::<T>(
                    core,
                    &Cell::new(false),
                    Waiter { schedule: g.distributor, is_any: false },
                );
            }
        }
    }
}

fn discard<K: Kernel, T: Timer>(core: &Core, end: Id<ReadEnd>) {
    let e = &core.ends[end];
    let left = e.readable();
    if left > 0 {
        T::enter(&core.log, Name::DiscardTokens as u8);
        consume::<K, T>(core, end, e.queue, e.place, left);
        e.discarded.set(e.discarded.get() + left);
        T::leave(&core.log);
    }
}

/// Sees to segments before a schedule runs; whether its boxes are to be fired.
pub(crate) fn prepare<K: Kernel, T: Timer>(core: &Core, s: &Schedule) -> bool {
    let inputs = || s.segmented.iter().map(|end| &core.ends[*end]);
    if !s.in_segment.get() {
        if !inputs().all(|e| core.queues[e.queue].begun.get() > e.passed.get()) {
            return false;
        }
        reset::<K, T>(core, s);
    }
    let ended = inputs().filter(|e| e.is_ended()).count();
    if ended == 0 {
        return true;
    }
    if ended == s.segmented.len() {
        end_of_segment::<K, T>(core, s);
    } else {
        // No iteration is left for the others: their rest goes until their ends are there.
        for end in &s.segmented {
            discard::<K, T>(core, *end);
        }
    }
    false
}

fn reset<K: Kernel, T: Timer>(core: &Core, s: &Schedule) {
    T::enter(&core.log, Name::ResetSegment as u8);
    for b in &core.boxes[s.boxes.clone()] {
        T::enter(&core.log, Name::ResetMethod as u8);
        b.node().reset();
        T::leave(&core.log);
    }
    for queue in &s.forwards {
        begin::<K, T>(core, *queue);
    }
    s.in_segment.set(true);
    T::leave(&core.log);
}

/// Calls the methods for the end, ends the segments of outputs, and goes on to the next.
pub(crate) fn end_of_segment<K: Kernel, T: Timer>(core: &Core, s: &Schedule) {
    T::enter(&core.log, Name::EndOfSegment as u8);
    for b in &core.boxes[s.boxes.clone()] {
        T::enter(&core.log, Name::EosMethod as u8);
        b.node().eos(core);
        T::leave(&core.log);
    }
    for b in &core.boxes[s.boxes.clone()] {
        T::enter(&core.log, Name::DestroyMethod as u8);
        b.node().destroy();
        T::leave(&core.log);
    }
    for queue in &s.forwards {
        T::enter(&core.log, Name::ForwardEos as u8);
        end::<K, T>(core, *queue);
        T::leave(&core.log);
    }
    for end in &s.segmented {
        pass::<K, T>(core, *end);
    }
    s.in_segment.set(false);
    T::leave(&core.log);
}
