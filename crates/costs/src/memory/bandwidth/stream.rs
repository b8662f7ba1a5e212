//! Kernels over buffers: memory with known contents, the operands laid out in it, and the walk that is timed.

use std::sync::Once;
use std::sync::atomic::Ordering;

use machmeter_engine::ProbeError;
use machmeter_engine::sampling::Subject;
use machmeter_sys::kernel::{Kernel, Ready, Walk};
use machmeter_sys::pages::{Backing, Pages};

machmeter_data::named! { pub(crate) enum Contents {
    /// From 1 to 2 with random mantissas: incompressible, and arithmetic takes no slow path (denormals).
    Random = "random",
    Zeros = "zeros",
} }

pub(crate) struct Buffer {
    pub(crate) pages: Pages,
    pub(crate) contents: Contents,
    /// Largest working set, bytes.
    pub(crate) bytes: usize,
    filled: Once,
}

const SLACK_BYTES: usize = 64 << 10;
/// Operands start this far apart modulo a page: equal offsets would be taken for the same address (4 KiB aliasing).
const STAGGER_BYTES: usize = 33 * 64;
/// Bytes that one turn of a walk over memory takes: long against the call, short against a batch.
pub(crate) const CHUNK_BYTES: usize = 256 << 10;

/// Pages of this process, or why it has none.
pub(crate) fn pages(bytes: usize, backing: Backing) -> Result<Pages, ProbeError> {
    Pages::new(bytes, backing).map_err(|e| ProbeError::Cannot(e.to_string()))
}

impl Buffer {
    /// Room for a working set of `bytes`. Nothing is touched yet: [`Self::fill`] has to be called by the user of the memory.
    pub(crate) fn new(bytes: usize, backing: Backing, contents: Contents) -> Result<Self, ProbeError> {
        let pages = pages(bytes.saturating_add(SLACK_BYTES), backing)?;
        Ok(Self { pages, contents, bytes, filled: Once::new() })
    }

    /// Writes the contents, which also places the pages near the calling thread.
    pub(crate) fn fill(&self, seed: u64) {
        self.fill_part(0, self.pages.bytes(), seed);
    }

    pub(crate) fn fill_once(&self, seed: u64) {
        self.filled.call_once(|| self.fill(seed));
    }

    /// Writes the contents of a part that lies inside.
    pub(crate) fn fill_part(&self, offset: usize, bytes: usize, seed: u64) {
        let Some(part) = self.pages.extent().part(offset, bytes) else { return };
        // Zeros have to be written, too: a page never written is the one page of zeros that the kernel shares out.
        let mut state = seed ^ (offset as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        for word in part.atomics() {
            let value = match self.contents {
                Contents::Zeros => 0,
                Contents::Random => {
                    // xorshift64 (Marsaglia 2003): quick, and good enough to be incompressible.
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    // Odd, so that no byte that a string instruction repeats is 0.
                    (state >> 12) | 1.0_f64.to_bits() | 1
                }
            };
            word.store(value, Ordering::Relaxed);
        }
    }
}

/// Bytes that a kernel moves per turn, by operand; `None` for kernels that do not walk forward.
pub(crate) fn moved(kernel: &Kernel) -> Option<[usize; 3]> {
    match kernel.walk {
        Walk::Forward(bytes) => Some(bytes.map(|b| b as usize)).filter(|b| b.iter().sum::<usize>() > 0),
        _ => None,
    }
}

/// A kernel that walks round and round; a large working set chunk by chunk, on from the last batch.
pub(crate) struct Stream<'a> {
    chunks: Vec<Ready<'a>>,
    at: usize,
}

impl<'a> Stream<'a> {
    /// A walk over `bytes` (all operands together) of `buffer`, in turns of about `chunk_bytes`.
    pub(crate) fn new(
        kernel: &'static Kernel,
        buffer: &'a Buffer,
        bytes: usize,
        chunk_bytes: usize,
    ) -> Result<Self, String> {
        let extent = buffer.pages.extent();
        let wrong = |why: &str| format!("kernel {}: {why}", kernel.name);
        let per_turn = moved(kernel).ok_or_else(|| wrong("does not walk over memory"))?;
        let sum: usize = per_turn.iter().sum();
        let turns = bytes / sum;
        if turns == 0 {
            return Err(wrong(&format!("{bytes} bytes are less than a turn of {sum}")));
        }
        let chunk_turns = if bytes > 2 * chunk_bytes { (chunk_bytes / sum).max(1) } else { turns };
        let (mut starts, mut next) = ([0; 3], 0_usize);
        for (i, b) in per_turn.iter().enumerate().filter(|(_, b)| **b > 0) {
            starts[i] = next + i * STAGGER_BYTES;
            next = (starts[i] + turns * b).next_multiple_of(4_096);
        }
        let chunk = |index: usize| {
            let mut operands = [extent; 3];
            for (i, b) in per_turn.iter().enumerate().filter(|(_, b)| **b > 0) {
                let at = starts[i] + index * chunk_turns * b;
                operands[i] =
                    extent.part(at, chunk_turns * b).ok_or_else(|| wrong("the buffer is too small"))?;
            }
            kernel.ready(chunk_turns as u64, operands, 0).map_err(|e| e.to_string())
        };
        let chunks = (0..turns / chunk_turns).map(chunk).collect::<Result<_, _>>()?;
        Ok(Self { chunks, at: 0 })
    }

    /// Turns of the kernel in one turn of the walk.
    pub(crate) fn kernel_turns(&self) -> u64 {
        self.chunks.first().map_or(0, Ready::turns)
    }

    pub(crate) fn bytes_per_turn(&self) -> u64 {
        self.chunks.first().map_or(0, |c| c.turns() * c.kernel().bytes_per_turn())
    }

    /// Turns of one round over the whole working set.
    pub(crate) fn round(&self) -> u64 {
        self.chunks.len() as u64
    }

    #[inline]
    pub(crate) fn walk(&mut self, turns: u64) {
        if let [one] = self.chunks.as_slice() {
            one.run(turns);
            return;
        }
        for _ in 0..turns {
            if let Some(chunk) = self.chunks.get(self.at) {
                chunk.run(1);
            }
            self.at = if self.at + 1 < self.chunks.len() { self.at + 1 } else { 0 };
        }
    }

    /// Walks over a quarter of a working set in chunks, so that caches are as amid a long walk.
    pub(crate) fn warm(&mut self) {
        if self.chunks.len() > 1 {
            self.walk(self.round().div_ceil(4));
        }
    }
}

impl Subject for Stream<'_> {
    fn prepare(&mut self) -> Result<(), String> {
        self.warm();
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        self.walk(turns);
        true
    }
}
