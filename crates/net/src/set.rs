//! The cells of all links, and those that the samples make worth measuring: sizes around breaks, and overheads.

use std::collections::BTreeSet;

use machmeter_data::quantity::{Unit, human};
use machmeter_engine::Progress;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::deadline::Deadline;
use machmeter_engine::disturbance::placement;
use machmeter_engine::experiment::{Cell, CellList, Enough, Experiment, Finished, Outlook, Set};
use machmeter_engine::host::Silent;
use machmeter_engine::sampling::{Company, Pace, Sampler};
use machmeter_model::loggps::{
    Latency, Measured, REFINEMENTS, Segment, SizePoint, TRAIN, Table, fit, propose,
};

use crate::cells::{Ends, Pattern, PatternCell, ReceiveCell};
use crate::measure::ONE;
use crate::orders::Turns;
use crate::plan::{KEPT_BACK, Operation, PART, Sizes, WORK_TURNS, Way};
use crate::points::{located, points};

/// Sizes of a track at most while breaks are looked for: 30 of the grid, and some 10 around each of five. Bisection adds one a round.
const MOST_SIZES: usize = 80;
/// Pairs of a visit where batches are short, and where a turn alone is longer than this, ns.
const PAIRS: usize = 4;
const LONG_TURN_NS: f64 = 2e6;
/// Lengths of the work between messages, in times per message.
const WORKS: [f64; 3] = [1.0, 2.0, 3.0];
/// Bytes that wait in a link at most while the receiver does: less than the least buffer of those measured, a pipe's 64 KiB.
const WAITING_BYTES: u64 = 32 << 10;
/// Visits that the plan of sizes counts on.
const VISITS: f64 = 6.0;

/// What a message takes one way, by first looks: a fixed part and one by bytes, ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cost {
    fixed_ns: f64,
    per_byte_ns: f64,
}

impl Cost {
    /// Of round trips (bytes, ns) in ascending order.
    pub(crate) fn of(round_trips: &[(u64, f64)]) -> Option<Self> {
        let (first, last) = (round_trips.first()?, round_trips.last()?);
        let more = (last.0 - first.0).max(1) as f64;
        let per_byte_ns = ((last.1 - first.1) / more / 2.0).max(0.0);
        Some(Self { fixed_ns: (first.1 / 2.0).max(1.0), per_byte_ns })
    }

    /// A turn: a train there and a message back.
    fn turn_ns(&self, messages: u32, bytes: u64) -> f64 {
        (f64::from(messages) + 1.0) * (self.fixed_ns + self.per_byte_ns * bytes as f64)
    }

    /// How many of the sizes, from the smallest on, can be measured in this time.
    pub(crate) fn most_sizes(&self, sizes: &[u64], time_ns: u64) -> usize {
        let mut spent_ns = 0.0;
        let fits = |bytes: &u64| {
            let visit = |messages| pace(self.turn_ns(messages, *bytes)).visit_ns() as f64;
            spent_ns += VISITS * (visit(1) + visit(TRAIN));
            spent_ns <= time_ns as f64
        };
        sizes.iter().map(fits).take_while(|fits| *fits).count().max(machmeter_model::loggps::LEAST_POINTS)
    }
}

fn pace(turn_ns: f64) -> Pace {
    let pairs = if turn_ns > LONG_TURN_NS { 1 } else { PAIRS };
    Pace::of(turn_ns.max(Pace::SHARED_BATCH_NS), pairs).among(Company::Partner)
}

/// Trains of one link in one direction.
struct Track {
    link: usize,
    way: Way<'static>,
    segment_bytes: Option<u64>,
    sizes: Sizes,
    cost: Cost,
    known: BTreeSet<u64>,
    /// Sizes that a person has been told of.
    told: BTreeSet<u64>,
    rounds: usize,
    has_overheads: bool,
}

impl Track {
    fn is_there(&self) -> bool {
        self.way.direction == "there"
    }

    /// A train, and one message the other way.
    fn turns(&self, bytes: u64, messages: u32) -> Turns {
        let (there, back) = if self.is_there() { (messages, 1) } else { (1, messages) };
        Turns { link: self.link, there, back, bytes, ..ONE }
    }
}

pub(crate) struct Links<'n> {
    ends: &'n Ends,
    progress: &'n dyn Progress,
    cells: CellList<'n>,
    tracks: Vec<Track>,
}

impl<'n> Links<'n> {
    pub(crate) fn new(ends: &'n Ends, progress: &'n dyn Progress) -> Self {
        Self { ends, progress, cells: CellList::default(), tracks: Vec::new() }
    }

    pub(crate) fn push(&mut self, cell: impl Cell + 'n) {
        self.cells.push(cell);
    }

    /// The cells of a link in one direction: trains of all sizes, those kept back, and the work between messages, once for a link.
    pub(crate) fn add_link(&mut self, link: usize, way: Way<'static>, sizes: Sizes, cost: Cost) {
        if !self.tracks.iter().any(|t| t.link == link) {
            let row = Way { direction: "there", ..way }.row(Operation::WORK);
            let work = Pattern::work_alone(&self.ends.near, Turns { link, ..ONE });
            self.push(PatternCell::new(self.ends, row, work, Pattern::WORK_PACE));
        }
        let segment_bytes = self.ends.near.borrow().links[link].link.segment_bytes();
        let trains = sizes.all.iter().flat_map(|bytes| [(*bytes, 1), (*bytes, TRAIN)]);
        let kept_back = sizes.kept_back.iter().map(|bytes| (*bytes, KEPT_BACK));
        let trains: Vec<(u64, u32)> = trains.chain(kept_back).collect();
        let (known, told) = (BTreeSet::new(), BTreeSet::new());
        let mut track =
            Track { link, way, segment_bytes, sizes, cost, known, told, rounds: 0, has_overheads: false };
        for (bytes, messages) in trains {
            self.add_train(&mut track, bytes, messages, 0);
        }
        self.tracks.push(track);
    }

    /// A train: the reply goes the other way.
    fn add_train(&mut self, track: &mut Track, bytes: u64, messages: u32, work: u64) {
        track.known.insert(bytes);
        let (near_work, far_work) = if track.is_there() { (work, 0) } else { (0, work) };
        let turns = Turns { work: far_work, ..track.turns(bytes, messages) };
        let row = track.way.train(bytes, messages, work);
        let subject = Pattern::new(&self.ends.near, turns, near_work);
        let pace = pace(track.cost.turn_ns(messages, bytes));
        self.cells.push(PatternCell::new(self.ends, row, subject, pace));
    }

    /// What is measured of them alone until a time, monotonic ns.
    pub(crate) fn rows_until(
        self,
        sampler: &mut Sampler,
        until_ns: u64,
        enough: Enough,
        seed: u64,
    ) -> Vec<Row> {
        let mut experiment = Experiment::new(None);
        experiment.add(Box::new(self), 1.0);
        let finished = experiment.run(sampler, &Deadline::until(until_ns), enough, seed, &Silent);
        finished.into_iter().flat_map(|f| f.rows).collect()
    }

    fn rows(&mut self) -> Vec<Row> {
        (0..self.cells.count()).flat_map(|i| self.cells.cell(i).rows().to_vec()).collect()
    }

    /// Overheads at sizes, where messages follow each other in so many ns.
    fn add_overheads(
        &mut self,
        track: &mut Track,
        gaps_ns: impl IntoIterator<Item = (u64, f64)>,
        work_ns: f64,
    ) {
        for (bytes, gap_ns) in gaps_ns {
            for times in WORKS {
                let work = (times * gap_ns / work_ns).ceil().max(1.0) as u64;
                self.add_train(track, bytes, TRAIN, work);
            }
            let messages = (WAITING_BYTES / bytes).min(u64::from(TRAIN)) as u32;
            if messages < 2 {
                continue;
            }
            // Long enough for all of them to arrive.
            let delay_ns = (2.0 * track.cost.turn_ns(messages, bytes)) as u64 + 20_000;
            let (far_ns, near_ns) = if track.is_there() { (delay_ns, 0) } else { (0, delay_ns) };
            let turns = Turns { delay_ns: far_ns, ..track.turns(bytes, messages) };
            let row = track.way.row(Operation::RECEIVE).with("size_bytes", bytes);
            let row = row.per_turn(f64::from(crate::cells::PARTS));
            self.cells.push(ReceiveCell::new(self.ends, row, turns, near_ns));
        }
    }
}

/// The middle size of each range that has none of these.
fn without_overheads(points: &[SizePoint], sizes: &[u64]) -> Vec<u64> {
    let segments = fit(points).map_or_else(|_| Vec::new(), |table| table.segments);
    let middle = |s: &Segment| {
        let range = s.first_bytes..=s.last_bytes;
        let own: Vec<u64> = points.iter().map(|p| p.size_bytes).filter(|b| range.contains(b)).collect();
        let has_one = sizes.iter().any(|b| range.contains(b));
        own.get(own.len() / 2).copied().filter(|_| !has_one)
    };
    segments.iter().filter_map(middle).collect()
}

/// A line for each size that is new and has all of its figures.
fn tell(points: &[SizePoint], track: &mut Track, progress: &dyn Progress) {
    let Ok(table) = fit(points) else { return };
    for p in points {
        let waits = track.sizes.overheads.contains(&p.size_bytes) && p.overhead_send.is_none();
        if !waits && track.told.insert(p.size_bytes) {
            progress.step(&format!("{} {}: {}", track.way.transport, track.way.direction, row(p, &table)));
        }
    }
}

fn row(p: &SizePoint, table: &Table) -> String {
    let ns = |value: f64| human(value, Unit::Nanoseconds);
    let s = table.segment(p.size_bytes);
    let latency = match s.latency {
        Latency::Known(l) => ns(l.ns),
        Latency::AtMost(most) => format!("<= {}", ns(most)),
    };
    let overhead = |what: &str, of: Option<Measured>| of.map(|o| format!(", {what} {}", ns(o.ns)));
    let (y, rate) = (p.gap.ns, p.size_bytes as f64 / p.gap.ns);
    format!(
        "{} B, a message {} (fitted {}){}{}, L {latency}, G {:.4} ns/B; {rate:.3} GB/s, {:.2} Gbit/s",
        p.size_bytes,
        ns(y),
        ns(s.gap.at(p.size_bytes)),
        overhead("sent", p.overhead_send).unwrap_or_default(),
        overhead("received", p.overhead_recv).unwrap_or_default(),
        s.gap.per_byte.ns,
        8.0 * rate
    )
}

impl Set for Links<'_> {
    fn count(&self) -> usize {
        self.cells.count()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        self.cells.cell(index)
    }

    fn propose(&mut self, _outlook: &Outlook) {
        let rows = Rows { tick_hz: self.ends.rate.hz(), step_ticks: 1, rows: self.rows(), ..Rows::default() };
        let levels = placement::levels(&rows, PART);
        let located = |row: &Row| located(&rows, row, levels.as_ref());
        for mut track in std::mem::take(&mut self.tracks) {
            let own = points(&rows.rows, &track.way, &located);
            // Trains of large messages come one a visit, and need several.
            let complete = 3 * own.len() >= 2 * track.sizes.all.len();
            let is_first = !track.has_overheads;
            // Once before breaks are looked for, and once at sizes of the ranges that these made.
            if complete && (is_first || track.rounds == REFINEMENTS) {
                let is_work = |r: &&Row| Way { direction: "there", ..track.way }.owns(r, Operation::WORK);
                let work =
                    rows.rows.iter().find(is_work).and_then(&located).map(|m| m.ns / WORK_TURNS as f64);
                if let Some(work_ns) = work.filter(|ns| *ns > 0.0) {
                    track.has_overheads = true;
                    let new = if is_first {
                        track.sizes.overheads.clone()
                    } else {
                        without_overheads(&own, &track.sizes.overheads)
                    };
                    let gaps = own.iter().filter(|p| new.contains(&p.size_bytes));
                    let gaps: Vec<(u64, f64)> = gaps.map(|p| (p.size_bytes, p.gap.ns)).collect();
                    self.add_overheads(&mut track, gaps, work_ns);
                    if !is_first {
                        track.sizes.overheads.extend(new);
                    }
                }
            }
            if complete {
                tell(&own, &mut track, self.progress);
            }
            if complete || track.rounds > 0 {
                let wanted = propose(&own, track.rounds);
                let bisects = track.rounds >= REFINEMENTS;
                track.rounds += 1;
                for bytes in wanted {
                    // Within a segment of the transport nothing is to be told apart.
                    let within = track.segment_bytes.is_some_and(|s| bytes > s && bytes % s != 0);
                    if !within && !track.known.contains(&bytes) && (bisects || track.known.len() < MOST_SIZES)
                    {
                        self.add_train(&mut track, bytes, 1, 0);
                        self.add_train(&mut track, bytes, TRAIN, 0);
                    }
                }
            }
            self.tracks.push(track);
        }
    }

    fn finish(self: Box<Self>) -> Finished {
        Finished { rows: self.cells.into_rows(), ..Finished::default() }
    }
}
