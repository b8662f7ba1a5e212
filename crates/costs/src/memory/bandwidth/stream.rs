//! Kernels over buffers: memory with known contents, the operands of a kernel laid out in it, and the walk over them that is
//! timed.

use std::sync::Once;
use std::sync::atomic::Ordering;

use machmeter_engine::ProbeError;
use machmeter_engine::sampling::Subject;
use machmeter_sys::kernel::{Kernel, KernelError, Ready, Walk};
use machmeter_sys::pages::{Backing, Pages};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Numbers from 1 to 2 with random mantissas: no cache or memory controller can shorten them, and no arithmetic on them
    /// takes a slow path (a random word would be a denormal or no number at all once in a thousand).
    Random,
    Zeros,
}

impl Contents {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Random => "random",
            Self::Zeros => "zeros",
        }
    }
}

pub(crate) struct Buffer {
    pages: Pages,
    contents: Contents,
    bytes: usize,
    filled: Once,
}

const SLACK_BYTES: usize = 64 << 10;
/// Operands start this far from each other modulo a page: with equal offsets a load would be taken for one of the store just
/// before it (4 KiB aliasing).
const STAGGER_BYTES: usize = 33 * 64;
/// Bytes that one turn of a walk over memory takes: long against the call, short against a batch.
const CHUNK_BYTES: usize = 256 << 10;

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

    /// Largest working set, bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn contents(&self) -> Contents {
        self.contents
    }

    pub(crate) fn pages(&self) -> &Pages {
        &self.pages
    }

    /// Writes the contents, which also places the pages near the calling thread.
    pub(crate) fn fill(&self, seed: u64) {
        self.fill_part(0, self.pages.bytes(), seed);
    }

    /// The same, the first time only.
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

/// A kernel that walks round and round over its operands. A working set of one chunk is walked by the kernel's own passes, a
/// larger one chunk by chunk, going on where the batch before stopped: so a batch needs not be as long as a pass.
pub(crate) struct Stream<'a> {
    chunks: Vec<Ready<'a>>,
    at: usize,
}

impl<'a> Stream<'a> {
    /// A walk over `working_set_bytes` (all operands together) of `buffer`.
    pub(crate) fn new(
        kernel: &'static Kernel,
        buffer: &'a Buffer,
        working_set_bytes: usize,
    ) -> Result<Self, KernelError> {
        Self::in_chunks(kernel, buffer, working_set_bytes, CHUNK_BYTES)
    }

    /// The same with turns of about `chunk_bytes`.
    pub(crate) fn in_chunks(
        kernel: &'static Kernel,
        buffer: &'a Buffer,
        working_set_bytes: usize,
        chunk_bytes: usize,
    ) -> Result<Self, KernelError> {
        let (extent, bytes) = (buffer.pages.extent(), working_set_bytes);
        let wrong = |why: &str| KernelError::Operands { name: kernel.name, why: why.to_owned() };
        let Some(per_turn) = moved(kernel) else {
            return Err(wrong("does not walk over memory"));
        };
        let sum: usize = per_turn.iter().sum();
        let turns = bytes / sum;
        if turns == 0 {
            return Err(wrong(&format!("{bytes} bytes are less than a turn of {sum}")));
        }
        let chunk_turns = if bytes > 2 * chunk_bytes { (chunk_bytes / sum).max(1) } else { turns };
        let mut starts = [0; 3];
        let mut next = 0_usize;
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
            kernel.ready(chunk_turns as u64, operands, 0)
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

    /// Walks over a quarter of a working set that is in chunks, so that caches hold what they hold in the midst of a long
    /// walk (dirty lines of its own, for one).
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
