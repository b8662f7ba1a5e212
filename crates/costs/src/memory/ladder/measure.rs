//! The rounds: a first look at the staircase, then what it makes worth a closer look, then everything again in other orders
//! until the figures are good or the time is over.

use machmeter_engine::budget::stop_requested;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_engine::{ProbeError, sampling::HostTiming, sampling::Sampler};
use machmeter_stats::random::Random;
use machmeter_sys::facts;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::pages::{Backing, HUGE_PAGE_BYTES, Pages};
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::tree::Tree;

use super::super::Params;
use super::chase::{self, GLOBAL, Ground, ONE_PER_PAGE, PAGE_LOCAL, SMALL, STRIDE_BYTES, STRIDED};
use super::curves::Curves;
use super::detect::DetectedCaches;
use super::plan::{GRANTED, Limit, ReportedCaches, Request};
use super::{closer, plan};
use machmeter_engine::part::At;

/// Pairs per visit of large working sets, whose chains take longer to build than to walk.
const PAIRS: usize = 3;
/// Pairs per visit of small working sets.
const MORE_PAIRS: usize = 6;
/// Largest of the small working sets, bytes.
const SMALL_BYTES: i64 = 2 << 20;
/// Rounds after which figures are good enough.
const MOST_ROUNDS: usize = 6;
/// Rounds that what is added later gets at least, or it is not begun.
const LEAST_ROUNDS: f64 = 3.0;
/// Share of the time that bringing in the memory of one page size may take.
const TOUCH_SHARE: f64 = 0.12;
/// Memory brought in between two looks at the time, bytes.
const TOUCH_BYTES: usize = 4 * HUGE_PAGE_BYTES;
/// Times below which the plan is the short one, ns.
const SHORT_NS: u64 = 10_000_000_000;
/// Working sets per octave of the full plan.
const PER_OCTAVE: u32 = 8;
/// Share of the time that is kept for what was seldom seen alone on the core, and of that for one visit, at most.
const AGAIN: f64 = 0.3;
const ONE_VISIT: f64 = 0.25;
/// Working sets per octave of the random order, the curve that is shown first, at least.
const RANDOM_PER_OCTAVE: u32 = 2;
/// Working sets per octave of the strided order: it shows what prefetchers make of the levels, not where they end.
const STRIDED_PER_OCTAVE: u32 = 1;
/// Visits between two looks at the clock of the core.
const CLOCK_EVERY: usize = 16;
/// Kept at the end for the visit that is under way, ns.
const TAIL_NS: u64 = 20_000_000;

/// Measures the ladder.
///
/// # Errors
/// A wrong request; too little memory.
pub(super) fn measure(at: &mut At<'_, '_>, params: &Params) -> Result<Vec<Row>, ProbeError> {
    let start_ns = monotonic_ns();
    let reported = ReportedCaches::of(&at.host.topology, at.host.cpus.first().unwrap_or(0));
    let left = MemoryLeft::of_this_process(&Tree::host()).map_err(ProbeError::Cannot)?;
    let mut request = Request::new(params, &reported, left.available_bytes)?;
    reported.to_facts(at.facts);
    let hypervisor = facts::capture().text("virt.hypervisor").unwrap_or("unknown").to_owned();
    tell(at, "hypervisor", hypervisor);
    let touch_ns = (at.left_ns() as f64 * TOUCH_SHARE) as u64;
    let full = at.left_ns() >= SHORT_NS;

    let small = if request.pages.small {
        let pages = Pages::new(request.most_bytes, Backing::Small);
        let pages = pages.map_err(|e| ProbeError::Cannot(e.to_string()))?;
        let bytes = touch(&pages, touch_ns, at.host.seed);
        if bytes < request.most_bytes {
            (request.most_bytes, request.limit) = (bytes, Limit::Time);
        }
        Some(pages)
    } else {
        None
    };
    let (huge, huge_bytes) = huge(at, &mut request, touch_ns)?;
    tell(at, "most_bytes", request.most_bytes.to_string());
    tell(at, "limit", request.limit.name().to_owned());
    let mut grounds: Vec<Ground<'_>> = Vec::new();
    grounds.extend(small.as_ref().and_then(|p| ground(p, request.most_bytes)));
    grounds.extend(huge.as_ref().and_then(|p| ground(p, huge_bytes)));
    if grounds.is_empty() {
        return Err(ProbeError::Cannot("no memory of the pages asked for".to_owned()));
    }
    let until_ns = at.until_ns.saturating_sub(TAIL_NS);
    let mut ladder = Ladder {
        sampler: at.sampler,
        random: Random::new(at.host.seed ^ 0x6c61_6464_6572),
        tick_hz: at.host.rate.hz(),
        step_ticks: at.host.clock.step_ticks(),
        facts: at.facts.clone(),
        until_ns,
        benches: Vec::new(),
        visit_ns: Vec::new(),
        round_ends_ns: Vec::new(),
        most_bytes: request.most_bytes,
        build_ns: 20.0,
    };
    ladder.run(&grounds, &request, full);
    let ends: Vec<String> = ladder.round_ends_ns.iter().map(|ns| format!("{ns:.0}")).collect();
    let rows: Vec<Row> = ladder.benches.into_iter().map(|b| b.row).collect();
    tell(at, "rounds_ns", ends.join(","));
    let mut seen = Rows {
        tick_hz: at.host.rate.hz(),
        step_ticks: at.host.clock.step_ticks(),
        rows: rows.clone(),
        facts: at.facts.clone(),
    };
    seen.tell_width();
    DetectedCaches::of(&Curves::of(&seen)).to_facts(at.facts);
    tell(at, "spent_ns", monotonic_ns().saturating_sub(start_ns).to_string());
    Ok(rows)
}

fn ground(pages: &Pages, bytes: usize) -> Option<Ground<'_>> {
    Some(Ground { extent: pages.extent().part(0, bytes)?, backing: pages.backing() })
}

fn tell(at: &mut At<'_, '_>, name: &str, text: String) {
    at.facts.insert(format!("ladder.{name}"), text);
}

/// Brings memory in until the time is over; returns how much, bytes. Pages in a random order, since the system hands out neighbours one
/// after the other while it has them: a cache would hold more of a freshly started machine's pages than of another's, and a
/// translation buffer that joins neighbours would look larger. Huge pages are neighbours inside whatever their order.
fn touch(pages: &Pages, ns: u64, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let until_ns = monotonic_ns() + ns;
    let all = pages.extent();
    let mut done = 0;
    while done < all.bytes() && (done < TOUCH_BYTES || monotonic_ns() < until_ns) && !stop_requested() {
        let bytes = TOUCH_BYTES.min(all.bytes() - done);
        let mut order: Vec<usize> = (done..done + bytes).step_by(chase::PAGE_BYTES).collect();
        random.shuffle(&mut order);
        for page in order.into_iter().filter_map(|at| all.part(at, chase::PAGE_BYTES.min(all.bytes() - at))) {
            page.touch();
        }
        done += bytes;
    }
    done
}

/// Huge pages where they are wanted, with what was granted told as facts.
fn huge(
    at: &mut At<'_, '_>,
    request: &mut Request,
    touch_ns: u64,
) -> Result<(Option<Pages>, usize), ProbeError> {
    if !request.pages.huge || request.most_bytes < 2 * HUGE_PAGE_BYTES {
        return Ok((None, 0));
    }
    let pages = match Pages::new(request.most_bytes, Backing::Huge) {
        Ok(pages) => pages,
        Err(e) if request.pages.small => {
            tell(at, "huge_refused", e.to_string());
            return Ok((None, 0));
        }
        Err(e) => return Err(ProbeError::Cannot(e.to_string())),
    };
    let bytes = touch(&pages, touch_ns, at.host.seed);
    if !request.pages.small && bytes < request.most_bytes {
        (request.most_bytes, request.limit) = (bytes, Limit::Time);
    }
    match pages.huge_bytes() {
        Ok(granted) => {
            tell(at, "huge_asked_bytes", bytes.to_string());
            tell(at, "huge_granted_bytes", granted.min(bytes as u64).to_string());
            if (granted as f64) < GRANTED * bytes as f64 {
                let why = format!("huge pages were asked for {bytes} bytes and granted for {granted}");
                return if request.pages.small { Ok((None, 0)) } else { Err(ProbeError::Cannot(why)) };
            }
        }
        Err(e) => tell(at, "huge_refused", e.to_string()),
    }
    Ok((Some(pages), bytes))
}

struct Ladder<'a, 's> {
    sampler: &'s mut Sampler<HostTiming>,
    random: Random,
    tick_hz: f64,
    step_ticks: u64,
    facts: std::collections::BTreeMap<String, String>,
    until_ns: u64,
    benches: Vec<Bench<'a>>,
    /// Longest visit of each bench, ns; 0 before the first.
    visit_ns: Vec<u64>,
    /// Time of the last pair of each round, on the clock of the pairs.
    round_ends_ns: Vec<f64>,
    most_bytes: usize,
    /// What a node of a large chain takes to link, ns.
    build_ns: f64,
}

impl<'a> Ladder<'a, '_> {
    fn run(&mut self, grounds: &[Ground<'a>], request: &Request, full: bool) {
        let Some(first) = grounds.first().copied() else { return };
        let (now_ns, end_ns) = (monotonic_ns(), self.until_ns);
        self.until_ns = end_ns - (end_ns.saturating_sub(now_ns) as f64 * AGAIN) as u64;
        self.rounds(grounds, first, request, full);
        self.until_ns = end_ns;
        self.again(first);
        while self.round_ends_ns.len() < MOST_ROUNDS && self.round() {}
    }

    fn rounds(&mut self, grounds: &[Ground<'a>], first: Ground<'a>, request: &Request, full: bool) {
        let first_look = match request.per_octave {
            Some(n) => plan::sizes(n, self.most_bytes),
            None => plan::first_look(self.most_bytes),
        };
        if let Ok(adds) = chase::adds(first.extent) {
            self.add(adds);
        }
        self.curve(first, PAGE_LOCAL, &first_look);
        let pages: Vec<usize> = closer::PAGE_COUNTS.iter().map(|n| n * chase::PAGE_BYTES).collect();
        self.curve(first, ONE_PER_PAGE, &pages);
        self.round();
        // What the first look found, looked at more closely; the second round may still correct it.
        self.look_closer(grounds, full);
        self.round();
        self.look_closer(grounds, full);
        self.round();
        self.curve(first, GLOBAL, &plan::sizes(RANDOM_PER_OCTAVE, self.most_bytes));
        let strided = plan::sizes(STRIDED_PER_OCTAVE, self.most_bytes);
        let (small, large) = strided.split_at(strided.partition_point(|bytes| *bytes as i64 <= SMALL_BYTES));
        self.curve(first, STRIDED, small);
        if self.affordable(large) {
            self.curve(first, STRIDED, large);
        }
        if full {
            self.widen(grounds, request.per_octave.unwrap_or(PER_OCTAVE), request.surface);
        } else if request.surface {
            self.surface(first);
        }
        while self.round_ends_ns.len() < MOST_ROUNDS && self.round() {}
    }

    fn add(&mut self, bench: Bench<'a>) {
        let row = &bench.row;
        if !self.benches.iter().any(|b| b.row.operation == row.operation && b.row.params == row.params) {
            self.benches.push(bench);
            self.visit_ns.push(0);
        }
    }

    fn seed(&mut self) -> u64 {
        self.random.bits()
    }

    fn curve(&mut self, ground: Ground<'a>, order: &str, sizes: &[usize]) {
        for size in sizes.iter().filter(|s| **s <= ground.extent.bytes()) {
            let seed = self.seed();
            self.add(chase::chase(ground, order, *size, STRIDE_BYTES, seed));
        }
    }

    /// Adds what the rows so far make worth measuring: sizes near boundaries, one working set inside each level for its
    /// price, the line, the reach of the first translation buffer.
    fn look_closer(&mut self, grounds: &[Ground<'a>], full: bool) {
        let rows = self.rows();
        let curves = Curves::of(&rows);
        let found = closer::Closer::of(&curves, self.most_bytes);
        let Some(first) = grounds.first().copied() else { return };
        self.curve(first, PAGE_LOCAL, &found.near_boundaries);
        self.curve(first, ONE_PER_PAGE, &found.pages);
        self.curve(first, STRIDED, &found.inside_levels);
        for ground in grounds {
            self.curve(*ground, GLOBAL, &found.inside_levels);
            if ground.pages() != SMALL {
                let beyond: Vec<usize> =
                    closer::BEYOND_REACH.iter().map(|factor| factor * found.first_reach_bytes).collect();
                self.curve(*ground, ONE_PER_PAGE, &beyond);
                self.curve(
                    *ground,
                    PAGE_LOCAL,
                    &found.inside_levels[found.inside_levels.len().saturating_sub(1)..],
                );
            } else if grounds.len() > 1 {
                let beyond: Vec<usize> =
                    closer::BEYOND_REACH.iter().map(|factor| factor * found.first_reach_bytes).collect();
                self.curve(*ground, ONE_PER_PAGE, &beyond);
            }
        }
        if self.benches.iter().any(|b| b.row.operation == "second") {
            return;
        }
        for offset in closer::offsets(full) {
            let seed = self.seed();
            self.add(chase::second(first, found.line_set_bytes.min(first.extent.bytes()), *offset, seed));
        }
        if full && found.first_cache_bytes > 0 {
            for lines in closer::CONFLICTS {
                let seed = self.seed();
                if lines * found.first_cache_bytes <= first.extent.bytes() {
                    self.add(chase::conflict(first, *lines, found.first_cache_bytes, seed));
                }
            }
        }
    }

    fn rows(&self) -> Rows {
        let mut rows = Rows {
            tick_hz: self.tick_hz,
            step_ticks: self.step_ticks,
            rows: self.benches.iter().map(|b| b.row.clone()).collect(),
            facts: self.facts.clone(),
        };
        rows.tell_width();
        rows
    }

    /// Visits once more what figures hang on, until nobody else used the core often enough meanwhile, or the time is over.
    fn again(&mut self, ground: Ground<'a>) {
        let mut more = true;
        while more && !stop_requested() && monotonic_ns() < self.until_ns {
            let rows = self.rows();
            let curves = Curves::of(&rows);
            if !curves.looked() {
                return;
            }
            let found = closer::Closer::of(&curves, self.most_bytes);
            let mut wanting = found.wanting(&curves);
            let there = self.benches.len();
            self.curve(ground, ONE_PER_PAGE, &found.pages);
            self.curve(ground, PAGE_LOCAL, &found.near_boundaries);
            wanting.extend(there..self.benches.len());
            wanting.sort_by(|a, b| self.next_visit_ns(*a).total_cmp(&self.next_visit_ns(*b)));
            more = false;
            for i in wanting {
                let left_ns = self.until_ns.saturating_sub(monotonic_ns()) as f64;
                if self.next_visit_ns(i) < ONE_VISIT * left_ns && !stop_requested() {
                    self.visit(i);
                    more = true;
                }
            }
        }
        self.end_round();
    }

    /// The last pair so far belongs to the last round.
    fn end_round(&mut self) {
        let last = |b: &Bench<'_>| b.row.pairs.last().map_or(0.0, |p| p.at_ns);
        let last_ns = self.benches.iter().map(last).fold(0.0, f64::max);
        if let Some(end) = self.round_ends_ns.last_mut() {
            *end = last_ns.max(*end);
        }
    }

    /// Adds the curves of the full plan, as far as there is time for enough rounds of them.
    fn widen(&mut self, grounds: &[Ground<'a>], per_octave: u32, surface: bool) {
        let Some(first) = grounds.first().copied() else { return };
        for chains in closer::CHAINS {
            let seed = self.seed();
            if self.affordable(&[first.extent.bytes()]) {
                self.add(chase::parallel(first, *chains, first.extent.bytes(), seed));
            }
        }
        if surface {
            self.surface(first);
        }
        for finer in [1, 2, per_octave.min(4), per_octave] {
            let sizes = plan::sizes(finer, self.most_bytes);
            for ground in grounds {
                for order in [GLOBAL, PAGE_LOCAL, ONE_PER_PAGE] {
                    if self.affordable(&sizes) {
                        self.curve(*ground, order, &sizes);
                    }
                }
            }
        }
    }

    fn surface(&mut self, ground: Ground<'a>) {
        for stride in closer::STRIDES {
            for size in plan::sizes(1, self.most_bytes) {
                let seed = self.seed();
                if size >= 2 * stride && self.affordable(&[size]) {
                    self.add(chase::chase(ground, GLOBAL, size, *stride, seed));
                }
            }
        }
    }

    /// Whether a curve over these sizes can be visited often enough beside what there is.
    fn affordable(&self, sizes: &[usize]) -> bool {
        let more: f64 = sizes.iter().map(|s| self.expected_ns(s / STRIDE_BYTES)).sum();
        let there: f64 = (0..self.benches.len()).map(|i| self.next_visit_ns(i)).sum();
        (more + there) * LEAST_ROUNDS <= self.until_ns.saturating_sub(monotonic_ns()) as f64
    }

    fn expected_ns(&self, nodes: usize) -> f64 {
        // Calibrating, warming, and the pairs of one short and one long batch.
        nodes as f64 * self.build_ns + closer::BATCH_NS * (3 * MORE_PAIRS + 2) as f64
    }

    fn next_visit_ns(&self, i: usize) -> f64 {
        if self.visit_ns[i] > 0 {
            return self.visit_ns[i] as f64;
        }
        let bytes = self.benches[i].row.int("working_set_bytes").unwrap_or(0).max(0) as usize;
        self.expected_ns(bytes / STRIDE_BYTES)
    }

    /// One round over all benches; false when the time is over. Those visited least come first, in random order
    /// among themselves, so that a round cut short leaves no holes. What would not end in time is passed over.
    fn round(&mut self) -> bool {
        let mut order: Vec<usize> = (0..self.benches.len()).collect();
        self.random.shuffle(&mut order);
        order.sort_by_key(|i| {
            let row = &self.benches[*i].row;
            row.pairs.len().div_ceil(visits(row).1)
        });
        let clock = self.pace(closer::BATCH_NS, PAIRS);
        let mut visited = 0;
        for i in order {
            let now_ns = monotonic_ns();
            if stop_requested() || now_ns >= self.until_ns {
                break;
            }
            if now_ns as f64 + self.next_visit_ns(i) > self.until_ns as f64 {
                continue;
            }
            if visited % CLOCK_EVERY == 0
                && let Some(adds) = self.benches.iter_mut().find(|b| b.row.operation == "adds")
            {
                self.sampler.visit(adds, &clock);
            }
            self.visit(i);
            visited += 1;
        }
        if visited > 0 {
            self.round_ends_ns.push(0.0);
            self.end_round();
        }
        visited > 0 && !stop_requested() && monotonic_ns() < self.until_ns
    }

    /// The visit of a bench, with its usual number of pairs.
    fn visit(&mut self, i: usize) {
        let now_ns = monotonic_ns();
        let (batch_ns, pairs) = visits(&self.benches[i].row);
        let pace = self.pace(batch_ns, pairs);
        self.sampler.visit(&mut self.benches[i], &pace);
        let took_ns = monotonic_ns().saturating_sub(now_ns);
        self.visit_ns[i] = self.visit_ns[i].max(took_ns);
        let bytes = self.benches[i].row.int("working_set_bytes").unwrap_or(0);
        if bytes >= 16 << 20 {
            let each = took_ns as f64 / (bytes as usize / STRIDE_BYTES) as f64;
            self.build_ns = self.build_ns.max(each.min(500.0));
        }
    }

    fn pace(&self, batch_ns: f64, pairs_per_visit: usize) -> Pace {
        Pace { settle_ns: 0, batch_ns, pairs_per_visit, rounds: 1, until_ns: self.until_ns }
    }
}

/// Length of a short batch of a row, ns, and pairs per visit.
fn visits(row: &Row) -> (f64, usize) {
    let bytes = row.int("working_set_bytes");
    if row.text("order") == GLOBAL {
        return closer::price_visits(bytes.and_then(|b| usize::try_from(b).ok()).unwrap_or(0));
    }
    (closer::BATCH_NS, if bytes.is_none_or(|bytes| bytes <= SMALL_BYTES) { MORE_PAIRS } else { PAIRS })
}
