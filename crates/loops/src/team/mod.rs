//! Operations that several threads or processes do together, and the memory that they share.

pub mod heap;
pub mod ping_pong;
#[cfg(feature = "user-threads")]
pub mod user_threads;

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_sys::pages::{Extent, Pages};
use serde::{Deserialize, Serialize};

/// Bytes from one cell to the next: two lines, since processors fetch lines in pairs.
pub const CELL_BYTES: usize = 128;

/// Shared memory of a team: cells on lines of their own, and a heap.
#[derive(Debug)]
pub struct Arena {
    pages: Pages,
    cells: usize,
}

impl Arena {
    /// With so many cells (each a 64-bit word, 0 at first) and a heap of so many bytes.
    pub fn new(cells: usize, heap_bytes: usize) -> io::Result<Self> {
        let bytes = cells
            .checked_mul(CELL_BYTES)
            .and_then(|b| b.checked_next_multiple_of(4_096)?.checked_add(heap_bytes));
        let pages = Pages::shared(bytes.ok_or(io::ErrorKind::OutOfMemory)?)?;
        Ok(Self { pages, cells })
    }

    /// Cell `i`, which must be one of the cells of the arena.
    pub fn cell(&self, i: usize) -> &AtomicU64 {
        assert!(i < self.cells, "cell {i} of {}", self.cells);
        &self.pages.extent().atomics()[i * CELL_BYTES / 8]
    }

    pub fn heap(&self) -> Extent<'_> {
        let start = (self.cells * CELL_BYTES).next_multiple_of(4_096);
        let extent = self.pages.extent();
        extent.part(start, extent.bytes() - start).unwrap_or(extent)
    }
}

/// A member of a team, as its own work sees it.
pub struct Member<'a> {
    /// Its number, from 0.
    pub rank: usize,
    pub members: usize,
    /// Moment at which everything must end, monotonic ns.
    pub deadline_ns: u64,
    /// Lets another member on the same CPU go on, or tells the processor that this is a waiting loop.
    pub relax: &'a dyn Fn(),
    /// Time of the deadline, ns.
    pub now_ns: &'a dyn Fn() -> u64,
}

impl Member<'_> {
    /// Waits until `done`, relaxing meanwhile. False when the deadline came first (looked at every 1,024 turns).
    pub fn wait(&self, mut done: impl FnMut() -> bool) -> bool {
        loop {
            for _ in 0..1_024 {
                if done() {
                    return true;
                }
                (self.relax)();
            }
            if self.is_late() {
                return done();
            }
        }
    }

    pub fn is_late(&self) -> bool {
        (self.now_ns)() >= self.deadline_ns
    }

    /// Waits for all members; false when late. `cell` counts arrivals and nothing else; `round` is 0, 1, 2, ...
    pub fn meet(&self, cell: &AtomicU64, round: u64) -> bool {
        cell.fetch_add(1, Ordering::AcqRel);
        let all = (round + 1) * self.members as u64;
        self.wait(|| cell.load(Ordering::Acquire) >= all)
    }
}

/// What disturbed a sample.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Disturbance {
    /// The thread was switched out against its will.
    Preempted,
    /// The thread came back on another CPU.
    Migrated,
    /// A partner stood still.
    Partner,
    /// A partner was to sleep and did not.
    Awake,
    Failed,
}

/// One operation of all members of a team.
pub trait JointOperation: Sync {
    /// Makes ready for a visit, in every member that works; not timed. False when the member cannot work.
    fn prepare(&self, _member: &Member<'_>) -> bool {
        true
    }

    /// Makes ready for a batch, in member 0 while all others wait.
    fn reset(&self) {}

    /// Comes into step with the others, after the common start and before the time begins.
    fn approach(&self, _member: &Member<'_>) -> bool {
        true
    }

    /// A member's part of a batch; timed. False when it could not be done. One of `batch` and `trips` has to be there.
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.trips(member, turns, &mut || {})
    }

    /// The same, and `end` after each turn: member 0 reads the clock in it. The default is for turns that stand alone.
    fn trips(&self, member: &Member<'_>, turns: u64, end: &mut dyn FnMut()) -> bool {
        (0..turns).all(|_| {
            let done = self.batch(member, 1);
            end();
            done
        })
    }

    /// Time of every turn that members spend waiting on purpose, ns; it is taken off the time of a batch.
    fn pause_ns(&self) -> u64 {
        0
    }

    /// Looks, in member 0, at a batch of `turns`. `clean`: of a sample, and no judged member was switched out.
    fn judge(&self, _turns: u64, _clean: bool) -> Option<Disturbance> {
        None
    }
}
