//! Dynamic queues: one end writes, each end that reads gets all tokens. Counts are of tokens and never wrap.
//!
//! With [`Queues::Copying`](crate::Queues) each reading end has its own ring, turned where tokens or room would split. With
//! `Mirrored` all share one ring that is mapped twice, and ports point into it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use machmeter_sys::mirror::Memory;

use crate::kernel::{Id, Place};
use crate::names::Name;
use crate::program::{Kernel, ReadyWay};
use crate::schedule::{StaticIn, StaticOut, Waiter};
use crate::scheduler::Core;
use crate::segment::Group;
use crate::timer::Timer;

/// No end of a segment is known.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

pub(crate) struct Queue {
    pub(crate) name: String,
    /// Tokens.
    pub(crate) capacity: u64,
    pub(crate) token_bytes: usize,
    pub(crate) ring_bytes: usize,
    pub(crate) written: Cell<u64>,
    /// Of the next token, bytes from the start of the ring; of a static port on a mirror its place says so.
    pub(crate) write_at: Cell<usize>,
    /// Behind the ring.
    pub(crate) ring_end: *mut u8,
    /// Read by the slowest reader.
    pub(crate) least_read: Cell<u64>,
    /// Tokens of room that the writer's schedule waits for.
    pub(crate) need: u64,
    pub(crate) is_met: Cell<bool>,
    pub(crate) waiter: Waiter,
    pub(crate) readers: Box<[Id<ReadEnd>]>,
    pub(crate) is_segmented: bool,
    pub(crate) is_open: Cell<bool>,
    pub(crate) begun: Cell<u64>,
    /// Group of branches and the branch.
    pub(crate) group: Option<(Id<Group>, usize)>,
    /// Most tokens in it at once; kept where timers are on.
    pub(crate) high_water: Cell<u64>,
    /// Bytes copied into, out of and within it.
    pub(crate) copied: Cell<u64>,
}

pub(crate) struct ReadEnd {
    pub(crate) queue: Id<Queue>,
    /// Of a static port.
    pub(crate) place: Option<Id<Place>>,
    pub(crate) read: Cell<u64>,
    pub(crate) read_at: Cell<usize>,
    /// Of the next token in this end's own ring.
    pub(crate) write_at: Cell<usize>,
    pub(crate) memory: Rc<Memory>,
    /// Written, but not beyond the end of the segment.
    pub(crate) visible: Cell<u64>,
    /// Tokens that its schedule waits for, and the same or 0 where the end of the segment is known.
    pub(crate) need: u64,
    pub(crate) threshold: Cell<u64>,
    pub(crate) is_met: Cell<bool>,
    pub(crate) waiter: Waiter,
    /// Where the segment ends; [`NO_LIMIT`] while that is not known.
    pub(crate) limit: Cell<u64>,
    /// Ends of this and later segments.
    pub(crate) later_ends: RefCell<VecDeque<u64>>,
    /// Segments whose end was passed.
    pub(crate) passed: Cell<u64>,
    pub(crate) discarded: Cell<u64>,
    /// Where a merge reads a branch: the group.
    pub(crate) group: Option<Id<Group>>,
}

impl Queue {
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.capacity - (self.written.get() - self.least_read.get())
    }
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.room() >= self.need
    }
    /// A position so many tokens further on the ring.
    #[inline]
    fn further(&self, at: usize, tokens: u64) -> usize {
        let at = at + tokens as usize * self.token_bytes;
        if at >= self.ring_bytes { at - self.ring_bytes } else { at }
    }
    /// Moves a place on the mirror: it is where the next window begins.
    #[inline]
    fn move_place(&self, place: &Place, bytes: usize) {
        let to = place.get().wrapping_add(bytes);
        place.set(if to >= self.ring_end { to.wrapping_sub(self.ring_bytes) } else { to });
    }
    fn count_copied(&self, bytes: usize) {
        self.copied.set(self.copied.get() + bytes as u64);
    }
}

impl ReadEnd {
    /// Tokens of this segment that are there.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        self.visible.get() - self.read.get()
    }
    pub(crate) fn has_end(&self) -> bool {
        self.limit.get() != NO_LIMIT
    }
    /// Whether the segment's end is known and less than what is needed is left before it.
    pub(crate) fn is_ended(&self) -> bool {
        self.has_end() && self.readable() < self.need
    }
    /// Whether its schedule has something to do here.
    #[inline]
    pub(crate) fn has_enough(&self) -> bool {
        self.readable() >= self.threshold.get()
    }
    /// What is visible of `written` tokens, and from how many on there is something to do: with a known end always.
    pub(crate) fn look(&self, written: u64) {
        self.visible.set(written.min(self.limit.get()));
        self.threshold.set(if self.has_end() { 0 } else { self.need });
    }
}

/// Tokens were written to all rings: counts them, and tells who waits for them.
#[inline]
pub(crate) fn produce<K: Kernel, T: Timer>(core: &Core, queue: Id<Queue>, tokens: u64) {
    let q = &core.queues[queue];
    assert!(tokens <= q.room(), "{}: more produced than there is room for", q.name);
    assert!(!q.is_segmented || q.is_open.get(), "{}: produced outside of a segment", q.name);
    T::enter(&core.log, Name::Produce as u8);
    let written = q.written.get() + tokens;
    q.written.set(written);
    q.write_at.set(q.further(q.write_at.get(), tokens));
    for end in q.readers.iter().copied() {
        produce1::<K, T>(core, end, written, tokens);
    }
    if T::ON {
        q.high_water.set(q.high_water.get().max(written - q.least_read.get()));
    }
    T::leave(&core.log);
}

#[inline]
fn produce1<K: Kernel, T: Timer>(core: &Core, end: Id<ReadEnd>, written: u64, tokens: u64) {
    let e = &core.ends[end];
    T::enter(&core.log, Name::Produce1 as u8);
    if K::COPIES {
        e.write_at.set(core.queues[e.queue].further(e.write_at.get(), tokens));
    }
    T::enter(&core.log, Name::UpdateOnProduce as u8);
    e.visible.set(written.min(e.limit.get()));
    if e.has_enough() {
        K::Ready::now_holds::<T>(core, &e.is_met, e.waiter);
    }
    T::leave(&core.log);
    T::leave(&core.log);
}

/// Tokens were read: counts them, and tells the writer of the room. Whether there is enough for the next run.
#[inline(always)]
pub(crate) fn consume<K: Kernel, T: Timer>(
    core: &Core,
    end: Id<ReadEnd>,
    queue: Id<Queue>,
    place: Option<Id<Place>>,
    tokens: u64,
) -> bool {
    let e = &core.ends[end];
    let q = &core.queues[queue];
    debug_assert!(tokens <= e.readable());
    T::enter(&core.log, Name::Consume as u8);
    let read = e.read.get() + tokens;
    e.read.set(read);
    let holds = e.has_enough();
    if K::Ready::COUNTS {
        e.is_met.set(holds);
    }
    match place {
        Some(place) if !K::COPIES => {
            q.move_place(&core.places[place], tokens as usize * q.token_bytes);
        }
        _ => e.read_at.set(q.further(e.read_at.get(), tokens)),
    }
    let least = match &*q.readers {
        [_] => read,
        all => all.iter().map(|end| core.ends[*end].read.get()).min().unwrap_or(read),
    };
    q.least_read.set(least);
    T::enter(&core.log, Name::UpdateOnConsume as u8);
    if q.has_room() {
        K::Ready::now_holds::<T>(core, &q.is_met, q.waiter);
    }
    T::leave(&core.log);
    T::leave(&core.log);
    holds
}

/// What a box sees of a queue while it is applied.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    /// The next token.
    pub(crate) at: *mut u8,
    /// Tokens, or room for them, in a row; with a mirror all.
    pub(crate) in_row: usize,
    /// More of them, at the start of the ring.
    pub(crate) beyond: usize,
}

impl Window {
    /// Of `tokens` on the ring of an end.
    fn new<K: Kernel>(q: &Queue, e: &ReadEnd, at: usize, tokens: u64) -> Self {
        let tokens = tokens as usize;
        let in_row = if K::COPIES { tokens.min((q.ring_bytes - at) / q.token_bytes) } else { tokens };
        Self { at: e.memory.at(at, 0), in_row, beyond: tokens - in_row }
    }
}

pub(crate) fn read_amount<K: Kernel, T: Timer>(core: &Core, end: Id<ReadEnd>) -> Window {
    let e = &core.ends[end];
    T::enter(&core.log, Name::ReadAmount as u8);
    T::enter(&core.log, Name::ReadyToRead as u8);
    let tokens = e.readable();
    T::leave(&core.log);
    let window = Window::new::<K>(&core.queues[e.queue], e, e.read_at.get(), tokens);
    T::leave(&core.log);
    window
}

/// What there is room for; with copies in the ring of the first reader.
pub(crate) fn write_amount<K: Kernel, T: Timer>(core: &Core, queue: Id<Queue>) -> Window {
    let q = &core.queues[queue];
    let e = &core.ends[q.readers[0]];
    T::enter(&core.log, Name::WriteAmount as u8);
    T::enter(&core.log, Name::ReadyToWrite as u8);
    let tokens = q.room();
    T::leave(&core.log);
    T::enter(&core.log, Name::WriteAmount1 as u8);
    let at = if K::COPIES { e.write_at.get() } else { q.write_at.get() };
    let window = Window::new::<K>(q, e, at, tokens);
    T::leave(&core.log);
    T::leave(&core.log);
    window
}

/// Turns the ring of an end so that its tokens are in a row, and so is the room behind them.
pub(crate) fn unsplit<T: Timer>(core: &Core, end: Id<ReadEnd>, name: Name) {
    let e = &core.ends[end];
    let q = &core.queues[e.queue];
    T::enter(&core.log, name as u8);
    let by = e.read_at.get();
    e.memory.rotate(q.ring_bytes, by);
    q.count_copied(q.ring_bytes);
    let at = e.write_at.get();
    e.write_at.set(if at >= by { at - by } else { at + q.ring_bytes - by });
    e.read_at.set(0);
    T::leave(&core.log);
}

/// From the first reader's ring to the others, where the tokens were written by a box.
pub(crate) fn produce_copy<T: Timer>(core: &Core, queue: Id<Queue>, tokens: u64) {
    let q = &core.queues[queue];
    let first = &core.ends[q.readers[0]];
    for end in q.readers.iter().copied().skip(1) {
        let e = &core.ends[end];
        T::enter(&core.log, Name::ProduceCopy as u8);
        let bytes = tokens as usize * q.token_bytes;
        ring_copy(q, &first.memory, first.write_at.get(), &e.memory, e.write_at.get(), bytes);
        T::leave(&core.log);
    }
}

/// Copies between rings, split where either ends.
fn ring_copy(q: &Queue, from: &Memory, mut from_at: usize, to: &Memory, mut to_at: usize, bytes: usize) {
    let ring = q.ring_bytes;
    let mut left = bytes;
    while left > 0 {
        let n = left.min(ring - from_at).min(ring - to_at);
        from.copy(from_at, to, to_at, n);
        (from_at, to_at, left) = ((from_at + n) % ring, (to_at + n) % ring, left - n);
    }
    q.count_copied(bytes);
}

/// Gives a static input its tokens: copies them, or they are where its place points.
#[inline]
pub(crate) fn read_dq<K: Kernel, T: Timer>(core: &Core, input: &StaticIn, granularity: u64) {
    let e = &core.ends[input.end];
    let q = &core.queues[e.queue];
    T::enter(&core.log, Name::ReadDq as u8);
    T::enter(&core.log, Name::ReadyToRead as u8);
    let tokens = granularity * input.need;
    debug_assert!(tokens <= e.readable());
    T::leave(&core.log);
    if K::COPIES {
        let (at, bytes) = (e.read_at.get(), tokens as usize * q.token_bytes);
        let first = bytes.min(q.ring_bytes - at);
        let name = if first == bytes { Name::ReadDqCopy1 } else { Name::ReadDqCopy2 };
        T::enter(&core.log, name as u8);
        e.memory.copy(at, &core.memory, input.offset, first);
        if first < bytes {
            e.memory.copy(0, &core.memory, input.offset + first, bytes - first);
        }
        q.count_copied(bytes);
        T::leave(&core.log);
    }
    T::leave(&core.log);
}

/// Produces what a static output was given. Whether there is room for what the next run gives.
#[inline(always)]
pub(crate) fn write_dqs<K: Kernel, T: Timer>(core: &Core, output: &StaticOut, granularity: u64) -> bool {
    let q = &core.queues[output.queue];
    let tokens = granularity * output.need;
    T::enter(&core.log, Name::WriteDqs as u8);
    T::enter(&core.log, Name::ReadyToWrite as u8);
    debug_assert!(tokens <= q.room());
    T::leave(&core.log);
    let written = q.written.get() + tokens;
    q.written.set(written);
    if !K::COPIES {
        q.move_place(&core.places[output.place], tokens as usize * q.token_bytes);
    }
    // The next schedule is known by way of the first reader: loads that wait for one another.
    write_dq::<K, T>(core, q, output, output.reader, [written, tokens]);
    for end in q.readers.iter().skip(1) {
        write_dq::<K, T>(core, q, output, *end, [written, tokens]);
    }
    if T::ON {
        q.high_water.set(q.high_water.get().max(written - q.least_read.get()));
    }
    T::leave(&core.log);
    let holds = q.has_room();
    if K::Ready::COUNTS {
        q.is_met.set(holds);
    }
    holds
}

#[inline]
fn write_dq<K: Kernel, T: Timer>(
    core: &Core,
    q: &Queue,
    output: &StaticOut,
    end: Id<ReadEnd>,
    [written, tokens]: [u64; 2],
) {
    T::enter(&core.log, Name::WriteDq as u8);
    if K::COPIES {
        let e = &core.ends[end];
        let (at, bytes) = (e.write_at.get(), tokens as usize * q.token_bytes);
        let first = bytes.min(q.ring_bytes - at);
        let name = if first == bytes { Name::WriteDqCopy1 } else { Name::WriteDqCopy2 };
        T::enter(&core.log, name as u8);
        core.memory.copy(output.offset, &e.memory, at, first);
        if first < bytes {
            core.memory.copy(output.offset + first, &e.memory, 0, bytes - first);
        }
        q.count_copied(bytes);
        T::leave(&core.log);
    }
    produce1::<K, T>(core, end, written, tokens);
    T::leave(&core.log);
}
