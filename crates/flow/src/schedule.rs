//! A static schedule as it runs: what is fired in which order, with which ports on queues.

use std::cell::Cell;
use std::ops::Range;

use crate::kernel::Entry;

/// States of a schedule in the dynamic scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    Running,
    QueueWait,
    PendingPeriodic,
    PendingRetry,
    /// A source that is over.
    Over,
}

/// A static port on the reading end of a queue.
pub(crate) struct StaticIn {
    pub(crate) end: usize,
    pub(crate) place: usize,
    /// Tokens an iteration.
    pub(crate) need: u64,
    /// Of the schedule's own memory, for copies.
    pub(crate) offset: usize,
}

/// A static port on the writing end of a queue.
pub(crate) struct StaticOut {
    pub(crate) queue: usize,
    pub(crate) place: usize,
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

pub(crate) struct Schedule {
    pub(crate) name: String,
    pub(crate) state: Cell<State>,
    /// Conditions that do not hold.
    pub(crate) missing: Cell<u32>,
    pub(crate) conditions: Range<usize>,
    /// Iterations of a run at most.
    pub(crate) most: Cell<u32>,
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
    pub(crate) segmented: Box<[usize]>,
    pub(crate) forwards: Box<[usize]>,
    pub(crate) has_segments: bool,
    pub(crate) in_segment: Cell<bool>,
    pub(crate) period_ns: Option<u64>,
    pub(crate) due_ns: Cell<u64>,
    /// Iterations until it is over; the greatest number if nothing ends it.
    pub(crate) left: Cell<u64>,
}
