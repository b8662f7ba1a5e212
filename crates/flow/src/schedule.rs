//! A static schedule as it runs: what is fired in which order, with which ports on queues.

use std::cell::Cell;
use std::ops::Range;

use crate::kernel::{Entry, Id, Place};
use crate::queue::{Queue, ReadEnd};
use crate::segment::Group;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum State {
    Ready,
    Running,
    #[default]
    QueueWait,
    PendingPeriodic,
    PendingRetry,
    /// A source that is over.
    Over,
}

/// Who waits for a side of a queue.
#[derive(Clone, Copy)]
pub(crate) struct Waiter {
    pub(crate) schedule: Id<Schedule>,
    /// One of several is enough.
    pub(crate) is_any: bool,
}

/// A static port on the reading end of a queue.
pub(crate) struct StaticIn {
    pub(crate) end: Id<ReadEnd>,
    pub(crate) queue: Id<Queue>,
    pub(crate) place: Id<Place>,
    /// Tokens an iteration.
    pub(crate) need: u64,
    /// Of the schedule's own memory, for copies.
    pub(crate) offset: usize,
}

/// A static port on the writing end of a queue.
pub(crate) struct StaticOut {
    pub(crate) queue: Id<Queue>,
    /// The first of those that read it.
    pub(crate) reader: Id<ReadEnd>,
    pub(crate) place: Id<Place>,
    pub(crate) need: u64,
    pub(crate) offset: usize,
}

/// Tokens of a static edge that stay for the next run.
pub(crate) struct Delay {
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// What an iteration moves, bytes.
    pub(crate) iteration_bytes: usize,
}

#[derive(Default)]
pub(crate) struct Schedule {
    pub(crate) state: Cell<State>,
    /// Conditions that do not hold: tokens and room on all of these, tokens on any of those, a group that is free.
    pub(crate) missing: Cell<u32>,
    pub(crate) tokens_from: Box<[Id<ReadEnd>]>,
    pub(crate) room_in: Box<[Id<Queue>]>,
    pub(crate) any_of: Box<[Id<ReadEnd>]>,
    pub(crate) any_met: Cell<u32>,
    pub(crate) group: Option<Id<Group>>,
    /// Iterations of a run at most.
    pub(crate) most: u32,
    pub(crate) granularity: Cell<u32>,
    /// Entry to go on at, where a box waited.
    pub(crate) resume: Cell<usize>,
    pub(crate) entries: Box<[Entry]>,
    pub(crate) is_cyclic: bool,
    pub(crate) inputs: Box<[StaticIn]>,
    pub(crate) outputs: Box<[StaticOut]>,
    pub(crate) delays: Box<[Delay]>,
    /// Its boxes among those of the program.
    pub(crate) boxes: Range<usize>,
    /// Static inputs whose tokens come in segments, and outputs that get the same segments.
    pub(crate) segmented: Box<[Id<ReadEnd>]>,
    pub(crate) forwards: Box<[Id<Queue>]>,
    pub(crate) has_segments: bool,
    /// Static ports on different queues, no cycle, segments, delays, period or end: nothing else is to be seen to.
    pub(crate) is_always_plain: bool,
    /// That, and it was not left in the middle.
    pub(crate) is_plain: Cell<bool>,
    pub(crate) in_segment: Cell<bool>,
    pub(crate) period_ns: Option<u64>,
    pub(crate) due_ns: Cell<u64>,
    /// Iterations until it is over; the greatest number if nothing ends it.
    pub(crate) left: Cell<u64>,
}
