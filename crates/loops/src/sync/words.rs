//! Operations that several members repeat on words at once: on one word, on words of one line, or on words far apart.

use std::hint::black_box;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::team::{Arena, JointOperation, Member};

/// Operations of a turn. Between two turns a member checks whether to stop, which takes 0.5 % of the time at most.
pub const CHUNK: u64 = 256;

machmeter_data::named! {
/// An operation on a word.
pub enum Operation {
    /// Atomic add whose result is not used: a counter.
    FetchAdd = "fetch_add",
    /// Load, then compare-and-swap to one more; counts an attempt whether it succeeds or not.
    Cas = "cas",
    Swap = "swap",
    /// Load, add one, store. A store alone would stay in the store buffer; here each load depends on the store before it.
    StoreLoad = "store_load",
    Load = "load",
} }

impl Operation {
    fn chunk(self, word: &AtomicU64) {
        match self {
            Self::FetchAdd => fetch_add(word),
            Self::Cas => cas(word),
            Self::Swap => swap(word),
            Self::StoreLoad => store_load(word),
            Self::Load => load(word),
        }
    }
}

/// All members repeat `operation`, each on its own word, in turns of [`CHUNK`]. The words of two neighbors are
/// `distance_bytes` apart; 0 means that all members share one word.
pub fn on_words(
    operation: Operation,
    members: usize,
    distance_bytes: usize,
) -> io::Result<Box<dyn JointOperation>> {
    let memory = Arena::new(0, 4_096 + members * distance_bytes.max(8))?;
    Ok(Box::new(OnWords { operation, memory, distance_bytes }))
}

struct OnWords {
    operation: Operation,
    memory: Arena,
    distance_bytes: usize,
}

impl OnWords {
    fn word(&self, member: &Member<'_>) -> Option<&AtomicU64> {
        self.memory.heap().atomics().get(member.rank * self.distance_bytes / 8)
    }
}

impl JointOperation for OnWords {
    fn prepare(&self, member: &Member<'_>) -> bool {
        self.word(member).map(|word| word.store(0, Ordering::Relaxed)).is_some()
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        let Some(word) = self.word(member) else { return false };
        for _ in 0..turns {
            self.operation.chunk(word);
        }
        true
    }
}

#[inline(never)]
fn fetch_add(word: &AtomicU64) {
    for _ in 0..CHUNK {
        word.fetch_add(1, Ordering::AcqRel);
    }
}

#[inline(never)]
fn cas(word: &AtomicU64) {
    let mut seen = word.load(Ordering::Relaxed);
    for _ in 0..CHUNK {
        seen = match word.compare_exchange(seen, seen.wrapping_add(1), Ordering::AcqRel, Ordering::Relaxed) {
            Ok(old) => old.wrapping_add(1),
            Err(now) => now,
        };
    }
}

#[inline(never)]
fn swap(word: &AtomicU64) {
    let mut mine = 0;
    for _ in 0..CHUNK {
        mine = word.swap(mine, Ordering::AcqRel);
    }
    black_box(mine);
}

#[inline(never)]
fn store_load(word: &AtomicU64) {
    for _ in 0..CHUNK {
        word.store(word.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

#[inline(never)]
fn load(word: &AtomicU64) {
    for _ in 0..CHUNK {
        black_box(word.load(Ordering::Relaxed));
    }
}
