//! Shared memory of a visit: orders of member 0, reports, what was found. Words have names here only.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Arena, Found};
use crate::sampling::Mark;
use crate::team::{read_bytes, write_bytes};

pub(super) const CELLS: usize = 10;
/// Words of a report: a pair of lines, since processors fetch lines in pairs.
const REPORT_WORDS: usize = 16;
/// Told in place of a round: the visit is over.
pub(super) const OVER: u64 = u64::MAX;

/// What member 0 says, and how far the others are. Each word lies on lines of its own.
pub(super) struct Orders<'a> {
    pub(super) round: &'a AtomicU64,
    /// [`What`] is to be done.
    pub(super) what: &'a AtomicU64,
    pub(super) cell: &'a AtomicU64,
    pub(super) turns: &'a AtomicU64,
    /// Arrivals of the others for their next order, over all rounds.
    pub(super) arrived: &'a AtomicU64,
    /// Others that are ready for the common start.
    pub(super) ready: &'a AtomicU64,
    pub(super) go: &'a AtomicU64,
    pub(super) done: &'a AtomicU64,
    pub(super) stop: &'a AtomicU64,
    /// 1 when a member could not do its part.
    pub(super) failed: &'a AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    Prepare,
    Batch,
    Throughout,
}

impl What {
    pub(super) fn of(word: u64) -> Option<Self> {
        [Self::Prepare, Self::Batch, Self::Throughout].get(word as usize).copied()
    }
}

/// What a member tells of its last order.
pub(super) struct Report<'a> {
    /// Clock at the start and at the end of its batch.
    pub(super) start_ticks: &'a AtomicU64,
    pub(super) end_ticks: &'a AtomicU64,
    pub(super) voluntary: &'a AtomicU64,
    pub(super) involuntary: &'a AtomicU64,
    /// 1 when it changed its CPU.
    pub(super) moved: &'a AtomicU64,
    /// Turns made while it worked throughout, over all orders.
    pub(super) turns: &'a AtomicU64,
    /// How often it has told its switches while it worked throughout.
    pub(super) told: &'a AtomicU64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Seen {
    pub(super) start_ticks: u64,
    pub(super) end_ticks: u64,
    pub(super) voluntary: u64,
    pub(super) involuntary: u64,
    pub(super) moved: bool,
    pub(super) turns: u64,
    pub(super) told: u64,
}

impl Seen {
    pub(super) fn since(self, before: &Mark, after: &Mark) -> Self {
        Self {
            voluntary: after.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary: after.involuntary_switches.saturating_sub(before.involuntary_switches),
            moved: after.cpu != before.cpu,
            ..self
        }
    }
}

impl Report<'_> {
    /// Writes times and switches down; turns are told apart.
    pub(super) fn write(&self, seen: &Seen) {
        for (word, value) in [
            (self.start_ticks, seen.start_ticks),
            (self.end_ticks, seen.end_ticks),
            (self.voluntary, seen.voluntary),
            (self.involuntary, seen.involuntary),
            (self.moved, u64::from(seen.moved)),
        ] {
            word.store(value, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> Seen {
        let told = self.told.load(Ordering::Acquire);
        let [start_ticks, end_ticks, voluntary, involuntary, moved, turns] =
            [self.start_ticks, self.end_ticks, self.voluntary, self.involuntary, self.moved, self.turns]
                .map(|word| word.load(Ordering::Relaxed));
        Seen { start_ticks, end_ticks, voluntary, involuntary, moved: moved != 0, turns, told }
    }
}

pub(super) struct Shared<'a> {
    pub(super) orders: Orders<'a>,
    reports: Vec<Report<'a>>,
    /// What was found, as JSON: one encoding with a name for everything.
    found: &'a [AtomicU64],
}

/// Most bytes of a sample, of a trip, and of a cell, as JSON.
const SAMPLE_BYTES: usize = 640;
const TRIP_BYTES: usize = 96;
const CELL_BYTES: usize = 32;
const HEAD_BYTES: usize = 64;

pub(super) fn heap_bytes(members: usize, cells: usize, samples: usize, trips: usize) -> usize {
    let found = samples.saturating_mul(SAMPLE_BYTES).saturating_add(cells * CELL_BYTES + HEAD_BYTES);
    let found = found.saturating_add(trips.saturating_mul(TRIP_BYTES));
    found.saturating_add(members * REPORT_WORDS * 8)
}

impl<'a> Shared<'a> {
    /// `None` when the arena is too small.
    pub(super) fn on(arena: &'a Arena, members: usize) -> Option<Self> {
        let [round, what, cell, turns, arrived, ready, go, done, stop, failed] =
            std::array::from_fn::<_, CELLS, _>(|i| arena.cell(i));
        let orders = Orders { round, what, cell, turns, arrived, ready, go, done, stop, failed };
        let (reports, found) = arena.heap().atomics().split_at_checked(members * REPORT_WORDS)?;
        let report = |words: &'a [AtomicU64]| {
            let [start_ticks, end_ticks, voluntary, involuntary, moved, turns, told, ..] = words else {
                return None;
            };
            Some(Report { start_ticks, end_ticks, voluntary, involuntary, moved, turns, told })
        };
        let reports = reports.chunks_exact(REPORT_WORDS).map(report).collect::<Option<_>>()?;
        Some(Self { orders, reports, found })
    }

    pub(super) fn report(&self, rank: usize) -> Option<&Report<'a>> {
        self.reports.get(rank)
    }

    pub(super) fn read(&self, first: usize, end: usize) -> Vec<Seen> {
        self.reports.iter().take(end).skip(first).map(Report::read).collect()
    }

    /// Writes down what was found; it is lost where it does not fit.
    pub(super) fn write_found(&self, found: &Found) {
        if let Ok(json) = serde_json::to_vec(found) {
            write_bytes(self.found, &json);
        }
    }

    pub(super) fn found(&self) -> Result<Found, String> {
        serde_json::from_slice(&read_bytes(self.found))
            .map_err(|e| format!("the results of the team could not be stored: {e}"))
    }
}
