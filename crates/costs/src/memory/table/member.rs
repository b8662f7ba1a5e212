//! What one member does in a visit of a row: it makes ready, meets the others, times pairs of batches, and writes them down in
//! the shared memory of the team.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::sampling::{HostTiming, Timing};
use machmeter_engine::team::{Arena, Member};
use machmeter_sys::kernel::chain::{Chain, ChainSpec, LOADS_PER_TURN, Order};
use machmeter_sys::kernel::{self, Ready};
use machmeter_sys::pages::Extent;

use super::plan::{Line, Operation, Place, Sizes};

/// Pairs of one visit at most.
pub(super) const PAIRS: usize = 16;
/// Words of one pair in shared memory: short and long ticks, whether it is to be kept.
const WORDS: usize = 3;
/// Cells of the team: the meeting, members that have done their pairs, the barrier of the row, then one of progress each.
pub(super) const CELLS: usize = 3;
/// Share of my progress that a partner must have made meanwhile, at least; and at most.
const TOGETHER: std::ops::RangeInclusive<f64> = 0.2..=5.0;
/// Parts of a batch after which progress is published.
const CHUNKS: u64 = 4;

/// A pair as it was kept or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    Clean { short_ticks: u64, long_ticks: u64 },
    Preempted,
    Apart,
}

/// The shared memory of a team with its layout.
pub(super) struct Floor {
    arena: Arena,
    sizes: Sizes,
    members: usize,
}

impl Floor {
    /// For so many members.
    pub(super) fn new(sizes: Sizes, members: usize) -> std::io::Result<Self> {
        let each = Self::stride(sizes).checked_mul(members);
        let arena = Arena::new(CELLS + members, each.ok_or(std::io::ErrorKind::OutOfMemory)?)?;
        Ok(Self { arena, sizes, members })
    }

    fn stride(sizes: Sizes) -> usize {
        let notes = PAIRS * WORDS * 8;
        [sizes.main_bytes, sizes.cached_bytes, notes].iter().map(|b| b.next_multiple_of(4_096)).sum()
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

    fn notes(&self, rank: usize) -> &[AtomicU64] {
        let from =
            self.sizes.main_bytes.next_multiple_of(4_096) + self.sizes.cached_bytes.next_multiple_of(4_096);
        self.piece(rank, from, PAIRS * WORDS * 8).map_or(&[], Extent::atomics)
    }

    /// The pairs of a member of the last visit.
    pub(super) fn taken(&self, rank: usize, pairs: usize) -> Vec<Taken> {
        let words = self.notes(rank).chunks_exact(WORDS).take(pairs);
        words
            .map(|w| match w[2].load(Ordering::Acquire) {
                1 => Taken::Clean {
                    short_ticks: w[0].load(Ordering::Acquire),
                    long_ticks: w[1].load(Ordering::Acquire),
                },
                2 => Taken::Preempted,
                _ => Taken::Apart,
            })
            .collect()
    }

    fn note(&self, rank: usize, pair: usize, taken: Taken) {
        let Some(w) = self.notes(rank).get(pair * WORDS..(pair + 1) * WORDS) else { return };
        let mark = match taken {
            Taken::Clean { short_ticks, long_ticks } => {
                w[0].store(short_ticks, Ordering::Release);
                w[1].store(long_ticks, Ordering::Release);
                1
            }
            Taken::Preempted => 2,
            Taken::Apart => 3,
        };
        w[2].store(mark, Ordering::Release);
    }

    /// Before a visit: nothing met, nothing done.
    pub(super) fn clear(&self) {
        for i in 0..CELLS + self.members {
            if let Some(c) = self.arena.cell(i) {
                c.store(0, Ordering::Release);
            }
        }
        (0..self.members).flat_map(|r| self.notes(r)).for_each(|w| w.store(0, Ordering::Release));
    }
}

/// A visit of a row.
pub(super) struct Visit<'a> {
    pub(super) floor: &'a Floor,
    pub(super) line: Line,
    /// The member that works while the others wait; all of them where the line says so.
    pub(super) active: usize,
    pub(super) short_turns: u64,
    pub(super) long_turns: u64,
    pub(super) pairs: usize,
    pub(super) timing: HostTiming,
    pub(super) seed: u64,
}

/// What is repeated.
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
        Operation::Touch { access: super::plan::Access::Dependent, .. } => LOADS_PER_TURN as f64,
        Operation::Touch { place: Place::Cache, .. } => (sizes.cached_bytes / sizes.block_bytes) as f64,
        Operation::Touch { .. } => AREA_ACCESSES as f64,
    }
}

/// Turns of the empty kernel's inner loop in a turn of ours.
const EMPTY_TURNS: u64 = 64;
/// Accesses of one area of a buffer beyond the caches.
const AREA_ACCESSES: u64 = 512;

impl Visit<'_> {
    /// The work of a member; the same closure for all.
    pub(super) fn work(&self, member: &Member<'_>) {
        let works = self.line.all || member.rank == self.active;
        let cells =
            (self.floor.arena.cell(0), self.floor.arena.cell(1), self.floor.arena.cell(CELLS + member.rank));
        let (Some(meeting), Some(done), Some(progress)) = cells else { return };
        let mut repeated = if works { self.make_ready(member) } else { None };
        if let Some(r) = repeated.as_mut().filter(|r| !matches!(r, Repeated::Barrier { .. })) {
            r.run(self.short_turns, member);
        }
        if !member.meet(meeting, 0) {
            return;
        }
        let workers = if self.line.all { member.members as u64 } else { 1 };
        if let Some(r) = &mut repeated {
            for pair in 0..self.pairs {
                let taken = self.pair(r, member, progress);
                self.floor.note(member.rank, pair, taken);
            }
            done.fetch_add(1, Ordering::AcqRel);
            // The others still measure, and must not measure alone; at a barrier all end together.
            if !matches!(r, Repeated::Barrier { .. }) {
                while done.load(Ordering::Acquire) < workers
                    && machmeter_sys::thread::monotonic_ns() < member.deadline_ns
                {
                    r.run((self.short_turns / CHUNKS).max(1), member);
                    progress.fetch_add(1, Ordering::AcqRel);
                }
            }
        }
        member.wait(|| done.load(Ordering::Acquire) >= workers);
    }

    fn pair(&self, repeated: &mut Repeated<'_>, member: &Member<'_>, progress: &AtomicU64) -> Taken {
        let mut timing = self.timing;
        let mark = timing.mark();
        let before = self.progress_of_others(member);
        let mut together = true;
        // Chunks of equal length, so that progress means the same in both batches and for all members.
        let chunk = (self.short_turns / CHUNKS).max(1);
        let mut batch = |turns: u64| {
            timing.time(&mut || {
                for _ in 0..turns / chunk {
                    together &= repeated.run(chunk, member);
                    progress.fetch_add(1, Ordering::Relaxed);
                }
            })
        };
        let (short_ticks, long_ticks) = (batch(self.short_turns), batch(self.long_turns));
        let mine = ((self.short_turns + self.long_turns) / chunk) as f64;
        if timing.disturbed_since(mark).is_some() {
            return Taken::Preempted;
        }
        let after = self.progress_of_others(member);
        let mut others = after.iter().zip(&before).map(|(a, b)| a.saturating_sub(*b) as f64);
        let alongside = !self.line.all || others.all(|made| TOGETHER.contains(&(made / mine)));
        if together && alongside { Taken::Clean { short_ticks, long_ticks } } else { Taken::Apart }
    }

    fn progress_of_others(&self, member: &Member<'_>) -> Vec<u64> {
        (0..member.members)
            .filter(|r| *r != member.rank)
            .filter_map(|r| Some(self.floor.arena.cell(CELLS + r)?.load(Ordering::Relaxed)))
            .collect()
    }

    fn make_ready(&self, member: &Member<'_>) -> Option<Repeated<'_>> {
        let block = self.floor.sizes.block_bytes as u64;
        let floor = self.floor;
        match self.line.operation {
            Operation::Empty => {
                let any = floor.cached(member.rank)?;
                Some(Repeated::Kernel(kernel::named("empty")?.ready(EMPTY_TURNS, [any; 3], 0).ok()?))
            }
            Operation::Timer => Some(Repeated::Timer(self.timing)),
            Operation::Barrier => Some(Repeated::Barrier { cell: floor.arena.cell(2)?, round: 0 }),
            Operation::Touch { write, place, access } => {
                let buffer = match place {
                    Place::Cache => floor.cached(member.rank)?,
                    Place::Local => floor.main(member.rank)?,
                    Place::Neighbour => floor.main((member.rank + 1) % member.members)?,
                };
                if access == super::plan::Access::Dependent {
                    let spec = ChainSpec {
                        working_set_bytes: buffer.bytes(),
                        stride_bytes: self.floor.sizes.block_bytes.max(64),
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
