//! Round trips of a word between two CPUs, and reads of lines in the other CPU's cache. Member 0 reads the clock; half a round
//! trip is one way.

#[allow(unsafe_code, reason = "cache lines are removed by an instruction that no safe function offers")]
mod kernel;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_stats::random::Random;

use crate::team::ping_pong::{PingPong, TRIPS, WARM_TRIPS, spin_until};
use crate::team::{Arena, JointOperation, Member};

/// Lines that a batch of reads visits, each once.
const LINES: u64 = 128;
/// Lets the partner leave the batch. It spins while its lines are read: a partner that did something else would answer later.
const LEAVE: u64 = u64::MAX;

/// Words from one line in use to the next: four lines, so that no prefetcher of adjacent lines has an effect.
const LINE_WORDS: usize = 32;
/// First word of the lines that member 0 reads.
const CHAIN: usize = 512;
const WORDS: usize = CHAIN + LINES as usize * LINE_WORDS;

machmeter_data::named! {
/// The way in which a line moves from one CPU to the other, the most informative first.
pub enum Kind {
    /// Both compare-and-swap one word (as core-to-core-latency does).
    Cas = "cas",
    /// Both store to and load from one word.
    OneLine = "store_load_1",
    /// Each CPU stores to its own line and loads the other CPU's (as c2clat does).
    TwoLines = "store_load_2",
    /// One CPU reads, line by line, lines that the other CPU has just written.
    ReadDirty = "read_dirty",
    /// One CPU reads, line by line, lines that the other CPU has just read from memory.
    ReadClean = "read_clean",
} }

impl Kind {
    /// Turns of a batch, and transfers of the line per turn.
    pub const fn batch(self) -> (u64, f64) {
        match self {
            Self::Cas | Self::OneLine | Self::TwoLines => (TRIPS, 2.0),
            Self::ReadDirty | Self::ReadClean => (LINES, 1.0),
        }
    }
}

/// Maps the memory of the lines, which operations of all kinds share.
pub fn memory() -> io::Result<Arena> {
    Arena::new(0, WORDS * size_of::<u64>())
}

/// Two members move lines in `memory` from one CPU to the other and back. `seed` determines the order of the lines that member 0
/// reads.
pub fn exchange(kind: Kind, memory: &Arena, seed: u64) -> Box<dyn JointOperation + '_> {
    Box::new(Exchange { kind, lines: Lines(memory.heap().atomics()), seed })
}

#[derive(Clone, Copy)]
struct Lines<'a>(&'a [AtomicU64]);

impl<'a> Lines<'a> {
    /// The word of a kind, on a line of its own; `second` for the other line of a pair.
    fn word(self, kind: Kind, second: bool) -> &'a AtomicU64 {
        &self.0[(kind as usize * 2 + usize::from(second)) * LINE_WORDS]
    }

    /// Writes all lines, so that their pages are near the calling CPU, and links them into one random cycle (Sattolo).
    fn prepare(self, seed: u64) {
        for word in self.0 {
            word.store(0, Ordering::Relaxed);
        }
        let mut next: Vec<usize> = (0..LINES as usize).collect();
        let mut random = Random::new(seed);
        for i in (1..next.len()).rev() {
            next.swap(i, random.below(i));
        }
        for (i, to) in next.iter().enumerate() {
            let at = |line: usize| CHAIN + line * LINE_WORDS;
            self.0[at(i)].store(at(*to) as u64, Ordering::Relaxed);
        }
    }

    fn chain(self) -> impl Iterator<Item = &'a AtomicU64> {
        self.0[CHAIN..].iter().step_by(LINE_WORDS)
    }
}

/// Stores a new number and waits for the answer, which is one higher.
#[inline(never)]
fn ask_trips(mine: &AtomicU64, other: &AtomicU64, first: u64, trips: u64, member: &Member<'_>) -> bool {
    (0..trips).all(|i| {
        let number = first + 2 * i + 1;
        mine.store(number, Ordering::Release);
        spin_until(member, || other.load(Ordering::Acquire) == number + 1)
    })
}

/// Waits for each number and answers with the next.
#[inline(never)]
fn answer_trips(mine: &AtomicU64, other: &AtomicU64, first: u64, trips: u64, member: &Member<'_>) -> bool {
    (0..trips).all(|i| {
        let number = first + 2 * i + 1;
        spin_until(member, || other.load(Ordering::Acquire) == number) && {
            mine.store(number + 1, Ordering::Release);
            true
        }
    })
}

/// Follows the links, each of which depends on the read before. True if it ends at the line where it began.
#[inline(never)]
fn read_chain(words: &[AtomicU64]) -> bool {
    let mut at = CHAIN;
    for _ in 0..LINES {
        let Some(word) = words.get(at) else { return false };
        at = word.load(Ordering::Relaxed) as usize;
    }
    at == CHAIN
}

struct Exchange<'a> {
    kind: Kind,
    lines: Lines<'a>,
    seed: u64,
}

impl Exchange<'_> {
    /// The member's side of `trips` round trips, the first of them with number `first`.
    fn trips(&self, member: &Member<'_>, first: u64, trips: u64) -> bool {
        let (word, second) = (self.lines.word(self.kind, false), self.lines.word(self.kind, true));
        let other = if self.kind == Kind::TwoLines { second } else { word };
        match (self.kind, member.rank) {
            (Kind::Cas, _) => PingPong(word).exchange(member, trips),
            (_, 0) => ask_trips(word, other, first, trips, member),
            _ => answer_trips(other, word, first, trips, member),
        }
    }

    /// Brings the lines into the partner's cache, in the state in which member 0 reads them.
    fn hold(&self) {
        for w in self.lines.chain() {
            let link = w.load(Ordering::Relaxed);
            if self.kind == Kind::ReadDirty {
                w.store(link, Ordering::Relaxed);
            } else {
                kernel::flush(w);
            }
        }
        if self.kind == Kind::ReadClean {
            kernel::wait_flushed();
            let sum = self.lines.chain().fold(0, |s: u64, w| s.wrapping_add(w.load(Ordering::Relaxed)));
            std::hint::black_box(sum);
        }
    }
}

impl JointOperation for Exchange<'_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        if member.rank == 0 {
            self.lines.prepare(self.seed);
        }
        true
    }

    fn reset(&self) {
        self.lines.word(self.kind, false).store(0, Ordering::Relaxed);
        self.lines.word(self.kind, true).store(0, Ordering::Relaxed);
    }

    fn approach(&self, member: &Member<'_>) -> bool {
        match self.kind {
            Kind::Cas | Kind::OneLine | Kind::TwoLines => self.trips(member, 0, WARM_TRIPS),
            Kind::ReadDirty | Kind::ReadClean => {
                if member.rank == 1 {
                    self.hold();
                }
                // For member 0 this trip ends when the partner has the lines.
                self.trips(member, 0, 1)
            }
        }
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        match self.kind {
            Kind::Cas | Kind::OneLine | Kind::TwoLines => self.trips(member, 2 * WARM_TRIPS, turns),
            Kind::ReadDirty | Kind::ReadClean => {
                let word = self.lines.word(self.kind, false);
                if member.rank != 0 {
                    return spin_until(member, || word.load(Ordering::Acquire) == LEAVE);
                }
                let done = read_chain(self.lines.0);
                word.store(LEAVE, Ordering::Release);
                done
            }
        }
    }
}
