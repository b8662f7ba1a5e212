//! Shared memory of a visit: orders of member 0, a report of each member, turns of each cell, and the samples. Every word has a
//! name here and nowhere else.

use std::sync::atomic::{AtomicU64, Ordering};

use super::{Arena, Found, Settled};
use crate::sampling::{Disturbance, Mark};

/// Cells of the arena.
pub(super) const CELLS: usize = 10;
/// Words of a report: a pair of lines, since processors fetch lines in pairs.
const REPORT_WORDS: usize = 16;
/// In place of turns: the operation failed.
const FAILED: u64 = u64::MAX;
/// Told in place of a round: the visit is over.
pub(super) const OVER: u64 = u64::MAX;

/// What member 0 says, and how far the others are. Each word lies on lines of its own.
pub(super) struct Orders<'a> {
    /// Number of the order.
    pub(super) round: &'a AtomicU64,
    /// [`What`] is to be done.
    pub(super) what: &'a AtomicU64,
    /// Number of the cell.
    pub(super) cell: &'a AtomicU64,
    /// Turns.
    pub(super) turns: &'a AtomicU64,
    /// Arrivals of the others for their next order, over all rounds.
    pub(super) arrived: &'a AtomicU64,
    /// Others that are ready for the common start.
    pub(super) ready: &'a AtomicU64,
    /// Round whose batch may start.
    pub(super) go: &'a AtomicU64,
    /// Members that have done their turns.
    pub(super) done: &'a AtomicU64,
    /// Round that is to be left.
    pub(super) stop: &'a AtomicU64,
    /// 1 when a member could not do its part.
    pub(super) failed: &'a AtomicU64,
}

/// An order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// Make ready for a visit.
    Prepare,
    /// Do a batch.
    Batch,
    /// Work until told to stop.
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
    /// Switches since the order.
    pub(super) voluntary: &'a AtomicU64,
    pub(super) involuntary: &'a AtomicU64,
    /// 1 when it changed its CPU.
    pub(super) moved: &'a AtomicU64,
    /// Turns made while it worked throughout, over all orders.
    pub(super) turns: &'a AtomicU64,
    /// How often it has told its switches while it worked throughout.
    pub(super) told: &'a AtomicU64,
}

/// A report as it was read.
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
    /// With the switches between two marks.
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

/// One sample, kept or not.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct TeamSample {
    /// Number of its cell.
    pub cell: usize,
    /// Lap of the visit.
    pub lap: usize,
    /// Member whose time it is.
    pub member: usize,
    /// Why it does not count; `None` when it does.
    pub disturbance: Option<Disturbance>,
    /// When it began, ns after the start of the measurement.
    pub at_ns: u64,
    /// Turns of the short batch, or of the only one.
    pub turns: u64,
    /// Ticks of the short batch; 0 where there is one batch only.
    pub short_ticks: u64,
    /// Ticks of the long, or only, batch.
    pub long_ticks: u64,
    /// Ticks from the beginning of the first batch to the end of the last.
    pub window_ticks: u64,
    /// Switches of the judged members in all batches, by will and against it.
    pub voluntary: u64,
    /// Against their will.
    pub involuntary: u64,
    /// Turns of the slowest member, of the fastest, and of all members but the first, in the window, where others work throughout.
    pub least_turns: u64,
    /// Of the fastest.
    pub most_turns: u64,
    /// Of all members but the first.
    pub others_turns: u64,
    /// Width of the core in the window, at least, of a member that is alone; 0 where nobody looked.
    pub core_width: f64,
}

/// Words of a sample.
const SAMPLE_WORDS: usize = 15;
/// Disturbances by their code less one.
const DISTURBANCES: [Disturbance; 5] = [
    Disturbance::Preempted,
    Disturbance::Migrated,
    Disturbance::Partner,
    Disturbance::Awake,
    Disturbance::Failed,
];

impl TeamSample {
    fn to_words(self) -> [u64; SAMPLE_WORDS] {
        let code = DISTURBANCES.iter().position(|d| Some(*d) == self.disturbance).map_or(0, |i| i as u64 + 1);
        [
            self.cell as u64,
            self.lap as u64,
            self.member as u64,
            code,
            self.at_ns,
            self.turns,
            self.short_ticks,
            self.long_ticks,
            self.window_ticks,
            self.voluntary,
            self.involuntary,
            self.least_turns,
            self.most_turns,
            self.others_turns,
            self.core_width.to_bits(),
        ]
    }

    fn from_words(words: [u64; SAMPLE_WORDS]) -> Self {
        let [
            cell,
            lap,
            member,
            code,
            at_ns,
            turns,
            short_ticks,
            long_ticks,
            window_ticks,
            voluntary,
            involuntary,
            least_turns,
            most_turns,
            others_turns,
            core_width,
        ] = words;
        Self {
            cell: cell as usize,
            lap: lap as usize,
            member: member as usize,
            disturbance: code.checked_sub(1).and_then(|i| DISTURBANCES.get(i as usize).copied()),
            at_ns,
            turns,
            short_ticks,
            long_ticks,
            window_ticks,
            voluntary,
            involuntary,
            least_turns,
            most_turns,
            others_turns,
            core_width: f64::from_bits(core_width),
        }
    }
}

/// All of it.
pub(super) struct Shared<'a> {
    pub(super) orders: Orders<'a>,
    reports: Vec<Report<'a>>,
    /// By cell: turns of a short batch, 0 before they are known.
    turns: &'a [AtomicU64],
    /// Number of samples.
    count: &'a AtomicU64,
    samples: &'a [AtomicU64],
}

pub(super) fn heap_bytes(members: usize, cells: usize, samples: usize) -> usize {
    let words = members.saturating_mul(REPORT_WORDS) + cells + 1;
    words.saturating_add(samples.saturating_mul(SAMPLE_WORDS)).saturating_mul(8)
}

impl<'a> Shared<'a> {
    /// `None` when the arena is too small.
    pub(super) fn on(arena: &'a Arena, members: usize, cells: usize, samples: usize) -> Option<Self> {
        let cell = |i| arena.cell(i);
        let orders = Orders {
            round: cell(0)?,
            what: cell(1)?,
            cell: cell(2)?,
            turns: cell(3)?,
            arrived: cell(4)?,
            ready: cell(5)?,
            go: cell(6)?,
            done: cell(7)?,
            stop: cell(8)?,
            failed: cell(9)?,
        };
        let (reports, rest) = arena.heap().atomics().split_at_checked(members * REPORT_WORDS)?;
        let (turns, rest) = rest.split_at_checked(cells)?;
        let (count, rest) = rest.split_first()?;
        let report = |words: &'a [AtomicU64]| {
            let [start_ticks, end_ticks, voluntary, involuntary, moved, turns, told, ..] = words else {
                return None;
            };
            Some(Report { start_ticks, end_ticks, voluntary, involuntary, moved, turns, told })
        };
        Some(Self {
            orders,
            reports: reports.chunks_exact(REPORT_WORDS).map(report).collect::<Option<_>>()?,
            turns,
            count,
            samples: rest.get(..samples * SAMPLE_WORDS)?,
        })
    }

    pub(super) fn report(&self, rank: usize) -> Option<&Report<'a>> {
        self.reports.get(rank)
    }

    /// Reports of members from `first` up to `end`.
    pub(super) fn read(&self, first: usize, end: usize) -> Vec<Seen> {
        self.reports.iter().take(end).skip(first).map(Report::read).collect()
    }

    /// Turns of a cell as this visit found them; 0 before.
    pub(super) fn turns(&self, cell: usize) -> u64 {
        self.turns.get(cell).map(|t| t.load(Ordering::Relaxed)).filter(|t| *t != FAILED).unwrap_or(0)
    }

    pub(super) fn settle(&self, cell: usize, turns: Option<u64>) {
        if let Some(word) = self.turns.get(cell) {
            word.store(turns.unwrap_or(FAILED), Ordering::Release);
        }
    }

    /// Adds a sample, as long as there is room.
    pub(super) fn push(&self, sample: TeamSample) {
        let at = self.count.load(Ordering::Relaxed) as usize;
        let Some(words) = self.samples.get(at * SAMPLE_WORDS..(at + 1) * SAMPLE_WORDS) else { return };
        for (word, value) in words.iter().zip(sample.to_words()) {
            word.store(value, Ordering::Relaxed);
        }
        self.count.store(at as u64 + 1, Ordering::Release);
    }

    pub(super) fn found(&self) -> Found {
        let n = self.count.load(Ordering::Acquire) as usize;
        let sample = |words: &[AtomicU64]| {
            let words: &[AtomicU64; SAMPLE_WORDS] = words.try_into().ok()?;
            Some(TeamSample::from_words(words.each_ref().map(|w| w.load(Ordering::Acquire))))
        };
        let settled = |word: &AtomicU64| match word.load(Ordering::Acquire) {
            0 => Settled::NotReached,
            FAILED => Settled::Failed,
            turns => Settled::Turns(turns),
        };
        Found {
            samples: self.samples.chunks_exact(SAMPLE_WORDS).take(n).filter_map(sample).collect(),
            settled: self.turns.iter().map(settled).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let arena = Arena::new(CELLS, heap_bytes(2, 3, 2)).unwrap();
        let shared = Shared::on(&arena, 2, 3, 2).unwrap();
        let sample = |i: usize| TeamSample {
            cell: i,
            lap: 2,
            member: 1,
            disturbance: DISTURBANCES.get(i).copied(),
            at_ns: 4,
            turns: 5,
            short_ticks: 6,
            long_ticks: 7,
            window_ticks: 8,
            voluntary: 9,
            involuntary: 10,
            least_turns: 11,
            most_turns: 12,
            others_turns: 13,
            core_width: 3.5,
        };
        for i in 0..=DISTURBANCES.len() {
            assert_eq!(TeamSample::from_words(sample(i).to_words()), sample(i));
            shared.push(sample(i));
        }
        shared.settle(0, Some(40));
        shared.settle(1, None);
        let found = shared.found();
        assert_eq!(found.samples, [sample(0), sample(1)], "no more than there is room for");
        assert_eq!(found.settled, [Settled::Turns(40), Settled::Failed, Settled::NotReached]);
        assert_eq!((shared.turns(0), shared.turns(1), shared.turns(9)), (40, 0, 0));
        assert!(Shared::on(&arena, 2, 3, 1_000_000).is_none() && shared.report(2).is_none());
    }
}
