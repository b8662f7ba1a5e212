//! Queues as boxes see them. What was consumed and produced is told to the queue at the end of the apply, or when a segment begins or
//! ends: nobody else runs meanwhile, and within an apply a token costs a few instructions.

use std::marker::PhantomData;

use crate::graph::Binder;
use crate::kernel::{Firings, Id, Port, Token};
use crate::names::Name;
use crate::program::{Kernel, QueueWay};
use crate::queue::{
    Queue, ReadEnd, Window, consume, produce, produce_copy, read_amount, unsplit, write_amount,
};
use crate::scheduler::Core;
use crate::segment;
use crate::timer::Timer;

/// What boxes do with queues, compiled for a kernel and a timer: boxes themselves are compiled once.
pub(crate) struct Operations {
    pub(crate) read_amount: fn(&Core, Id<ReadEnd>) -> Window,
    pub(crate) write_amount: fn(&Core, Id<Queue>) -> Window,
    pub(crate) unsplit_read: fn(&Core, Id<ReadEnd>),
    pub(crate) unsplit_write: fn(&Core, Id<Queue>),
    pub(crate) produce: fn(&Core, Id<Queue>, u64),
    pub(crate) consume: fn(&Core, Id<ReadEnd>, u64),
    pub(crate) begin: fn(&Core, Id<Queue>) -> bool,
    pub(crate) end: fn(&Core, Id<Queue>),
    pub(crate) pass: fn(&Core, Id<ReadEnd>),
}

pub(crate) struct OperationsOf<K, T>(PhantomData<(K, T)>);

impl<K: Kernel, T: Timer> OperationsOf<K, T> {
    pub(crate) const ALL: Operations = Operations {
        read_amount: read_amount::<K, T>,
        write_amount: write_amount::<K, T>,
        unsplit_read: |core, end| unsplit::<T>(core, end, Name::ReadAmountCopy),
        unsplit_write: |core, queue| unsplit::<T>(core, core.queues[queue].readers[0], Name::WriteAmountCopy),
        produce: |core, queue, tokens| {
            if K::Queues::COPIES {
                produce_copy::<T>(core, queue, tokens);
            }
            produce::<K, T>(core, queue, tokens);
        },
        consume: |core, end, tokens| {
            consume::<K, T>(core, end, None, tokens);
        },
        begin: segment::begin::<K, T>,
        end: segment::end::<K, T>,
        pass: segment::pass::<K, T>,
    };
}

/// A dynamic input, as it is given to [`crate::Graph::add`].
pub struct ReadPort<T> {
    pub(crate) edge: usize,
    pub(crate) least: u32,
    pub(crate) end: Id<ReadEnd>,
    pub(crate) tokens: PhantomData<T>,
}

/// A dynamic output, as it is given to [`crate::Graph::add`].
pub struct WritePort<T> {
    pub(crate) edge: usize,
    pub(crate) least: u32,
    pub(crate) queue: Id<Queue>,
    pub(crate) tokens: PhantomData<T>,
}

impl<T: Token> Port for ReadPort<T> {
    type View<'a> = Reader<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.end = to.reader(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Reader<'a, T> {
        Reader::open(core, self.end)
    }
}

impl<T: Token> Port for WritePort<T> {
    type View<'a> = Writer<'a, T>;
    fn bind(&mut self, to: &mut Binder<'_>) {
        self.queue = to.writer(self.edge, self.least);
    }
    #[inline]
    unsafe fn view<'a>(&'a mut self, core: &'a Core, _firing: Firings) -> Writer<'a, T> {
        Writer::open(core, self.queue)
    }
}

/// Reads a queue during an apply.
pub struct Reader<'a, T: Token> {
    core: &'a Core,
    end: Id<ReadEnd>,
    pub(crate) window: Window,
    taken: usize,
    tokens: PhantomData<T>,
}

impl<'a, T: Token> Reader<'a, T> {
    #[inline]
    pub(crate) fn open(core: &'a Core, end: Id<ReadEnd>) -> Self {
        let window = (core.operations.get().read_amount)(core, end);
        Self { core, end, window, taken: 0, tokens: PhantomData }
    }

    /// Tokens (of this segment) that are there.
    pub fn available(&self) -> usize {
        self.window.tokens
    }

    /// From the next run on the schedule runs only when at least so many are there, or the segment ends.
    pub fn require(&mut self, n: usize) {
        let e = &self.core.ends[self.end];
        e.need.set(n as u64);
        e.look(self.core.queues[e.queue].written.get());
    }

    /// Whether so many tokens are there; they are in a row then.
    #[inline]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        if n > self.window.straight && n <= self.window.tokens {
            self.unsplit();
        }
        n <= self.window.tokens
    }

    #[cold]
    fn unsplit(&mut self) {
        self.tell();
        (self.core.operations.get().unsplit_read)(self.core, self.end);
        self.window = (self.core.operations.get().read_amount)(self.core, self.end);
    }

    /// Takes the first `n` away.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        assert!(n <= self.window.tokens, "more consumed than there is");
        self.taken += n;
        if n >= self.window.straight {
            return self.go_round();
        }
        self.window.go_on::<T>(n);
    }

    #[cold]
    fn go_round(&mut self) {
        self.tell();
        self.window = (self.core.operations.get().read_amount)(self.core, self.end);
    }

    /// Tells the queue what was taken.
    #[inline]
    fn tell(&mut self) {
        if self.taken > 0 {
            (self.core.operations.get().consume)(self.core, self.end, self.taken as u64);
            self.taken = 0;
        }
    }

    /// Whether a segment has begun whose end was not passed.
    pub fn in_segment(&self) -> bool {
        let e = &self.core.ends[self.end];
        self.core.queues[e.queue].begun.get() > e.passed.get()
    }

    /// Whether nothing is left of the segment.
    pub fn is_ended(&self) -> bool {
        self.core.ends[self.end].has_end() && self.window.tokens == 0
    }

    /// Goes on behind the end of the segment, which must be known.
    pub fn next_segment(&mut self) {
        assert!(self.core.ends[self.end].has_end(), "the segment has no end yet");
        self.tell();
        (self.core.operations.get().pass)(self.core, self.end);
        self.window = (self.core.operations.get().read_amount)(self.core, self.end);
    }
}

impl<T: Token> Drop for Reader<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.tell();
    }
}

/// Writes to a queue during an apply.
pub struct Writer<'a, T: Token> {
    core: &'a Core,
    queue: Id<Queue>,
    pub(crate) window: Window,
    made: usize,
    tokens: PhantomData<T>,
}

impl<'a, T: Token> Writer<'a, T> {
    #[inline]
    pub(crate) fn open(core: &'a Core, queue: Id<Queue>) -> Self {
        let window = (core.operations.get().write_amount)(core, queue);
        Self { core, queue, window, made: 0, tokens: PhantomData }
    }

    /// Tokens that there is room for.
    pub fn room(&self) -> usize {
        self.window.tokens
    }

    /// From the next run on the schedule runs only when there is room for so many.
    pub fn require(&mut self, n: usize) {
        self.core.queues[self.queue].need.set(n as u64);
    }

    /// Whether there is room for so many tokens; it is in a row then.
    #[inline]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        if n > self.window.straight && n <= self.window.tokens {
            self.unsplit();
        }
        n <= self.window.tokens
    }

    #[cold]
    fn unsplit(&mut self) {
        self.tell();
        (self.core.operations.get().unsplit_write)(self.core, self.queue);
        self.window = (self.core.operations.get().write_amount)(self.core, self.queue);
    }

    /// The first `n` of what was written are tokens now.
    #[inline]
    pub fn produce(&mut self, n: usize) {
        assert!(n <= self.window.tokens, "more produced than there is room for");
        self.made += n;
        if n >= self.window.straight {
            return self.go_round();
        }
        self.window.go_on::<T>(n);
    }

    #[cold]
    fn go_round(&mut self) {
        self.tell();
        self.window = (self.core.operations.get().write_amount)(self.core, self.queue);
    }

    /// Tells the queue what was made.
    #[inline]
    fn tell(&mut self) {
        if self.made > 0 {
            (self.core.operations.get().produce)(self.core, self.queue, self.made as u64);
            self.made = 0;
        }
    }

    /// Begins a segment; false while another branch of the group has one: then answer [`crate::Outcome::Wait`].
    #[must_use]
    pub fn segment_begin(&mut self) -> bool {
        self.tell();
        (self.core.operations.get().begin)(self.core, self.queue)
    }

    pub fn segment_end(&mut self) {
        self.tell();
        (self.core.operations.get().end)(self.core, self.queue);
    }
}

impl<T: Token> Drop for Writer<'_, T> {
    #[inline]
    fn drop(&mut self) {
        self.tell();
    }
}

impl Window {
    #[inline]
    fn go_on<T: Token>(&mut self, n: usize) {
        self.at = self.at.wrapping_add(n * size_of::<T>());
        self.tokens -= n;
        self.straight -= n;
    }
}
