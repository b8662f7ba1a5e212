//! What two members do together: the leader, who times it, and the follower.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::cost::Kind;
use machmeter_engine::team::Member;
use machmeter_engine::team::heap::{Barrier, Heap, Layout, Symmetric};

/// Words of the largest block.
const BLOCK_WORDS: usize = 32_768 / 8;
/// Lines that the owner writes anew for each batch, and words from one to the next.
const LINES: usize = 256;
const LINE_WORDS: usize = 16;
/// Lines from one read to the next: prime to their number, and no pattern that the processor would foresee.
const LINE_STEP: usize = 97;
/// Attempts without a pause before a member relaxes.
const TRIES: u32 = 4_096;

/// Ranks of the two.
const LEADER: usize = 0;
const FOLLOWER: usize = 1;

/// An operation of two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Barrier,
    HandOver,
    PingPong,
    LockUnlock,
    Put { bytes: usize },
    Get { bytes: usize },
    GetFresh,
}

impl Operation {
    /// As in rows and metrics.
    pub(super) fn name(self) -> String {
        match self {
            Self::Barrier => "barrier".to_owned(),
            Self::HandOver => "hand_over".to_owned(),
            Self::PingPong => "ping_pong".to_owned(),
            Self::LockUnlock => "lock_unlock".to_owned(),
            Self::Put { bytes } => format!("put_{bytes}b"),
            Self::Get { bytes } => format!("get_{bytes}b"),
            Self::GetFresh => "get_8b_fresh".to_owned(),
        }
    }

    pub(super) fn kind(self) -> Kind {
        match self {
            Self::Put { .. } | Self::Get { .. } => Kind::Throughput,
            _ => Kind::Latency,
        }
    }

    /// Operations per turn: a turn there and back is two.
    pub(super) fn per_turn(self) -> f64 {
        if matches!(self, Self::HandOver | Self::PingPong) { 2.0 } else { 1.0 }
    }

    /// Turns of the short batch where they cannot be chosen: as many as are prepared.
    pub(super) fn fixed_turns(self) -> Option<u64> {
        (self == Self::GetFresh).then_some(LINES as u64 / 2)
    }
}

/// Where it happens.
#[derive(Clone, Copy)]
pub(super) struct Places<'a> {
    heap: Heap<'a>,
    word: &'a AtomicU64,
    barrier: Barrier<'a>,
    lock: Symmetric,
    flag: Symmetric,
    block: Symmetric,
    lines: Symmetric,
}

/// The symmetric data of all operations, in the order of [`Places`].
pub(super) fn layout() -> (Layout, [Symmetric; 4]) {
    let mut layout = Layout::default();
    let taken = [1, 1, BLOCK_WORDS, LINES * LINE_WORDS].map(|words| layout.take(words));
    (layout, taken)
}

impl<'a> Places<'a> {
    /// On this heap, with three cells that are 0 at first.
    pub(super) fn new(heap: Heap<'a>, taken: [Symmetric; 4], cells: [&'a AtomicU64; 3]) -> Self {
        let [lock, flag, block, lines] = taken;
        let [word, arrived, sense] = cells;
        Self { heap, word, barrier: Barrier::new(arrived, sense), lock, flag, block, lines }
    }

    /// The leader's turns; false when the deadline came first.
    pub(super) fn lead(&self, operation: Operation, turns: u64, buffer: &mut [u64], m: &Member<'_>) -> bool {
        match operation {
            Operation::Barrier => (0..turns).all(|_| self.barrier.wait(m)),
            Operation::PingPong => (0..turns).all(|_| self.swap(0, 1, m)),
            Operation::HandOver => {
                let Some(own) = self.heap.at(LEADER, self.flag).first() else { return false };
                let first = own.load(Ordering::Acquire);
                (first..first + turns).all(|value| {
                    self.heap.signal(FOLLOWER, self.flag, value + 1);
                    self.heap.wait(self.flag, value, m).is_some()
                })
            }
            Operation::LockUnlock => (0..turns).all(|_| {
                let set = self.heap.set_lock(self.lock, m);
                self.heap.clear_lock(self.lock);
                set
            }),
            Operation::Put { bytes } => {
                let Some(from) = buffer.get(..bytes / 8) else { return false };
                (0..turns).all(|_| {
                    let put = self.heap.put(FOLLOWER, self.block, black_box(from));
                    self.heap.quiet();
                    put == from.len()
                })
            }
            Operation::Get { bytes } => {
                let Some(to) = buffer.get_mut(..bytes / 8) else { return false };
                (0..turns).all(|_| self.heap.get(FOLLOWER, self.block, black_box(&mut *to)) == to.len())
            }
            Operation::GetFresh => self.read_lines(turns),
        }
    }

    /// Reads a word of each line, each where the one before says; the owner has written zeros.
    fn read_lines(&self, turns: u64) -> bool {
        let lines = self.heap.at(FOLLOWER, self.lines);
        let mut line = 0;
        for _ in 0..turns {
            let Some(word) = lines.get(line * LINE_WORDS) else { return false };
            line = (line + LINE_STEP + word.load(Ordering::Relaxed) as usize) % LINES;
        }
        black_box(line);
        true
    }

    /// What the follower does before a batch, not timed.
    pub(super) fn prepare(&self, operation: Operation) {
        if operation == Operation::GetFresh {
            let lines = self.heap.at(FOLLOWER, self.lines);
            lines.iter().step_by(LINE_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
            self.heap.quiet();
        }
    }

    /// The follower's turns.
    pub(super) fn follow(&self, operation: Operation, turns: u64, m: &Member<'_>) -> bool {
        match operation {
            Operation::Barrier => (0..turns).all(|_| self.barrier.wait(m)),
            Operation::PingPong => (0..turns).all(|_| self.swap(1, 0, m)),
            Operation::HandOver => {
                let Some(other) = self.heap.at(LEADER, self.flag).first() else { return false };
                let first = other.load(Ordering::Acquire);
                (first..first + turns).all(|value| {
                    let seen = self.heap.wait(self.flag, value, m);
                    seen.inspect(|value| self.heap.signal(LEADER, self.flag, *value)).is_some()
                })
            }
            _ => true,
        }
    }

    fn swap(&self, from: u64, to: u64, m: &Member<'_>) -> bool {
        let swapped = || self.word.compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        (0..TRIES).any(|_| swapped()) || m.wait(swapped)
    }
}

/// Words a member needs for blocks of its own.
pub(super) fn buffer() -> Vec<u64> {
    (1..=BLOCK_WORDS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect()
}
