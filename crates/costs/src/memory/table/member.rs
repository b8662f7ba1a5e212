//! What a member of the table of shared accesses does, and the memory in which it does it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use machmeter_engine::sampling::{HostTiming, Timing};
use machmeter_engine::team::sampler::JointOperation;
use machmeter_engine::team::{Arena, Member};
use machmeter_sys::kernel::chain::{Chain, ChainSpec, LOADS_PER_TURN, Order};
use machmeter_sys::kernel::{self, Ready};
use machmeter_sys::pages::Extent;

use super::plan::{Access, Line, Operation, Place, Sizes};

/// The memory of all members: a buffer beyond the caches and one within for each.
pub(super) struct Buffers {
    arena: Arena,
    pub(super) sizes: Sizes,
    members: usize,
}

impl Buffers {
    pub(super) fn new(sizes: Sizes, members: usize) -> std::io::Result<Self> {
        let bytes = Self::stride(sizes).checked_mul(members).ok_or(std::io::ErrorKind::OutOfMemory)?;
        Ok(Self { arena: Arena::new(1, bytes)?, sizes, members })
    }

    fn stride(sizes: Sizes) -> usize {
        [sizes.main_bytes, sizes.cached_bytes].iter().map(|b| b.next_multiple_of(4_096)).sum()
    }

    fn piece(&self, rank: usize, from: usize, bytes: usize) -> Option<Extent<'_>> {
        self.arena.heap().part(rank * Self::stride(self.sizes) + from, bytes)
    }

    pub(super) fn main(&self, rank: usize) -> Option<Extent<'_>> {
        self.piece(rank, 0, self.sizes.main_bytes)
    }

    pub(super) fn cached(&self, rank: usize) -> Option<Extent<'_>> {
        self.piece(rank, self.sizes.main_bytes.next_multiple_of(4_096), self.sizes.cached_bytes)
    }
}

enum Repeated<'a> {
    Kernel(Ready<'a>),
    Areas { areas: Vec<Ready<'a>>, next: usize },
    Chain(Box<Chain<'a>>),
    Timer(HostTiming),
    Barrier { cell: &'a AtomicU64, round: u64 },
}

impl Repeated<'_> {
    /// Does `turns` turns; false when a partner did not come.
    fn run(&mut self, turns: u64, member: &Member<'_>) -> bool {
        match self {
            Self::Kernel(k) => {
                std::hint::black_box(k.run(turns));
            }
            Self::Areas { areas, next } => {
                for _ in 0..turns {
                    std::hint::black_box(areas[*next].run(1));
                    *next = (*next + 1) % areas.len();
                }
            }
            Self::Chain(c) => c.chase(turns),
            Self::Timer(t) => {
                for _ in 0..turns {
                    std::hint::black_box(t.time(&mut || {}));
                }
            }
            Self::Barrier { cell, round } => {
                for _ in 0..turns {
                    if !member.meet(cell, *round) {
                        return false;
                    }
                    *round += 1;
                }
            }
        }
        true
    }
}

/// Accesses (or operations) of one turn of a line.
pub(super) fn per_turn(line: Line, sizes: Sizes) -> f64 {
    match line.operation {
        Operation::Empty => EMPTY_TURNS as f64,
        // A pair of readings.
        Operation::Timer => 2.0,
        Operation::Barrier => 1.0,
        Operation::Touch { access: Access::Dependent, .. } => LOADS_PER_TURN as f64,
        Operation::Touch { place: Place::Cache, .. } => (sizes.cached_bytes / sizes.block_bytes) as f64,
        Operation::Touch { .. } => AREA_ACCESSES as f64,
    }
}

/// Turns of the empty kernel's inner loop in a turn of ours.
const EMPTY_TURNS: u64 = 64;
/// Accesses of one area of a buffer beyond the caches.
const AREA_ACCESSES: u64 = 512;

/// A line of the table, done by all members or by the one with rank `first`.
pub(super) struct LineOperation<'a> {
    buffers: &'a Buffers,
    line: Line,
    /// Rank in the table of member 0 of the team.
    first: usize,
    timing: HostTiming,
    seed: u64,
    repeated: Vec<Mutex<Option<Repeated<'a>>>>,
}

impl<'a> LineOperation<'a> {
    pub(super) fn new(buffers: &'a Buffers, line: Line, first: usize, timing: HostTiming, seed: u64) -> Self {
        let members = if line.all { buffers.members } else { 1 };
        // Members meet at the barrier from its beginning on.
        buffers.arena.cell(0).store(0, Ordering::Release);
        let repeated = (0..members).map(|_| Mutex::new(None)).collect();
        Self { buffers, line, first, timing, seed, repeated }
    }

    pub(super) fn members(&self) -> usize {
        self.repeated.len()
    }

    fn make_ready(&self, rank: usize) -> Option<Repeated<'a>> {
        let buffers = self.buffers;
        let block = buffers.sizes.block_bytes as u64;
        match self.line.operation {
            Operation::Empty => Some(Repeated::Kernel(kernel::named("empty")?.of_registers(EMPTY_TURNS)?)),
            Operation::Timer => Some(Repeated::Timer(self.timing)),
            Operation::Barrier => Some(Repeated::Barrier { cell: buffers.arena.cell(0), round: 0 }),
            Operation::Touch { write, place, access } => {
                let buffer = match place {
                    Place::Cache => buffers.cached(rank)?,
                    Place::Local => buffers.main(rank)?,
                    Place::Neighbor => buffers.main((rank + 1) % buffers.members)?,
                };
                if access == Access::Dependent {
                    let spec = ChainSpec {
                        working_set_bytes: buffer.bytes(),
                        stride_bytes: buffers.sizes.block_bytes.max(64),
                        order: Order::Global,
                        seed: self.seed,
                    };
                    let build = if write { Chain::build_written } else { Chain::build };
                    return build(buffer, &spec).ok().map(|c| Repeated::Chain(Box::new(c)));
                }
                let kernel = kernel::named(if write { "write.strided8" } else { "read.strided8" })?;
                if place == Place::Cache {
                    let turns = buffer.bytes() as u64 / (8 * block);
                    return kernel.ready(turns, [buffer; 3], block).ok().map(Repeated::Kernel);
                }
                let bytes = (AREA_ACCESSES * block) as usize;
                let areas = (0..buffer.bytes() / bytes).filter_map(|i| {
                    kernel.ready(AREA_ACCESSES / 8, [buffer.part(i * bytes, bytes)?; 3], block).ok()
                });
                let areas: Vec<Ready<'_>> = areas.collect();
                (!areas.is_empty()).then_some(Repeated::Areas { areas, next: 0 })
            }
        }
    }
}

impl JointOperation for LineOperation<'_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        let ready = self.make_ready(self.first + member.rank);
        let made = ready.is_some();
        if let Some(repeated) = self.repeated.get(member.rank) {
            *repeated.lock().unwrap_or_else(PoisonError::into_inner) = ready;
        }
        made
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        let Some(repeated) = self.repeated.get(member.rank) else { return false };
        let mut repeated = repeated.lock().unwrap_or_else(PoisonError::into_inner);
        repeated.as_mut().is_some_and(|r| r.run(turns, member))
    }
}
