//! Operations of two members on a symmetric heap: the leader, which reads the clock, and the follower.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::team::heap::{Barrier, Heap, Layout, Symmetric};
use crate::team::{Arena, JointOperation, Member};

const BLOCK_WORDS: usize = 32_768 / 8;
/// Lines that the owner writes before each batch, and words from one line to the next.
const LINES: usize = 256;
const LINE_WORDS: usize = 16;
/// Lines from one read to the next: coprime to their number, and no pattern that a prefetcher predicts.
const LINE_STEP: usize = 97;
/// Attempts without a pause instruction before a member relaxes.
const TRIES: u32 = 4_096;

/// Cells: the word, the arrivals and the sense of the barrier.
const CELLS: usize = 3;

const LEADER: usize = 0;
const FOLLOWER: usize = 1;

/// An operation of two members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Both members meet at a barrier that spins.
    Barrier,
    /// Each member in turn sets the word for which the other waits.
    HandOver,
    /// Both members compare and swap one word in turns.
    PingPong,
    /// The leader sets and clears a lock without contention.
    LockUnlock,
    /// The leader writes into the follower's part of the heap.
    Put {
        /// Size of the block.
        bytes: usize,
    },
    /// The leader reads from the follower's part of the heap.
    Get {
        /// Size of the block.
        bytes: usize,
    },
    /// The leader reads words that the follower has just written, each read depending on the one before.
    GetFresh,
}

impl Operation {
    /// The name in rows and parameters.
    pub fn name(self) -> String {
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

    /// Operations per turn: a round trip is two.
    pub fn per_turn(self) -> f64 {
        if matches!(self, Self::HandOver | Self::PingPong) { 2.0 } else { 1.0 }
    }

    /// Turns of the short batch if the operation fixes them: the long batch reads every line that the owner has written.
    pub fn fixed_turns(self) -> Option<u64> {
        (self == Self::GetFresh).then_some(LINES as u64 / 2)
    }

    /// Maps the memory of two members.
    pub fn memory() -> io::Result<Arena> {
        Arena::new(CELLS, layout().0.heap_bytes(2))
    }

    /// The operation in this memory; `None` if there is too little of it.
    pub fn on(self, memory: &Arena) -> Option<Box<dyn JointOperation + '_>> {
        let places = Places::on(memory)?;
        Some(Box::new(AtPlaces { operation: self, places, buffer: Mutex::default() }))
    }
}

#[derive(Clone, Copy)]
struct Places<'a> {
    heap: Heap<'a>,
    word: &'a AtomicU64,
    barrier: Barrier<'a>,
    lock: Symmetric,
    flag: Symmetric,
    block: Symmetric,
    lines: Symmetric,
}

impl<'a> Places<'a> {
    /// `None` if the heap is too small.
    fn on(arena: &'a Arena) -> Option<Self> {
        let (layout, [lock, flag, block, lines]) = layout();
        let barrier = Barrier::new(arena.cell(1), arena.cell(2));
        let heap = Heap::new(arena, layout, 2)?;
        Some(Self { heap, word: arena.cell(0), barrier, lock, flag, block, lines })
    }

    /// The leader's turns; false if the deadline came first.
    fn lead(&self, operation: Operation, turns: u64, buffer: &mut [u64], m: &Member<'_>) -> bool {
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

    /// Reads a word of each line. The position depends on the word before; the owner has written zeros.
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

    /// The follower writes the lines while the leader waits.
    fn freshen(&self, m: &Member<'_>) -> bool {
        if m.rank == LEADER {
            return m.wait(|| self.word.load(Ordering::Acquire) != 0);
        }
        let lines = self.heap.at(FOLLOWER, self.lines);
        lines.iter().step_by(LINE_WORDS).for_each(|word| word.store(0, Ordering::Relaxed));
        self.heap.quiet();
        self.word.store(1, Ordering::Release);
        true
    }

    fn follow(&self, operation: Operation, turns: u64, m: &Member<'_>) -> bool {
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

/// The symmetric data of all operations, in the order of [`Places`].
fn layout() -> (Layout, [Symmetric; 4]) {
    let mut layout = Layout::default();
    let taken = [1, 1, BLOCK_WORDS, LINES * LINE_WORDS].map(|words| layout.take(words));
    (layout, taken)
}

struct AtPlaces<'a> {
    operation: Operation,
    places: Places<'a>,
    /// The leader's own words.
    buffer: Mutex<Vec<u64>>,
}

impl JointOperation for AtPlaces<'_> {
    fn prepare(&self, m: &Member<'_>) -> bool {
        if m.rank == LEADER {
            let words = (1..=BLOCK_WORDS as u64).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            *self.buffer.lock().unwrap_or_else(PoisonError::into_inner) = words.collect();
        }
        true
    }

    fn reset(&self) {
        self.places.word.store(0, Ordering::Relaxed);
    }

    fn approach(&self, m: &Member<'_>) -> bool {
        self.operation != Operation::GetFresh || self.places.freshen(m)
    }

    #[inline(never)]
    fn batch(&self, m: &Member<'_>, turns: u64) -> bool {
        if m.rank == LEADER {
            let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
            self.places.lead(self.operation, turns, &mut buffer, m)
        } else {
            self.places.follow(self.operation, turns, m)
        }
    }
}
