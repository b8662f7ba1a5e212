//! What the curves show, before it is worded: levels with names, steps, shares. Constants of steps are ratios of costs.

use std::collections::BTreeMap;

use machmeter_engine::cost::estimate::Known;
use machmeter_engine::cost::{Cost, Fact, Facts, Row};
use machmeter_stats::quantile::median_of;
use serde::{Deserialize, Serialize};

use super::chase::{GLOBAL, HUGE, ONE_PER_PAGE, PAGE_BYTES, PAGE_LOCAL, SMALL, STRIDE_BYTES};
use super::curves::{
    CacheEnd, Curves, DISTURBED_QUANTILE, MEMORY_BYTES, Point, QUIET_QUANTILE, Step, level_ends, step_edge,
};
use super::plan::HUGE_BYTES;
use super::refine::{REACH_BRACKET, REACH_RANGE, REACH_RATIO, inside_level};
use crate::memory::reported::{ReportedCache, ReportedCaches};

/// Pairs from which on a point has a rank interval of its median at 95 %.
const FEWEST: usize = 6;
pub(super) const MEMORY: &str = "DRAM";
/// Least step of the cost at the end of a line.
const LINE_RATIO: f64 = 1.12;
/// Least step of the cost at the last way.
const WAYS_RATIO: f64 = 1.4;

#[derive(Debug, Clone)]
pub(super) struct Cache {
    /// `L1`, `L2`, `L3`, or `LLC` for the last one beyond the second.
    pub(super) name: String,
    /// Number from the core: 0 is L1.
    pub(super) number: usize,
    /// Where it passes into the next level.
    pub(super) end: CacheEnd,
    /// Capacity that this is most likely a measurement of, bytes; for plans, not for figures.
    pub(super) nominal_bytes: f64,
    pub(super) reported: Option<ReportedCache>,
    /// Whether it is the cache before memory and not one of the first two: others may use it.
    pub(super) shared: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Priced {
    pub(super) level: String,
    pub(super) cost: Cost,
    pub(super) cycles: Option<Cost>,
}

pub(super) struct Detection<'r> {
    pub(super) caches: Vec<Cache>,
    pub(super) names: Vec<String>,
    pub(super) memory_reached: bool,
    pub(super) first_pages: &'static str,
    pub(super) cycle: Option<Cost>,
    /// Largest relative change of the clock between rounds.
    pub(super) clock_change: Option<f64>,
    /// The end of the line; `next` is its size.
    pub(super) line: Option<Step>,
    /// The last way of the first cache.
    pub(super) ways: Option<Step>,
    /// Reach of the first buffer of translations, bytes, and whether nobody else used the core when that was seen.
    pub(super) first_reach: Option<(Step, bool)>,
    /// Reach of the second one as a range, bytes.
    pub(super) second_reach: Option<(f64, f64)>,
    /// Share of the memory asked for in huge pages that was granted.
    pub(super) huge_granted: Option<f64>,
    /// What huge pages save by working set of one line per page, ascending.
    pub(super) huge_savings: Vec<Saving>,
    /// What they save of memory latency: random order over the largest working set.
    pub(super) huge_memory: Option<Saving>,
    pub(super) most_bytes: f64,
    curves: &'r Curves<'r>,
}

/// Latency over small and over huge pages at one working set, ns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Saving {
    pub(super) bytes: f64,
    pub(super) small: Known,
    pub(super) huge: Known,
}

impl Saving {
    /// Share of the latency that huge pages take away, with its least and most. Negative where they cost more.
    pub(super) fn share(&self) -> (f64, f64, f64) {
        let share = |huge_ns: f64, small_ns: f64| 1.0 - huge_ns / small_ns;
        (
            share(self.huge.value_ns, self.small.value_ns),
            share(self.huge.high_ns, self.small.low_ns),
            share(self.huge.low_ns, self.small.high_ns),
        )
    }
}

impl<'r> Detection<'r> {
    pub(super) fn of(curves: &'r Curves<'r>) -> Self {
        let first_pages = curves.first_pages();
        let most_bytes = curves.points(PAGE_LOCAL, first_pages).last().map_or(0.0, |p| p.size);
        let (caches, memory_reached) = caches(curves, most_bytes);
        let mut names: Vec<String> = caches.iter().map(|c| c.name.clone()).collect();
        let next = caches.last().map_or(1, |c| c.number + 2);
        names.push(if memory_reached { MEMORY.to_owned() } else { format!("L{next}") });
        let adds = curves.additions();
        let mut found = Self {
            caches,
            names,
            memory_reached,
            first_pages,
            cycle: adds.map(|r| curves.all.cost(r)),
            clock_change: adds.and_then(|r| change(&curves.costs_ns(r, &|_| true))),
            line: line(curves),
            ways: ways(curves),
            first_reach: None,
            second_reach: None,
            huge_granted: curves
                .all
                .facts
                .get(&HUGE_BYTES)
                .filter(|[asked, _]| *asked > 0)
                .map(|[asked, granted]| (granted as f64 / asked as f64).min(1.0)),
            huge_savings: savings(curves, ONE_PER_PAGE),
            huge_memory: None,
            most_bytes,
            curves,
        };
        found.first_reach = found.first_reach();
        found.second_reach = found.second_reach();
        // Where prices of memory are, too: clearly beyond the last cache.
        let beyond = found.caches.last().filter(|_| memory_reached).map(|c| 1.5 * c.end.all.bytes);
        let memory = |s: &Saving| beyond.is_some_and(|bytes| s.bytes >= bytes);
        found.huge_memory = savings(curves, GLOBAL).pop().filter(memory);
        found
    }

    /// Nearest step of one line per page within half the first cache, and whether seen alone on the core.
    fn first_reach(&self) -> Option<(Step, bool)> {
        let lines = self.lines_of(self.caches.first().filter(|c| c.number == 0)?) / 2.0;
        let near = |mut points: Vec<Point>, least: usize| {
            points.retain(|p| p.size / PAGE_BYTES as f64 <= lines && p.costs_ns.len() >= least);
            points
        };
        let narrow = |s: &Step| s.next / s.last < REACH_BRACKET;
        let rows = self.curves.chases(ONE_PER_PAGE, self.first_pages, STRIDE_BYTES);
        let quiet = near(self.curves.quiet_curve("working_set_bytes", &rows), 0);
        let quiet = step_edge(&quiet, REACH_RATIO, QUIET_QUANTILE).filter(narrow);
        let exact = |s: &&Step| s.next - s.last <= PAGE_BYTES as f64;
        if let Some(s) = quiet.as_ref().filter(exact) {
            return Some((*s, true));
        }
        let points = near(self.curves.curve("working_set_bytes", &rows), FEWEST / 2);
        let enough = near(points.clone(), FEWEST);
        let most = [&enough, &points]
            .into_iter()
            .find_map(|p| step_edge(p, REACH_RATIO, DISTURBED_QUANTILE).filter(narrow));
        match (quiet, most) {
            (Some(q), Some(m)) if (q.last..q.next).contains(&m.last) => {
                Some((Step { last: m.last, ..q }, false))
            }
            (Some(q), _) => Some((q, true)),
            (None, Some(m)) => {
                let dear_ns = (m.before_ns * m.after_ns).sqrt();
                let quick = |p: &&Point| p.lowest_ns().is_some_and(|ns| ns < dear_ns);
                let last_quick = points.iter().filter(quick).map(|p| p.size).fold(m.last, f64::max);
                let next = points.iter().map(|p| p.size).find(|size| *size > last_quick)?.max(m.next);
                (next / m.last < REACH_RANGE).then_some((Step { next, ..m }, false))
            }
            (None, None) => None,
        }
    }

    fn lines_of(&self, cache: &Cache) -> f64 {
        cache.nominal_bytes / self.line.as_ref().map_or(64.0, |l| l.next)
    }

    /// The first further rise of the one-line-per-page curve that no cache explains: the sizes on either side.
    fn second_reach(&self) -> Option<(f64, f64)> {
        let (first, _) = self.first_reach?;
        let by_cache = |bytes: f64| {
            self.caches.iter().any(|cache| {
                let ratio = bytes / PAGE_BYTES as f64 / self.lines_of(cache);
                (0.6..1.7).contains(&ratio)
            })
        };
        let rises = level_ends(&self.curves.points(ONE_PER_PAGE, self.first_pages));
        let mut rises = rises.into_iter().map(|r| r.all);
        let rise = rises.find(|r| r.from_bytes > 2.0 * first.last && !by_cache(r.bytes))?;
        // Sparser than octaves, a rise may be that of a cache.
        (rise.to_bytes <= 2.0 * rise.from_bytes).then_some((rise.from_bytes, rise.to_bytes))
    }

    /// The price of each level on a curve: a row inside the level, memory at the largest working set.
    pub(super) fn prices(&self, order: &str, pages: &str) -> Vec<Priced> {
        let rows = self.curves.chases(order, pages, STRIDE_BYTES);
        let last = self.names.len().saturating_sub(1);
        let bytes = |row: &Row| row.int("working_set_bytes").unwrap_or(0) as f64;
        let inside = |i: usize, bytes: f64| {
            let from = i.checked_sub(1).map_or(0.0, |b| self.caches[b].end.all.bytes * 1.5);
            let end = |c: &Cache| c.end.always_bytes(c.number).min(c.end.all.bytes * 0.75);
            let to = self.caches.get(i).map_or(f64::INFINITY, end);
            (from..to).contains(&bytes)
        };
        (0..self.names.len())
            .filter_map(|i| {
                let rows = rows.iter().filter(|r| inside(i, bytes(r)));
                let priced = rows.map(|row| (row, self.curves.all.cost(row)));
                let priced = priced.filter(|(_, cost)| cost.known().is_some());
                let asked = self.asked(i);
                // The row nearest to what was asked for; in memory the largest.
                let (row, cost) = priced.min_by(|a, b| {
                    let far = |row: &Row| {
                        if i == last { -bytes(row) } else { (bytes(row) / asked).ln().abs() }
                    };
                    far(a.0).total_cmp(&far(b.0))
                })?;
                Some(Priced { level: self.names[i].clone(), cost, cycles: self.curves.cycles(row) })
            })
            .collect()
    }

    /// The working set of which a level's price was asked for, bytes: such rows are visited until they were seen alone on the core.
    fn asked(&self, level: usize) -> f64 {
        let edge = |i: usize| self.caches.get(i).map(|c| nominal_bytes(c.end.always_bytes(c.number)));
        let before = level.checked_sub(1).and_then(edge).unwrap_or(0.0);
        edge(level).map_or(self.most_bytes, |capacity| inside_level(before, capacity) as f64)
    }
}

/// Working sets that were measured over small and over huge pages.
fn savings(curves: &Curves<'_>, order: &str) -> Vec<Saving> {
    let by_bytes = |pages: &str| -> BTreeMap<i64, Known> {
        let known = |r: &&Row| Some((r.int("working_set_bytes")?, curves.all.cost(r).known()?.clone()));
        curves.chases(order, pages, STRIDE_BYTES).iter().filter_map(known).collect()
    };
    let (small, huge) = (by_bytes(SMALL), by_bytes(HUGE));
    let both = |(bytes, small): (i64, Known)| {
        let huge = huge.get(&bytes)?.clone();
        Some(Saving { bytes: bytes as f64, small, huge })
    };
    small.into_iter().filter_map(both).collect()
}

/// Caches by the ends of the levels, and whether memory follows: all reported ones ended, or sizes are beyond any.
fn caches(curves: &Curves<'_>, most_bytes: f64) -> (Vec<Cache>, bool) {
    let reported = curves.reported();
    let ends = curves.cache_ends();
    let beyond_bytes = reported.last_bytes().map_or(MEMORY_BYTES, |last| 2.0 * last as f64);
    let all_ended = !reported.0.is_empty() && ends.len() >= reported.0.len();
    let memory_reached = !ends.is_empty() && (all_ended || most_bytes >= beyond_bytes);
    let numbers = numbers(&ends, &reported);
    let n = ends.len();
    let cache = |(i, (end, number)): (usize, (CacheEnd, usize))| {
        let shared = memory_reached && i + 1 == n && number >= 2;
        Cache {
            name: if shared { "LLC".to_owned() } else { format!("L{}", number + 1) },
            number,
            nominal_bytes: nominal_bytes(end.all.capacity.bytes),
            reported: if shared { reported.0.last().copied() } else { reported.0.get(number).copied() },
            end,
            shared,
        }
    };
    (ends.into_iter().zip(numbers).enumerate().map(cache).collect(), memory_reached)
}

/// Which cache each end belongs to; where fewer ended than reported, those nearest in size, in order.
fn numbers(ends: &[CacheEnd], reported: &ReportedCaches) -> Vec<usize> {
    fn nearest(ends: &[CacheEnd], from: usize, reported: &[ReportedCache]) -> (f64, Vec<usize>) {
        let Some((end, rest)) = ends.split_first() else { return (0.0, Vec::new()) };
        // Enough has to be left for the ends that follow.
        (from..reported.len() - rest.len())
            .map(|i| {
                let (apart, mut after) = nearest(rest, i + 1, reported);
                after.insert(0, i);
                (apart + (end.all.capacity.bytes / reported[i].bytes as f64).ln().abs(), after)
            })
            .min_by(|a, b| a.0.total_cmp(&b.0))
            .unwrap_or_default()
    }
    if ends.len() < reported.0.len() { nearest(ends, 0, &reported.0).1 } else { (0..ends.len()).collect() }
}

/// The capacity nearest to a measured one: a power of two, or one and a half of it. Sets are a power of two, ways are not always.
pub(super) fn nominal_bytes(bytes: f64) -> f64 {
    let octave = bytes.max(1.0).log2().floor().exp2();
    let apart = |form: &f64| (form / bytes).ln().abs();
    [octave, 1.5 * octave, 2.0 * octave]
        .into_iter()
        .min_by(|a, b| apart(a).total_cmp(&apart(b)))
        .unwrap_or(bytes)
}

/// For the parts after the ladder.
pub(in crate::memory) const DETECTED_CACHES: Fact<DetectedCaches> = Fact::named("ladder.detected_caches");

/// Caches as the latencies of this run show them, for the parts after it; `None` for what they do not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(in crate::memory) struct DetectedCaches {
    /// What was effectively there of the last cache before memory, by round: the least and the most.
    pub(in crate::memory) last_bytes: Option<(u64, u64)>,
}

impl DetectedCaches {
    /// From the rows. The last cache is there only where memory was told from it: without, it may be one of several.
    pub(super) fn of(curves: &Curves<'_>) -> Self {
        let most_bytes = curves.points(PAGE_LOCAL, curves.first_pages()).last().map_or(0.0, |p| p.size);
        let (caches, memory_reached) = caches(curves, most_bytes);
        let last = caches.last().filter(|_| memory_reached).map(|c| c.end.range_bytes());
        Self { last_bytes: last.map(|(low, high)| (low as u64, high as u64)) }
    }

    pub(in crate::memory) fn from_facts(facts: &Facts) -> Self {
        facts.get(&DETECTED_CACHES).unwrap_or_default()
    }

    /// The last cache, bytes: the most that the ladder saw, else what is claimed (to a guest all of its host's).
    pub(in crate::memory) fn last_cache(facts: &Facts, claimed_bytes: f64) -> f64 {
        Self::from_facts(facts).last_bytes.map_or(claimed_bytes, |(_, most)| claimed_bytes.min(most as f64))
    }
}

/// The step by pairs alone on the core where it is good enough, else by all: neighbors make it seem too early.
fn quiet_step(
    curves: &Curves<'_>,
    over: &str,
    rows: &[&Row],
    least_ratio: f64,
    good: &dyn Fn(&Step) -> bool,
) -> Option<Step> {
    step_edge(&curves.quiet_curve(over, rows), least_ratio, QUIET_QUANTILE)
        .filter(good)
        .or_else(|| step_edge(&curves.curve(over, rows), least_ratio, DISTURBED_QUANTILE).filter(good))
}

/// The last of the lines that fit into one set. Only neighboring numbers say how many.
fn ways(curves: &Curves<'_>) -> Option<Step> {
    let rows: Vec<&Row> = curves.of_operation("conflict").filter(|r| r.pairs.len() >= FEWEST).collect();
    quiet_step(curves, "lines", &rows, WAYS_RATIO, &|s| s.next - s.last < 1.5)
}

/// The line ends where the second access of a block begins to cost more.
fn line(curves: &Curves<'_>) -> Option<Step> {
    // Of several sets that were tried, the one with the most pairs was settled on.
    let set = |r: &Row| r.int("working_set_bytes");
    let steps = crate::show::ascending(curves.of_operation("second").filter_map(set)).into_iter();
    let steps = steps.filter_map(|one| {
        let rows: Vec<&Row> = curves.of_operation("second").filter(|r| set(r) == Some(one)).collect();
        // An offset of which too little is known must not hide the end.
        let offsets: Vec<f64> = curves.curve("offset_bytes", &rows).iter().map(|p| p.size).collect();
        let neighbors = |s: &Step| !offsets.iter().any(|o| s.last < *o && *o < s.next);
        quiet_step(curves, "offset_bytes", &rows, LINE_RATIO, &|s| s.next / s.last <= 2.0 && neighbors(s))
    });
    // A line is a power of two. A step between others was seen too early, by what disturbs, and never too late.
    let line = |s: Step| Step { next: (s.next as u64).next_power_of_two() as f64, ..s };
    steps.max_by_key(|s| s.n).map(line)
}

fn change(costs_ns: &[(usize, f64)]) -> Option<f64> {
    let rounds = costs_ns.iter().map(|c| c.0).max()? + 1;
    let of = |round: usize| costs_ns.iter().filter(move |c| c.0 == round).map(|c| c.1).collect::<Vec<_>>();
    let medians = || (0..rounds).filter_map(|round| median_of(&of(round)));
    let (least, most) = (medians().min_by(f64::total_cmp)?, medians().max_by(f64::total_cmp)?);
    (least > 0.0).then(|| most / least - 1.0)
}

#[cfg(test)]
mod tests {
    #[test]
    fn capacities_are_near_a_measured_size() {
        for (measured, nominal) in
            [(34.9, 32.0), (47.0, 48.0), (181.0, 192.0), (949.0, 1_024.0), (2_900.0, 3_072.0)]
        {
            assert_eq!(super::nominal_bytes(1_024.0 * measured), 1_024.0 * nominal, "{measured}");
        }
    }
}
