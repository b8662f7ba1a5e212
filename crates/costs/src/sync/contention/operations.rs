//! What members do to a word at once: one operation, over and over.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member};

/// Operations between two looks at whether to stop: 0.5 % of the time at most.
pub(super) const CHUNK: u64 = 256;

machmeter_data::named! { pub(super) enum Operation {
    /// Atomic add whose result nobody reads: a counter.
    FetchAdd = "fetch_add",
    /// Load, then compare-and-swap to one more; counts an attempt whether it succeeds or not.
    Cas = "cas",
    Swap = "swap",
    /// Load, add one, store. A store alone would vanish in the store buffer; here each load needs the store before.
    StoreLoad = "store_load",
    Load = "load",
} }

impl Operation {
    pub(super) fn chunk(self, word: &AtomicU64) {
        match self {
            Self::FetchAdd => fetch_add(word),
            Self::Cas => cas(word),
            Self::Swap => swap(word),
            Self::StoreLoad => store_load(word),
            Self::Load => load(word),
        }
    }
}

/// An operation of all members, each on its word. A turn is a chunk.
pub(super) struct OnWords<'a> {
    pub(super) operation: Operation,
    pub(super) memory: &'a Arena,
    /// From one member's word to the next member's, bytes; 0 for one word.
    pub(super) distance_bytes: usize,
}

impl OnWords<'_> {
    /// What so many members need, bytes.
    pub(super) fn memory_bytes(members: usize, distance_bytes: usize) -> usize {
        4_096 + members * distance_bytes.max(8)
    }

    fn word(&self, member: &Member<'_>) -> Option<&AtomicU64> {
        self.memory.heap().atomics().get(member.rank * self.distance_bytes / 8)
    }
}

impl JointOperation for OnWords<'_> {
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
