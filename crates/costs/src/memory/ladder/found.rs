//! What the rows show, before it is worded: levels with names, steps, shares.

use machmeter_engine::cost::estimate::FEWEST;
use machmeter_engine::cost::{Cost, Row};
use machmeter_stats::quantile::median_of;

use super::chase::{GLOBAL, HUGE, ONE_PER_PAGE, PAGE_BYTES, PAGE_LOCAL, SMALL, STRIDE_BYTES};
use super::claims::{Claim, Claims};
use super::closer::{REACH_BRACKET, REACH_RANGE, REACH_RATIO, inside_level};
use super::hierarchy::{Boundary, Hierarchy, Point, caches, detect, looks_like, lowest};
use super::reading::Reading;
use super::steps::{LOW, MIDDLE, Step, step};

/// Name of memory as a level.
pub(super) const MEMORY: &str = "DRAM";
/// A load that costs more on the page-local curve comes from memory: no cache in use is that slow.
const MEMORY_NS: f64 = 25.0;
/// Largest working set that reaches memory whatever the curve looks like, where the system claims no cache.
const MEMORY_BYTES: f64 = 67_108_864.0;
/// Least step of the cost at the end of a line.
const LINE_RATIO: f64 = 1.12;
/// Least step of the cost at the last way.
const WAYS_RATIO: f64 = 1.4;

/// A cache that was found.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// `L1`, `L2`, `L3`, or `LLC` for the last one beyond the second.
    pub(super) name: String,
    /// Where it passes into the next level.
    pub(super) boundary: Boundary,
    /// Capacity that this is most likely a measurement of, bytes.
    pub(super) looks_like: f64,
    /// What the system claims for it.
    pub(super) claim: Option<Claim>,
    /// Whether it is the cache before memory and not one of the first two: others may use it.
    pub(super) shared: bool,
}

/// A level with its price.
#[derive(Debug, Clone)]
pub(super) struct Priced {
    /// Name of the level; `DRAM` for memory.
    pub(super) level: String,
    /// Cost of a working set inside it.
    pub(super) cost: Cost,
}

/// All that was found.
pub(super) struct Found<'r> {
    /// Levels of the page-local curve.
    pub(super) hierarchy: Hierarchy,
    /// Caches, nearest first.
    pub(super) caches: Vec<Cache>,
    /// Name of each level.
    pub(super) names: Vec<String>,
    /// Whether the last level is memory.
    pub(super) memory_reached: bool,
    /// Pages on which sizes were detected.
    pub(super) first_pages: &'static str,
    /// Cost of one dependent addition: a cycle.
    pub(super) cycle: Option<Cost>,
    /// Largest relative change of the clock between rounds.
    pub(super) clock_change: Option<f64>,
    /// The end of the line; `next` is its size.
    pub(super) line: Option<Step>,
    /// The last way of the first cache.
    pub(super) ways: Option<Step>,
    /// Reach of the first buffer of translations, bytes.
    pub(super) first_reach: Option<Step>,
    /// Whether nobody else used the core when that was seen.
    pub(super) first_reach_alone: bool,
    /// Reach of the second one as a range, bytes.
    pub(super) second_reach: Option<(f64, f64)>,
    /// Share of the memory asked for in huge pages that was granted.
    pub(super) huge_granted: Option<f64>,
    /// Share of the cost of translations that huge pages take away.
    pub(super) huge_effective: Option<(f64, u64)>,
    /// Largest working set, bytes.
    pub(super) most_bytes: f64,
    reading: &'r Reading<'r>,
}

impl<'r> Found<'r> {
    /// Reads the rows.
    pub(super) fn of(reading: &'r Reading<'r>, seed: u64) -> Self {
        let claims = Claims::read(reading.facts());
        let first_pages = reading.first_pages();
        let points = reading.points(PAGE_LOCAL, first_pages);
        let most_bytes = points.last().map_or(0.0, |p| p.size);
        let mut hierarchy = caches(&points, seed);
        // Memory has no plateaus: what differs there are open rows, channels and neighbours.
        while let [.., before, _] = hierarchy.levels[..]
            && before.cost_ns >= MEMORY_NS
        {
            hierarchy.levels.pop();
            hierarchy.boundaries.pop();
        }
        let beyond = claims.last_bytes().map_or(MEMORY_BYTES, |last| 2.0 * last as f64);
        let slow = hierarchy.levels.last().is_some_and(|l| l.cost_ns >= MEMORY_NS);
        let memory_reached = hierarchy.levels.len() > 1 && (slow || most_bytes >= beyond);
        let names = names(hierarchy.levels.len(), memory_reached);
        let last = names.len().saturating_sub(1 + usize::from(memory_reached));
        let caches = hierarchy
            .boundaries
            .iter()
            .zip(&names)
            .enumerate()
            .map(|(i, (b, name))| {
                let shared = i == last && i >= 2;
                let claim = if shared { claims.0.last().copied() } else { claims.0.get(i).copied() };
                Cache {
                    name: name.clone(),
                    boundary: b.clone(),
                    looks_like: looks_like(b.size),
                    claim,
                    shared,
                }
            })
            .collect();
        let adds = reading.rows().find(|r| r.operation == "adds");
        let mut found = Self {
            hierarchy,
            caches,
            names,
            memory_reached,
            first_pages,
            cycle: adds.map(|r| reading.cost(r)),
            clock_change: adds.and_then(|r| change(&reading.costs_ns(r))),
            line: line(reading),
            ways: ways(reading),
            first_reach: None,
            first_reach_alone: false,
            second_reach: None,
            huge_granted: reading
                .number("huge_asked_bytes")
                .filter(|asked| *asked > 0.0)
                .and_then(|asked| Some((reading.number("huge_granted_bytes")? / asked).clamp(0.0, 1.0))),
            huge_effective: None,
            most_bytes,
            reading,
        };
        if let Some((step, alone)) = found.first_reach() {
            (found.first_reach, found.first_reach_alone) = (Some(step), alone);
        }
        found.second_reach = found.second_reach(seed);
        found.huge_effective = found.huge_effective();
        found
    }

    /// Nearest step of the one-line-per-page curve, while its lines fit in half of the first cache; and whether it was seen while nobody
    /// else used the core. A neighbour takes some of the buffer, and what he takes looks like a smaller one: beside him the step lies
    /// somewhere from where most pairs say to where none is quick any more.
    fn first_reach(&self) -> Option<(Step, bool)> {
        let lines = self.lines_of(0)? / 2.0;
        let near = |mut points: Vec<Point>, least: usize| {
            points.retain(|p| p.size / PAGE_BYTES as f64 <= lines && p.costs_ns.len() >= least);
            points
        };
        let narrow = |s: &Step| s.next / s.last < REACH_BRACKET;
        let quiet = near(self.reading.quiet_points(ONE_PER_PAGE, self.first_pages), 0);
        let quiet = step(&quiet, REACH_RATIO, MIDDLE).filter(narrow);
        let exact = |s: &&Step| s.next - s.last <= PAGE_BYTES as f64;
        if let Some(s) = quiet.as_ref().filter(exact) {
            return Some((*s, true));
        }
        let points = near(self.reading.points(ONE_PER_PAGE, self.first_pages), FEWEST / 2);
        let enough = near(points.clone(), FEWEST);
        let most = [&enough, &points].into_iter().find_map(|p| step(p, REACH_RATIO, LOW).filter(narrow));
        match (quiet, most) {
            (Some(q), Some(m)) if (q.last..q.next).contains(&m.last) => {
                Some((Step { last: m.last, ..q }, false))
            }
            (Some(q), _) => Some((q, true)),
            (None, Some(m)) => {
                let dear_ns = (m.before_ns * m.after_ns).sqrt();
                let quick =
                    |p: &&Point| lowest(p.costs_ns.iter().map(|c| c.1)).is_some_and(|ns| ns < dear_ns);
                let last_quick = points.iter().filter(quick).map(|p| p.size).fold(m.last, f64::max);
                let next = points.iter().map(|p| p.size).find(|size| *size > last_quick)?.max(m.next);
                (next / m.last < REACH_RANGE).then_some((Step { next, ..m }, false))
            }
            (None, None) => None,
        }
    }

    /// Lines that a cache holds.
    fn lines_of(&self, cache: usize) -> Option<f64> {
        let line_bytes = self.line.as_ref().map_or(64.0, |l| l.next);
        Some(self.caches.get(cache)?.looks_like / line_bytes)
    }

    /// The first further rise of the one-line-per-page curve that no cache explains: from the end of the plateau before it
    /// to where it is crossed.
    fn second_reach(&self, seed: u64) -> Option<(f64, f64)> {
        let first = self.first_reach.as_ref()?;
        let found = detect(&self.reading.points(ONE_PER_PAGE, self.first_pages), seed);
        let page_bytes = PAGE_BYTES as f64;
        let by_cache = |bytes: f64| {
            (0..self.caches.len()).filter_map(|i| self.lines_of(i)).any(|lines| {
                let ratio = bytes / page_bytes / lines;
                (0.6..1.7).contains(&ratio)
            })
        };
        let rises = found.boundaries.iter().zip(&found.levels);
        rises
            .filter(|(b, level)| level.last > 2.0 * first.last && !by_cache(b.size))
            .map(|(b, level)| (level.last.min(b.size), b.size))
            .next()
    }

    fn huge_effective(&self) -> Option<(f64, u64)> {
        let reach = self.first_reach.as_ref()?;
        let beyond = |pages: &str| {
            let mut points = self.reading.points(ONE_PER_PAGE, pages);
            points.retain(|p| (1.5 * reach.last..3.0 * reach.last).contains(&p.size));
            points
        };
        let (small, huge) = (beyond(SMALL), beyond(HUGE));
        let least_ns = |p: &Point| lowest(p.costs_ns.iter().map(|c| c.1));
        // Where both were measured: any of these working sets tells.
        let pairs = huge.iter().filter_map(|h| {
            let s = small.iter().find(|s| s.size == h.size)?;
            let missed_ns = least_ns(s)? - reach.before_ns;
            let share = ((least_ns(s)? - least_ns(h)?) / missed_ns).clamp(0.0, 1.0);
            (missed_ns > 0.1 * reach.before_ns)
                .then(|| (share, s.costs_ns.len().min(h.costs_ns.len()) as u64))
        });
        pairs.max_by_key(|(_, n)| *n)
    }

    /// The price of each level on a curve: a row inside the level, memory at the largest working set.
    pub(super) fn prices(&self, order: &str, pages: &str) -> Vec<Priced> {
        let last = self.names.len().saturating_sub(1);
        let inside = |i: usize, bytes: f64| {
            let from = i.checked_sub(1).map_or(0.0, |b| self.hierarchy.boundaries[b].size * 1.5);
            let to = self.hierarchy.boundaries.get(i).map_or(f64::INFINITY, |b| b.size * 0.75);
            (from..to).contains(&bytes)
        };
        (0..self.names.len())
            .filter_map(|i| {
                let rows = self.reading.rows().filter(|r| {
                    r.operation == "chase"
                        && r.text("order") == order
                        && r.text("pages") == pages
                        && r.int("stride_bytes") == Some(STRIDE_BYTES as i64)
                        && inside(i, r.int("working_set_bytes").unwrap_or(0) as f64)
                });
                let priced = rows.map(|row| (row, self.reading.cost(row)));
                let priced = priced.filter(|(_, cost)| cost.known().is_some());
                let bytes = |row: &Row| row.int("working_set_bytes").unwrap_or(0) as f64;
                let asked = self.asked(i);
                // The row nearest to what was asked for; in memory the largest.
                let (_, cost) = priced.min_by(|a, b| {
                    let far = |row: &Row| {
                        if i == last { -bytes(row) } else { (bytes(row) / asked).ln().abs() }
                    };
                    far(a.0).total_cmp(&far(b.0))
                })?;
                Some(Priced { level: self.names[i].clone(), cost })
            })
            .collect()
    }

    /// The working set of which a level's price was asked for, bytes: such rows are visited until they were seen alone on the core.
    fn asked(&self, level: usize) -> f64 {
        let edge = |i: usize| self.hierarchy.boundaries.get(i).map(|b| looks_like(b.size));
        let before = level.checked_sub(1).and_then(edge).unwrap_or(0.0);
        edge(level).map_or(self.most_bytes, |capacity| inside_level(before, capacity) as f64)
    }

    /// Prices of the levels as programs pay them: random order over small pages where measured.
    pub(super) fn usual_prices(&self) -> Vec<Priced> {
        self.prices(GLOBAL, self.first_pages)
    }
}

/// Names of so many levels.
fn names(levels: usize, memory_reached: bool) -> Vec<String> {
    let caches = levels - usize::from(memory_reached && levels > 0);
    let cache = |i: usize| {
        if i + 1 == caches && i >= 2 && memory_reached { "LLC".to_owned() } else { format!("L{}", i + 1) }
    };
    (0..caches).map(cache).chain(memory_reached.then(|| MEMORY.to_owned())).collect()
}

/// The step of the rows over one of their conditions: by pairs alone on the core where they show one that is good enough, else by all.
/// What a neighbour uses of a cache or buffer makes steps seem to come too early.
fn quiet_step(
    reading: &Reading<'_>,
    over: &str,
    which: impl Fn(&Row) -> bool,
    least_ratio: f64,
    good: impl Fn(&Step) -> bool,
) -> Option<Step> {
    step(&reading.quiet_curve(over, &which), least_ratio, MIDDLE)
        .filter(&good)
        .or_else(|| step(&reading.curve(over, &which), least_ratio, LOW).filter(&good))
}

/// The last of the lines that fit into one set. Only neighbouring numbers say how many.
fn ways(reading: &Reading<'_>) -> Option<Step> {
    let is = |r: &Row| r.operation == "conflict" && r.pairs.len() >= FEWEST;
    quiet_step(reading, "lines", is, WAYS_RATIO, |s| s.next - s.last < 1.5)
}

/// The line ends where the second access of a block begins to cost more.
fn line(reading: &Reading<'_>) -> Option<Step> {
    // Of several sets that were tried, the one with the most pairs was settled on.
    let mut sets: Vec<i64> = reading
        .rows()
        .filter(|r| r.operation == "second")
        .filter_map(|r| r.int("working_set_bytes"))
        .collect();
    sets.sort_unstable();
    sets.dedup();
    let curves = sets.into_iter().filter_map(|set| {
        let is = |r: &Row| r.operation == "second" && r.int("working_set_bytes") == Some(set);
        // An offset of which too little is known must not hide the end.
        let offsets: Vec<f64> = reading.curve("offset_bytes", is).iter().map(|p| p.size).collect();
        let neighbours = |s: &Step| !offsets.iter().any(|o| s.last < *o && *o < s.next);
        quiet_step(reading, "offset_bytes", is, LINE_RATIO, |s| s.next / s.last <= 2.0 && neighbours(s))
    });
    // A line is a power of two. A step between others was seen too early, by what disturbs, and never too late.
    let line = |s: Step| Step { next: (s.next as u64).next_power_of_two() as f64, ..s };
    curves.max_by_key(|s| s.n).map(line)
}

/// Largest relative difference between the medians of two rounds.
fn change(costs_ns: &[(usize, f64)]) -> Option<f64> {
    let rounds = costs_ns.iter().map(|c| c.0).max()? + 1;
    let medians: Vec<f64> = (0..rounds)
        .filter_map(|round| {
            let of: Vec<f64> = costs_ns.iter().filter(|c| c.0 == round).map(|c| c.1).collect();
            median_of(&of)
        })
        .collect();
    let least = medians.iter().copied().min_by(f64::total_cmp)?;
    let most = medians.iter().copied().max_by(f64::total_cmp)?;
    (least > 0.0).then(|| most / least - 1.0)
}
