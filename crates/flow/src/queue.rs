//! Dynamic queues: one end writes, each end that reads gets all tokens. Counts are of tokens and never wrap.
//!
//! With [`Queues::Copying`](crate::Queues) each reading end has a ring of its own, tokens are copied into and out of the memory of
//! schedules, and a ring is turned where tokens or room would split. With `Mirrored` all ends share one ring that is mapped twice,
//! no window ever splits, and ports point into it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::rc::Rc;

use crate::graph::Binder;
use crate::kernel::{Firings, Memory, Port, Token};
use crate::names::Name;
use crate::program::{Kernel, QueueWay, ReadyWay};
use crate::schedule::{StaticIn, StaticOut};
use crate::scheduler::Core;
use crate::segment;
use crate::timer::Timer;

/// No end of a segment is known.
pub(crate) const NO_LIMIT: u64 = u64::MAX;

/// A queue from the side of its writer.
pub(crate) struct Queue {
    pub(crate) name: String,
    /// Tokens.
    pub(crate) capacity: u64,
    pub(crate) token_bytes: usize,
    pub(crate) written: Cell<u64>,
    /// Of the next token, bytes from the start of the ring.
    pub(crate) write_at: Cell<usize>,
    /// Read by the slowest reader.
    pub(crate) least_read: Cell<u64>,
    /// Tokens of room that the writer's schedule waits for.
    pub(crate) need: Cell<u64>,
    pub(crate) is_met: Cell<bool>,
    pub(crate) condition: usize,
    /// Ends that read.
    pub(crate) readers: Box<[usize]>,
    pub(crate) is_segmented: bool,
    pub(crate) is_open: Cell<bool>,
    pub(crate) begun: Cell<u64>,
    /// Group of branches and the branch.
    pub(crate) group: Option<(usize, usize)>,
    /// Most tokens in it at once; kept where timers are on.
    pub(crate) high_water: Cell<u64>,
    /// Bytes copied into, out of and within it.
    pub(crate) copied: Cell<u64>,
}

/// An end that reads a queue.
pub(crate) struct ReadEnd {
    pub(crate) queue: usize,
    pub(crate) read: Cell<u64>,
    pub(crate) read_at: Cell<usize>,
    /// Of the next token in this end's own ring.
    pub(crate) write_at: Cell<usize>,
    pub(crate) memory: Rc<Memory>,
    pub(crate) need: Cell<u64>,
    pub(crate) is_met: Cell<bool>,
    pub(crate) condition: usize,
    /// Where the segment ends; [`NO_LIMIT`] while that is not known.
    pub(crate) limit: Cell<u64>,
    /// Ends of this and later segments.
    pub(crate) later_ends: RefCell<VecDeque<u64>>,
    /// Segments whose end was passed.
    pub(crate) passed: Cell<u64>,
    pub(crate) discarded: Cell<u64>,
    /// Where a merge reads a branch: the group.
    pub(crate) group: Option<usize>,
}

impl Queue {
    pub(crate) fn ring_bytes(&self) -> usize {
        self.capacity as usize * self.token_bytes
    }
    #[inline]
    pub(crate) fn room(&self) -> u64 {
        self.capacity - (self.written.get() - self.least_read.get())
    }
    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        self.room() >= self.need.get()
    }
    /// A position so many tokens further on the ring.
    #[inline]
    fn further(&self, at: usize, tokens: u64) -> usize {
        let at = at + tokens as usize * self.token_bytes;
        if at >= self.ring_bytes() { at - self.ring_bytes() } else { at }
    }
    fn count_copied(&self, bytes: usize) {
        self.copied.set(self.copied.get() + bytes as u64);
    }
}

impl ReadEnd {
    /// Tokens of this segment that are there.
    #[inline]
    pub(crate) fn readable(&self, written: u64) -> u64 {
        written.min(self.limit.get()) - self.read.get()
    }
    /// Whether the segment's end is known and less than what is needed is left before it.
    #[inline]
    pub(crate) fn is_ended(&self, written: u64) -> bool {
        self.limit.get() != NO_LIMIT && self.readable(written) < self.need.get()
    }
    /// Whether its schedule has something to do here.
    #[inline]
    pub(crate) fn has_enough(&self, written: u64) -> bool {
        self.readable(written) >= self.need.get() || self.limit.get() != NO_LIMIT
    }
}

/// Tokens were written to all rings: counts them, and tells who waits for them.
#[inline]
pub(crate) fn produce<K: Kernel, T: Timer>(core: &Core, queue: usize, tokens: u64) {
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
fn produce1<K: Kernel, T: Timer>(core: &Core, end: usize, written: u64, tokens: u64) {
    let e = &core.ends[end];
    T::enter(&core.log, Name::Produce1 as u8);
    if K::Queues::COPIES {
        e.write_at.set(core.queues[e.queue].further(e.write_at.get(), tokens));
    }
    T::enter(&core.log, Name::UpdateOnProduce as u8);
    if e.has_enough(written) {
        K::Ready::now_holds(core, &e.is_met, e.condition);
    }
    T::leave(&core.log);
    T::leave(&core.log);
}

/// Tokens were read: counts them, and tells the writer of the room.
#[inline]
pub(crate) fn consume<K: Kernel, T: Timer>(core: &Core, end: usize, tokens: u64) {
    let e = &core.ends[end];
    let q = &core.queues[e.queue];
    assert!(tokens <= e.readable(q.written.get()), "{}: more consumed than there is", q.name);
    T::enter(&core.log, Name::Consume as u8);
    let read = e.read.get() + tokens;
    e.read.set(read);
    e.read_at.set(q.further(e.read_at.get(), tokens));
    let least = match &*q.readers {
        [_] => read,
        all => all.iter().map(|end| core.ends[*end].read.get()).min().unwrap_or(read),
    };
    q.least_read.set(least);
    T::enter(&core.log, Name::UpdateOnConsume as u8);
    if q.has_room() {
        K::Ready::now_holds(core, &q.is_met, q.condition);
    }
    T::leave(&core.log);
    T::leave(&core.log);
}

/// Turns a ring of this end so that `bytes` from `at` on are in a row; whether it had to.
fn unsplit(q: &Queue, e: &ReadEnd, at: usize, bytes: usize) -> bool {
    let ring = q.ring_bytes();
    if at + bytes <= ring {
        return false;
    }
    // The oldest token goes to the start: then tokens and room are both in a row.
    let by = e.read_at.get();
    e.memory.rotate(ring, by);
    q.count_copied(ring);
    let turned = |at: usize| if at >= by { at - by } else { at + ring - by };
    e.write_at.set(turned(e.write_at.get()));
    e.read_at.set(0);
    true
}

/// Where `tokens` of this segment lie in a row, if they are there.
pub(crate) fn read_amount<K: Kernel, T: Timer>(core: &Core, end: usize, tokens: u64) -> Option<*mut u8> {
    let e = &core.ends[end];
    let q = &core.queues[e.queue];
    T::enter(&core.log, Name::ReadAmount as u8);
    T::enter(&core.log, Name::ReadyToRead as u8);
    let is_there = tokens <= e.readable(q.written.get());
    T::leave(&core.log);
    let bytes = tokens as usize * q.token_bytes;
    if is_there && K::Queues::COPIES && e.read_at.get() + bytes > q.ring_bytes() {
        T::enter(&core.log, Name::ReadAmountCopy as u8);
        unsplit(q, e, e.read_at.get(), bytes);
        T::leave(&core.log);
    }
    T::leave(&core.log);
    is_there.then(|| e.memory.at(e.read_at.get(), bytes))
}

/// Where room for `tokens` lies in a row, if there is; with copies in the ring of the first reader.
pub(crate) fn write_amount<K: Kernel, T: Timer>(core: &Core, queue: usize, tokens: u64) -> Option<*mut u8> {
    let q = &core.queues[queue];
    T::enter(&core.log, Name::WriteAmount as u8);
    T::enter(&core.log, Name::ReadyToWrite as u8);
    let is_there = tokens <= q.room();
    T::leave(&core.log);
    T::enter(&core.log, Name::WriteAmount1 as u8);
    let e = &core.ends[q.readers[0]];
    let bytes = tokens as usize * q.token_bytes;
    let at = if K::Queues::COPIES { e.write_at.get() } else { q.write_at.get() };
    let mut to = at;
    if is_there && K::Queues::COPIES && at + bytes > q.ring_bytes() {
        T::enter(&core.log, Name::WriteAmountCopy as u8);
        unsplit(q, e, at, bytes);
        to = e.write_at.get();
        T::leave(&core.log);
    }
    T::leave(&core.log);
    T::leave(&core.log);
    is_there.then(|| e.memory.at(to, bytes))
}

/// From the first reader's ring to the others, where the tokens were written by a box.
fn produce_copy<T: Timer>(core: &Core, queue: usize, tokens: u64) {
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
    let ring = q.ring_bytes();
    let mut left = bytes;
    while left > 0 {
        let n = left.min(ring - from_at).min(ring - to_at);
        from.copy(from_at, to, to_at, n);
        (from_at, to_at, left) = ((from_at + n) % ring, (to_at + n) % ring, left - n);
    }
    q.count_copied(bytes);
}

/// Gives a static input its tokens: copies them, or points to them.
#[inline]
pub(crate) fn read_dq<K: Kernel, T: Timer>(core: &Core, input: &StaticIn, granularity: u64) {
    let e = &core.ends[input.end];
    let q = &core.queues[e.queue];
    T::enter(&core.log, Name::ReadDq as u8);
    let (tokens, at) = (granularity * input.need, e.read_at.get());
    let bytes = tokens as usize * q.token_bytes;
    T::enter(&core.log, Name::ReadyToRead as u8);
    debug_assert!(tokens <= e.readable(q.written.get()));
    T::leave(&core.log);
    if K::Queues::COPIES {
        let first = bytes.min(q.ring_bytes() - at);
        let name = if first == bytes { Name::ReadDqCopy1 } else { Name::ReadDqCopy2 };
        T::enter(&core.log, name as u8);
        e.memory.copy(at, &core.memory, input.offset, first);
        if first < bytes {
            e.memory.copy(0, &core.memory, input.offset + first, bytes - first);
        }
        q.count_copied(bytes);
        T::leave(&core.log);
    } else {
        core.places[input.place].set(e.memory.at(at, bytes));
    }
    T::leave(&core.log);
}

/// Gives a static output its room: with mirrored queues it points there.
#[inline]
pub(crate) fn place_output<K: Kernel>(core: &Core, output: &StaticOut, granularity: u64) {
    if !K::Queues::COPIES {
        let q = &core.queues[output.queue];
        let bytes = (granularity * output.need) as usize * q.token_bytes;
        core.places[output.place].set(core.ends[q.readers[0]].memory.at(q.write_at.get(), bytes));
    }
}

/// Produces what a static output was given.
#[inline]
pub(crate) fn write_dqs<K: Kernel, T: Timer>(core: &Core, output: &StaticOut, granularity: u64) {
    let q = &core.queues[output.queue];
    let tokens = granularity * output.need;
    T::enter(&core.log, Name::WriteDqs as u8);
    T::enter(&core.log, Name::ReadyToWrite as u8);
    debug_assert!(tokens <= q.room());
    T::leave(&core.log);
    let written = q.written.get() + tokens;
    q.written.set(written);
    q.write_at.set(q.further(q.write_at.get(), tokens));
    for end in q.readers.iter().copied() {
        T::enter(&core.log, Name::WriteDq as u8);
        if K::Queues::COPIES {
            let e = &core.ends[end];
            let (at, bytes) = (e.write_at.get(), tokens as usize * q.token_bytes);
            let first = bytes.min(q.ring_bytes() - at);
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
    if T::ON {
        q.high_water.set(q.high_water.get().max(written - q.least_read.get()));
    }
    T::leave(&core.log);
}

/// What boxes do with queues, compiled for a kernel and a timer: boxes themselves are compiled once.
pub(crate) struct Operations {
    read_amount: fn(&Core, usize, u64) -> Option<*mut u8>,
    write_amount: fn(&Core, usize, u64) -> Option<*mut u8>,
    produce: fn(&Core, usize, u64),
    consume: fn(&Core, usize, u64),
    begin: fn(&Core, usize) -> bool,
    end: fn(&Core, usize),
    pass: fn(&Core, usize),
}

pub(crate) struct OperationsOf<K, T>(PhantomData<(K, T)>);

impl<K: Kernel, T: Timer> OperationsOf<K, T> {
    pub(crate) const ALL: Operations = Operations {
        read_amount: read_amount::<K, T>,
        write_amount: write_amount::<K, T>,
        produce: |core, queue, tokens| {
            if K::Queues::COPIES {
                produce_copy::<T>(core, queue, tokens);
            }
            produce::<K, T>(core, queue, tokens);
        },
        consume: consume::<K, T>,
        begin: segment::begin::<K, T>,
        end: segment::end::<K, T>,
        pass: segment::pass::<K, T>,
    };
}

/// A dynamic input, as it is given to [`crate::Graph::add`].
#[derive(Debug)]
pub struct ReadPort<T> {
    pub(crate) edge: usize,
    pub(crate) least: u32,
    pub(crate) end: usize,
    pub(crate) tokens: PhantomData<T>,
}

/// A dynamic output, as it is given to [`crate::Graph::add`].
#[derive(Debug)]
pub struct WritePort<T> {
    pub(crate) edge: usize,
    pub(crate) least: u32,
    pub(crate) queue: usize,
    pub(crate) tokens: PhantomData<T>,
}

impl<T: Token> Port for ReadPort<T> {
    type View<'a> = Reader<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.end = to.reader(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Reader<'a, T> {
        Reader { core, end: self.end, tokens: PhantomData }
    }
}

impl<T: Token> Port for WritePort<T> {
    type View<'a> = Writer<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.queue = to.writer(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Writer<'a, T> {
        Writer { core, queue: self.queue, tokens: PhantomData }
    }
}

/// Reads a queue during an apply.
pub struct Reader<'a, T> {
    core: &'a Core,
    end: usize,
    tokens: PhantomData<T>,
}

impl<T: Token> Reader<'_, T> {
    /// Tokens (of this segment) that are there.
    pub fn available(&self) -> usize {
        let e = &self.core.ends[self.end];
        e.readable(self.core.queues[e.queue].written.get()) as usize
    }
    #[inline]
    pub(crate) fn window(&mut self, n: usize) -> Option<*mut u8> {
        (self.core.operations.get().read_amount)(self.core, self.end, n as u64)
    }
    /// From now on the schedule runs only when at least so many are there, or the segment ends.
    pub fn require(&mut self, n: usize) {
        self.core.ends[self.end].need.set(n as u64);
    }
    /// Takes the first `n` away.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        (self.core.operations.get().consume)(self.core, self.end, n as u64);
    }
    /// Whether a segment has begun whose end was not passed.
    pub fn in_segment(&self) -> bool {
        let e = &self.core.ends[self.end];
        self.core.queues[e.queue].begun.get() > e.passed.get()
    }
    /// Whether nothing is left of the segment.
    pub fn is_ended(&self) -> bool {
        self.core.ends[self.end].limit.get() == self.core.ends[self.end].read.get()
    }
    /// Goes on behind the end of the segment, which must be known.
    pub fn next_segment(&mut self) {
        assert_ne!(self.core.ends[self.end].limit.get(), NO_LIMIT, "the segment has no end yet");
        (self.core.operations.get().pass)(self.core, self.end);
    }
}

/// Writes to a queue during an apply.
pub struct Writer<'a, T> {
    core: &'a Core,
    queue: usize,
    tokens: PhantomData<T>,
}

impl<T: Token> Writer<'_, T> {
    /// Tokens that there is room for.
    pub fn room(&self) -> usize {
        self.core.queues[self.queue].room() as usize
    }
    #[inline]
    pub(crate) fn window(&mut self, n: usize) -> Option<*mut u8> {
        (self.core.operations.get().write_amount)(self.core, self.queue, n as u64)
    }
    /// From now on the schedule runs only when there is room for so many.
    pub fn require(&mut self, n: usize) {
        self.core.queues[self.queue].need.set(n as u64);
    }
    /// The first `n` of what was written are tokens now.
    #[inline]
    pub fn produce(&mut self, n: usize) {
        (self.core.operations.get().produce)(self.core, self.queue, n as u64);
    }
    /// Begins a segment; false while another branch of the group has one: then answer [`crate::Outcome::Wait`].
    #[must_use]
    pub fn segment_begin(&mut self) -> bool {
        (self.core.operations.get().begin)(self.core, self.queue)
    }
    pub fn segment_end(&mut self) {
        (self.core.operations.get().end)(self.core, self.queue);
    }
}
