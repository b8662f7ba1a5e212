//! What two members do together: the leader, who times it, and the follower.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use machmeter_engine::cost::{Kind, Row};
use machmeter_engine::team::heap::{Barrier, Heap, Layout, Symmetric};
use machmeter_engine::team::sampler::{Batches, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{Arena, Member};

use super::measure::USER_THREADS;
use crate::sync::trips::TRIPS;

const BLOCK_WORDS: usize = 32_768 / 8;
/// Lines that the owner writes anew for each batch, and words from one to the next.
const LINES: usize = 256;
const LINE_WORDS: usize = 16;
/// Lines from one read to the next: prime to their number, and no pattern that the processor would foresee.
const LINE_STEP: usize = 97;
const PAIRS_MAX: usize = 200;
/// Attempts without a pause before a member relaxes.
const TRIES: u32 = 4_096;

const LEADER: usize = 0;
const FOLLOWER: usize = 1;

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
    fn fixed_turns(self) -> Option<u64> {
        (self == Self::GetFresh).then_some(LINES as u64 / 2)
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
    /// On three cells, and a heap of [`heap_bytes`]; `None` when there is less.
    fn on(arena: &'a Arena) -> Option<Self> {
        let (layout, [lock, flag, block, lines]) = layout();
        let barrier = Barrier::new(arena.cell(1), arena.cell(2));
        let heap = Heap::new(arena, layout, 2)?;
        Some(Self { heap, word: arena.cell(0), barrier, lock, flag, block, lines })
    }

    /// The leader's turns; false when the deadline came first.
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

    /// Lets the follower write the lines that are to be fresh, while the leader waits for it.
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

/// One visit of two members; pairs go to `row`, beside what a look at the placement said.
pub(super) fn visit(
    team: &TeamVisit<'_>,
    operation: Operation,
    batch_ns: f64,
    pairs_ns: u64,
    row: &mut Row,
    regime_ns: f64,
) -> Result<(), String> {
    let arena = Arena::new(3, layout().0.heap_bytes(2)).map_err(|e| e.to_string())?;
    let places = Places::on(&arena).ok_or("the heap is too small")?;
    let at_places = AtPlaces { operation, places, buffer: Mutex::default() };
    let turns = operation.fixed_turns().map_or(Turns::of(batch_ns), Turns::fixed);
    // Members that share a CPU are switched on purpose, which the kernel counts as against their will.
    let one_cpu = team.seats.cpus.windows(2).any(|two| two[0] == two[1]);
    let cell = TeamCell {
        rule: if one_cpu { Rule::Any } else { Rule::Undisturbed },
        samples_ns: pairs_ns,
        ..TeamCell::new(&at_places, 2, turns, PAIRS_MAX)
    };
    // The kernel's switches take microseconds, and the scheduler may let others in between.
    if one_cpu && team.team.model() != USER_THREADS {
        let trips = TeamCell { batches: Batches::Trips(TRIPS), samples: 1, ..cell };
        return team.take_trips(trips, row, regime_ns);
    }
    team.take_row(cell, row, regime_ns).map(drop)
}
