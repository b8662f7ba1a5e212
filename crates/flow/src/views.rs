//! Queues as boxes see them. What was consumed and produced is told at the end of the apply, or where a segment begins or ends.

use std::marker::PhantomData;

use crate::kernel::{Firings, Id, Place, Token};
use crate::names::Name;
use crate::program::Kernel;
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
            if K::COPIES {
                produce_copy::<T>(core, queue, tokens);
            }
            produce::<K, T>(core, queue, tokens);
        },
        consume: |core, end, tokens| {
            let queue = core.ends[end].queue;
            let (there, name) = (core.ends[end].readable(), &core.queues[queue].name);
            assert!(tokens <= there, "{name}: more consumed than there is");
            consume::<K, T>(core, end, queue, None, tokens);
        },
        begin: segment::begin::<K, T>,
        end: segment::end::<K, T>,
        pass: segment::pass::<K, T>,
    };
}

macro_rules! static_port {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        pub struct $name<T> {
            pub(crate) edge: usize,
            pub(crate) rate: u32,
            pub(crate) place: Id<Place>,
            pub(crate) tokens: PhantomData<T>,
        }

        impl<T> $name<T> {
            /// The first token of these firings, and how many they are.
            pub(crate) fn span(&self, core: &Core, firing: Firings) -> (*mut T, usize) {
                let first = core.places[self.place].get().cast::<T>();
                let rate = self.rate as usize;
                (first.wrapping_add(firing.first as usize * rate), firing.times as usize * rate)
            }
        }
    };
}
static_port!(
    /// Input of a fixed number of tokens a firing: a slice.
    In
);
static_port!(
    /// Output of a fixed number of tokens a firing: a slice to be filled.
    Out
);

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

/// Reads a queue during an apply.
pub struct Reader<'a, T: Token> {
    core: &'a Core,
    end: Id<ReadEnd>,
    pub(crate) window: Window,
    /// Tokens in a row when the window was opened.
    opened: usize,
    tokens: PhantomData<T>,
}

impl<'a, T: Token> Reader<'a, T> {
    #[inline]
    pub(crate) fn open(core: &'a Core, end: Id<ReadEnd>) -> Self {
        let window = (core.operations.get().read_amount)(core, end);
        Self { core, end, window, opened: window.in_row, tokens: PhantomData }
    }

    /// Tokens (of this segment) that are there.
    pub fn available(&self) -> usize {
        self.window.in_row + self.window.beyond
    }

    /// Whether so many tokens are there; they are in a row then.
    #[inline]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        n <= self.window.in_row || (n <= self.available() && self.unsplit())
    }

    #[cold]
    fn unsplit(&mut self) -> bool {
        self.tell();
        (self.core.operations.get().unsplit_read)(self.core, self.end);
        self.reopen();
        true
    }

    fn reopen(&mut self) {
        self.window = (self.core.operations.get().read_amount)(self.core, self.end);
        self.opened = self.window.in_row;
    }

    /// Takes the first `n` away.
    #[inline]
    pub fn consume(&mut self, n: usize) {
        if n > self.window.in_row {
            self.consume_beyond(n);
        } else {
            self.window.go_on::<T>(n);
        }
    }

    #[cold]
    fn consume_beyond(&mut self, n: usize) {
        self.tell();
        (self.core.operations.get().consume)(self.core, self.end, n as u64);
        self.reopen();
    }

    #[inline]
    fn tell(&mut self) {
        let taken = self.opened - self.window.in_row;
        if taken > 0 {
            (self.core.operations.get().consume)(self.core, self.end, taken as u64);
            self.opened = self.window.in_row;
        }
    }

    /// Whether a segment has begun whose end was not passed.
    pub fn in_segment(&self) -> bool {
        let e = &self.core.ends[self.end];
        self.core.queues[e.queue].begun.get() > e.passed.get()
    }

    /// Whether nothing is left of the segment.
    pub fn is_ended(&self) -> bool {
        self.core.ends[self.end].has_end() && self.available() == 0
    }

    /// Goes on behind the end of the segment, which must be known.
    pub fn next_segment(&mut self) {
        assert!(self.core.ends[self.end].has_end(), "the segment has no end yet");
        self.tell();
        (self.core.operations.get().pass)(self.core, self.end);
        self.reopen();
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
    /// Room in a row when the window was opened.
    opened: usize,
    tokens: PhantomData<T>,
}

impl<'a, T: Token> Writer<'a, T> {
    #[inline]
    pub(crate) fn open(core: &'a Core, queue: Id<Queue>) -> Self {
        let window = (core.operations.get().write_amount)(core, queue);
        Self { core, queue, window, opened: window.in_row, tokens: PhantomData }
    }

    pub fn room(&self) -> usize {
        self.window.in_row + self.window.beyond
    }

    /// Whether there is room for so many tokens; it is in a row then.
    #[inline]
    pub(crate) fn has(&mut self, n: usize) -> bool {
        n <= self.window.in_row || (n <= self.room() && self.unsplit())
    }

    #[cold]
    fn unsplit(&mut self) -> bool {
        self.tell();
        (self.core.operations.get().unsplit_write)(self.core, self.queue);
        self.reopen();
        true
    }

    fn reopen(&mut self) {
        self.window = (self.core.operations.get().write_amount)(self.core, self.queue);
        self.opened = self.window.in_row;
    }

    /// The first `n` of what was written are tokens now.
    #[inline]
    pub fn produce(&mut self, n: usize) {
        assert!(n <= self.window.in_row, "more produced than was written");
        self.window.go_on::<T>(n);
    }

    #[inline]
    fn tell(&mut self) {
        let made = self.opened - self.window.in_row;
        if made > 0 {
            (self.core.operations.get().produce)(self.core, self.queue, made as u64);
            self.opened = self.window.in_row;
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
        self.in_row -= n;
    }
}
