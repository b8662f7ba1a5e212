//! The cells: a first look at the staircase, what it proposes, and again what has too few undisturbed samples.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Facts, Row, Rows};
use machmeter_engine::experiment::{BenchCell, Cell, Enough, Finished, Outlook, Set, Visit};
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_stats::random::Random;
use machmeter_sys::facts;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::pages::Backing;

use super::chase::{self, GLOBAL, Ground, ONE_PER_PAGE, PAGE_LOCAL, SMALL, STRIDE_BYTES, STRIDED};
use super::curves::{Curves, ROUND_ENDS_NS};
use super::detect::{DETECTED_CACHES, DetectedCaches};
use super::plan::{self, Request, ground, huge, touch};
use super::refine::{self, Refinement};
use crate::memory::Params;
use crate::memory::bandwidth::{sizes::most_bytes, stream::pages};
use crate::memory::reported::ReportedCaches;
use machmeter_engine::part::PartContext;

/// Pairs per visit of large working sets, whose chains take longer to build than to walk.
const PAIRS: usize = 3;
/// Pairs per visit of small working sets.
const MORE_PAIRS: usize = 6;
const SMALL_BYTES: i64 = 2 << 20;
/// Rounds that what is added later gets at least, or it is not begun.
const LEAST_ROUNDS: f64 = 3.0;
/// Share of the time that bringing in the memory of one page size may take.
const TOUCH_SHARE: f64 = 0.12;
/// Times below which the plan is the short one, ns.
const SHORT_NS: u64 = 10_000_000_000;
/// Working sets per octave of the full plan.
const PER_OCTAVE: u32 = 8;
/// One round in so many is one of all cells while figures want undisturbed samples.
const WHOLE_EVERY: usize = 4;
/// What a node of a large chain takes to link before one was built, and at most, ns; and what is large, bytes.
const BUILD_NS: f64 = 20.0;
const MOST_BUILD_NS: f64 = 500.0;
const LARGE_BYTES: usize = 16 << 20;
/// Working sets per octave of the random order, the curve that is shown first, at least.
const RANDOM_PER_OCTAVE: u32 = 2;
/// Working sets per octave of the strided order: it shows what prefetchers make of the levels, not where they end.
const STRIDED_PER_OCTAVE: u32 = 1;

pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let reported = ReportedCaches::of(&at.host.topology, at.host.cpus.first().unwrap_or(0));
    let left = MemoryLeft::of_this_process(&FsRoot::host()).map_err(ProbeError::Cannot)?;
    let mut request = Request::new(params, &reported, left.available_bytes, most_bytes(at.host.level))?;
    at.host.begin()?;
    at.facts.set(&plan::REPORTED_CACHES, reported);
    let hypervisor = facts::capture().text("virt.hypervisor").unwrap_or("unknown").to_owned();
    at.facts.set(&plan::HYPERVISOR, hypervisor);
    let touch_ns = (at.left_ns() as f64 * TOUCH_SHARE) as u64;
    let full = at.left_ns() >= SHORT_NS;

    let small = request.small.then(|| pages(request.most_bytes, Backing::Small)).transpose()?;
    if let Some(pages) = &small {
        request.bound_by_time(touch(pages, touch_ns, at.host.seed));
    }
    let (huge, huge_bytes) = huge(at, &mut request, touch_ns)?;
    at.facts.set(&plan::LIMIT, request.limit);
    let small = small.as_ref().and_then(|p| ground(p, request.most_bytes));
    let grounds: Vec<Ground<'_>> =
        small.into_iter().chain(huge.as_ref().and_then(|p| ground(p, huge_bytes))).collect();
    if grounds.is_empty() {
        return Err(ProbeError::Cannot("no memory in the requested page size".to_owned()));
    }
    let mut ladder = Ladder {
        grounds,
        request,
        full,
        rounds: Enough::at(at.host.level).visits,
        random: Random::new(at.host.seed ^ 0x6c61_6464_6572),
        rows: Rows {
            tick_hz: at.host.rate.hz(),
            step_ticks: at.host.clock.step_ticks(),
            rows: Vec::new(),
            facts: at.facts.clone(),
        },
        cells: Vec::new(),
        wanting: Vec::new(),
        round_ends_ns: Vec::new(),
    };
    ladder.begin();
    at.run(ladder);
    Ok(())
}

/// A row with the longest visit so far, ns; 0 before the first.
struct LadderCell<'a> {
    cell: BenchCell<'a>,
    /// The clock of the core, visited right before: latencies in cycles hold while it changes.
    clock: Option<Bench<'a>>,
    visits: u32,
    took_ns: u64,
}

impl LadderCell<'_> {
    /// Length of the next visit, ns: that of the longest, or of building a chain at `build_ns` per node.
    fn next_ns(&self, build_ns: f64) -> f64 {
        if self.took_ns > 0 {
            self.took_ns as f64
        } else {
            expected_ns(self.bytes() / STRIDE_BYTES, build_ns)
        }
    }

    fn bytes(&self) -> usize {
        self.cell.bench.row.int("working_set_bytes").unwrap_or(0) as usize
    }
}

/// Building, calibrating, warming, and the pairs of one short and one long batch, ns.
fn expected_ns(nodes: usize, build_ns: f64) -> f64 {
    nodes as f64 * build_ns + refine::BATCH_NS * (3 * MORE_PAIRS + 2) as f64
}

impl Cell for LadderCell<'_> {
    fn rows(&self) -> &[Row] {
        self.cell.rows()
    }

    fn expected_ns(&self) -> u64 {
        self.next_ns(BUILD_NS) as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let begin_ns = visit.sampler.now_ns();
        if let Some(clock) = &mut self.clock {
            visit.sampler.visit(clock, &Pace::of(refine::OWN_SET_BATCH_NS, MORE_PAIRS), visit.until_ns);
        }
        self.cell.visit(visit);
        self.visits += 1;
        self.took_ns = self.took_ns.max(visit.sampler.now_ns().saturating_sub(begin_ns));
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        let clock = self.clock.map(|c| c.row);
        Box::new(self.cell).into_rows().into_iter().chain(clock).collect()
    }
}

struct Ladder<'a> {
    /// At least one.
    grounds: Vec<Ground<'a>>,
    request: Request,
    full: bool,
    /// Visits of each row.
    rounds: u32,
    random: Random,
    /// Facts and clock, for curves.
    rows: Rows,
    cells: Vec<LadderCell<'a>>,
    /// Cells on which figures hang and that have too few undisturbed samples.
    wanting: Vec<usize>,
    /// Time of the last pair of each round, on the clock of the pairs.
    round_ends_ns: Vec<f64>,
}

impl<'a> Ladder<'a> {
    fn begin(&mut self) {
        let most_bytes = self.request.most_bytes;
        let asked = self.request.per_octave.map(|n| plan::sizes(n, most_bytes));
        let first_look = asked.unwrap_or_else(|| plan::first_look(most_bytes));
        self.curve(self.grounds[0], PAGE_LOCAL, &first_look);
        let pages = refine::PAGE_COUNTS.map(|n| n * chase::PAGE_BYTES);
        self.curve(self.grounds[0], ONE_PER_PAGE, &pages);
    }

    /// The curves that show more than the levels: the random order, the strided one, and in a full run all of the plan.
    fn complete(&mut self, left_ns: f64) {
        let (first, most_bytes) = (self.grounds[0], self.request.most_bytes);
        self.curve(first, GLOBAL, &plan::sizes(RANDOM_PER_OCTAVE, most_bytes));
        let strided = plan::sizes(STRIDED_PER_OCTAVE, most_bytes);
        let (small, large) = strided.split_at(strided.partition_point(|bytes| *bytes as i64 <= SMALL_BYTES));
        self.curve(first, STRIDED, small);
        if self.affordable(large, left_ns) {
            self.curve(first, STRIDED, large);
        }
        if self.full {
            self.widen(first, left_ns);
        } else if self.request.surface {
            self.surface(first, left_ns);
        }
    }

    /// What is made with a seed of its own, unless it is there.
    fn add(&mut self, make: impl FnOnce(u64) -> Bench<'a>) {
        let bench = make(self.random.bits());
        let row = &bench.row;
        let is_there = |c: &LadderCell<'_>| {
            c.cell.bench.row.operation == row.operation && c.cell.bench.row.params == row.params
        };
        if !self.cells.iter().any(is_there) {
            let (batch_ns, pairs) = visits(row);
            let cell = BenchCell { bench, pace: Pace::of(batch_ns, pairs) };
            self.cells.push(LadderCell { cell, clock: None, visits: 0, took_ns: 0 });
        }
    }

    /// Has the clock measured beside the prices of the core's own caches.
    fn clock(&mut self, inside_levels: &[usize]) {
        for cell in self.cells.iter_mut().filter(|c| c.clock.is_none()) {
            let row = &cell.cell.bench.row;
            let is_price = row.operation == "chase" && row.text("order") == GLOBAL;
            if is_price && cell.bytes() as i64 <= SMALL_BYTES && inside_levels.contains(&cell.bytes()) {
                cell.clock = chase::adds(row);
            }
        }
    }

    fn curve(&mut self, ground: Ground<'a>, order: &str, sizes: &[usize]) {
        for size in sizes.iter().filter(|s| **s <= ground.extent.bytes()) {
            self.add(|seed| chase::chase(ground, order, *size, STRIDE_BYTES, seed));
        }
    }

    /// Adds what the rows so far make worth measuring.
    fn refine(&mut self, found: &Refinement) {
        let first = self.grounds[0];
        self.curve(first, PAGE_LOCAL, &found.near_boundaries);
        self.curve(first, ONE_PER_PAGE, &found.pages);
        self.curve(first, STRIDED, &found.inside_levels);
        let compared = refine::compared_pages(self.request.most_bytes);
        let last = &found.inside_levels[found.inside_levels.len().saturating_sub(1)..];
        for ground in self.grounds.clone() {
            self.curve(ground, GLOBAL, &found.inside_levels);
            if ground.pages != SMALL || self.grounds.len() > 1 {
                self.curve(ground, ONE_PER_PAGE, &compared);
            }
            if ground.pages != SMALL {
                self.curve(ground, PAGE_LOCAL, last);
            }
        }
        self.clock(&found.inside_levels);
        if self.cells.iter().any(|c| c.cell.bench.row.operation == "second") {
            return;
        }
        let set_bytes = found.line_set_bytes.min(first.extent.bytes());
        for offset in refine::offsets(self.full) {
            self.add(|seed| chase::second(first, set_bytes, *offset, seed));
        }
        let cache_bytes = found.first_cache_bytes;
        let conflicts = if self.full && cache_bytes > 0 { refine::CONFLICTS } else { &[] };
        for lines in conflicts.iter().filter(|lines| **lines * cache_bytes <= first.extent.bytes()) {
            self.add(|seed| chase::conflict(first, *lines, cache_bytes, seed));
        }
    }

    fn rows(&self, core_width: Option<f64>) -> Rows {
        let rows = self.cells.iter().map(|c| c.cell.bench.row.clone()).collect();
        let mut rows = Rows { rows, ..self.rows.clone() };
        rows.restore_core(core_width.map(|w| 1.0 / w));
        rows.store_core();
        rows
    }

    fn widen(&mut self, first: Ground<'a>, left_ns: f64) {
        for chains in refine::CHAINS {
            if self.affordable(&[first.extent.bytes()], left_ns) {
                self.add(|seed| chase::parallel(first, *chains, first.extent.bytes(), seed));
            }
        }
        if self.request.surface {
            self.surface(first, left_ns);
        }
        let per_octave = self.request.per_octave.unwrap_or(PER_OCTAVE);
        for finer in [1, 2, per_octave.min(4), per_octave] {
            let sizes = plan::sizes(finer, self.request.most_bytes);
            for ground in self.grounds.clone() {
                for order in [GLOBAL, PAGE_LOCAL, ONE_PER_PAGE] {
                    if self.affordable(&sizes, left_ns) {
                        self.curve(ground, order, &sizes);
                    }
                }
            }
        }
    }

    fn surface(&mut self, ground: Ground<'a>, left_ns: f64) {
        for stride in refine::STRIDES {
            for size in plan::sizes(1, self.request.most_bytes) {
                if size >= 2 * stride && self.affordable(&[size], left_ns) {
                    self.add(|seed| chase::chase(ground, GLOBAL, size, *stride, seed));
                }
            }
        }
    }

    /// What a node of a large chain takes to link, ns.
    fn build_ns(&self) -> f64 {
        let large = self.cells.iter().filter(|c| c.took_ns > 0 && c.bytes() >= LARGE_BYTES);
        let each = large.map(|c| c.took_ns as f64 / (c.bytes() / STRIDE_BYTES) as f64);
        each.fold(BUILD_NS, f64::max).min(MOST_BUILD_NS)
    }

    fn affordable(&self, sizes: &[usize], left_ns: f64) -> bool {
        let build_ns = self.build_ns();
        let more: f64 = sizes.iter().map(|s| expected_ns(s / STRIDE_BYTES, build_ns)).sum();
        let there: f64 = self.cells.iter().map(|c| c.next_ns(build_ns)).sum();
        (more + there) * LEAST_ROUNDS <= left_ns
    }
}

impl Set for Ladder<'_> {
    fn count(&self) -> usize {
        self.cells.len()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        &mut self.cells[index]
    }

    /// After the first looks every fourth round is one of all cells; the others are of those that figures hang on.
    fn wants(&mut self, index: usize, _enough: bool) -> bool {
        let is_whole = self.wanting.is_empty() || self.round_ends_ns.len().is_multiple_of(WHOLE_EVERY);
        self.wanting.contains(&index) || (is_whole && self.cells[index].visits < self.rounds)
    }

    fn propose(&mut self, outlook: &Outlook) {
        let ends = self.cells.iter().filter_map(|c| c.cell.bench.row.pairs.last());
        self.round_ends_ns.push(ends.map(|p| p.at_ns).fold(0.0, f64::max));
        let rows = self.rows(outlook.core_width);
        let curves = Curves::of(&rows);
        let found = Refinement::of(&curves, self.request.most_bytes);
        match self.round_ends_ns.len() {
            // The second round may still correct what the first one found.
            1 | 2 => self.refine(&found),
            3 => self.complete(outlook.left_ns as f64),
            _ if curves.whole_width.is_some() => {
                self.wanting = found.wanting(&curves);
                let there = self.cells.len();
                self.curve(self.grounds[0], ONE_PER_PAGE, &found.pages);
                self.curve(self.grounds[0], PAGE_LOCAL, &found.near_boundaries);
                self.wanting.extend(there..self.cells.len());
            }
            _ => {}
        }
    }

    fn finish(self: Box<Self>) -> Finished {
        let mut seen = self.rows(None);
        let last_ns = seen.rows.iter().filter_map(|r| r.pairs.last()).map(|p| p.at_ns).fold(0.0, f64::max);
        let mut ends = self.round_ends_ns;
        ends.retain(|end| *end < last_ns);
        ends.push(last_ns);
        let mut facts = Facts::default();
        facts.set(&ROUND_ENDS_NS, ends);
        seen.facts.extend(facts.clone());
        facts.set(&DETECTED_CACHES, DetectedCaches::of(&Curves::of(&seen)));
        let rows = self.cells.into_iter().flat_map(|c| Box::new(c).into_rows()).collect();
        Finished { rows, facts }
    }
}

/// Length of a short batch of a row, ns, and pairs per visit.
fn visits(row: &Row) -> (f64, usize) {
    let bytes = row.int("working_set_bytes").unwrap_or(0);
    if row.text("order") == GLOBAL {
        return refine::price_visits(bytes as usize);
    }
    (refine::BATCH_NS, if bytes <= SMALL_BYTES { MORE_PAIRS } else { PAIRS })
}
