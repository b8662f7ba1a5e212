//! The analysis on rows of a simulated machine.

mod huge;
mod sizes;

use machmeter_engine::cost::{Kind, Pair, Row, Rows};
use machmeter_engine::disturbance::sibling::CoreLook;

use machmeter_stats::random::Random;

use super::chase::{GLOBAL, HUGE, ONE_PER_PAGE, PAGE_LOCAL, SMALL, STRIDED};
use super::curves::{CacheEnd, Point, ROUND_ENDS_NS, level_ends};
use super::detect::DetectedCaches;
use super::*;
use crate::memory::reported::{ReportedCache, ReportedCaches};

/// Caches of 32 KiB, 1 MiB and 32 MiB at 1.08, 3.8 and 13.5 ns before memory at 110 ns, and buffers of 72 and 3,072 translations.
#[derive(Clone)]
struct Machine {
    translations: [(f64, f64); 2],
    /// Largest share of the last cache that others take away in a round.
    drift: f64,
    /// Probability at each working set that this share changes within a round.
    restless: f64,
}

impl Machine {
    fn usual() -> Self {
        Self { translations: [(72.0, 1.9), (3_072.0, 20.0)], drift: 0.0, restless: 0.0 }
    }

    /// Costs over sizes of so many rounds with three samples each, of which every 20th was disturbed.
    fn curve(&self, order: &str, sizes: &[f64], rounds: usize, seed: u64) -> Vec<Point> {
        let mut random = Random::new(seed);
        let mut points: Vec<Point> =
            sizes.iter().map(|size| Point { size: *size, costs_ns: Vec::new() }).collect();
        for round in 0..rounds {
            let mut left = 1.0 - self.drift * random.unit();
            for point in &mut points {
                if random.unit() < self.restless {
                    left = 1.0 - self.drift * random.unit();
                }
                for _ in 0..3 {
                    let wild = if random.unit() < 0.05 { 4.0 } else { 1.0 };
                    let ns =
                        self.cost_ns(order, point.size, left) * wild * (1.0 + 0.01 * random.normal().abs());
                    point.costs_ns.push((round, ns));
                }
            }
        }
        points
    }

    fn cost_ns(&self, order: &str, bytes: f64, left: f64) -> f64 {
        let pages = bytes / 4_096.0;
        let lines_bytes = if order == ONE_PER_PAGE { bytes / 64.0 } else { bytes };
        // Pages lie on random colors, so that a cache is full a little early, and never at once.
        let missed = |capacity: f64| 1.0 / (1.0 + (capacity / lines_bytes).powi(12));
        let missed_at_once = if lines_bytes > 32_768.0 { 1.0 } else { 0.0 };
        let caches_ns =
            1.08 + 2.72 * missed_at_once + 9.7 * missed(1_048_576.0) + 96.5 * missed(33_554_432.0 * left);
        let translated = |(entries, ns): &(f64, f64)| match order {
            ONE_PER_PAGE => f64::from(u8::from(pages > *entries)) * ns,
            PAGE_LOCAL => (1.0 - entries / pages).max(0.0) / 64.0 * ns,
            _ => (1.0 - entries / pages).max(0.0) * ns,
        };
        caches_ns + self.translations.iter().map(translated).sum::<f64>()
    }
}

const LOADS: f64 = 16.0;
const TURNS: u64 = 500;

fn row(operation: &str, point: &Point) -> Row {
    let mut row = Row::new(NAME, operation, Kind::Latency).per_turn(LOADS);
    (row.short_turns, row.long_turns) = (TURNS, 2 * TURNS);
    let pair = |(round, ns): &(usize, f64)| Pair {
        at_ns: *round as f64 * 1e9 + 1.0,
        short_ticks: (ns * LOADS * TURNS as f64) as u64,
        long_ticks: (ns * LOADS * 2.0 * TURNS as f64) as u64,
        ..Pair::default()
    };
    row.pairs = point.costs_ns.iter().map(pair).collect();
    row
}

fn curve(machine: &Machine, name: &str, pages: &str, sizes: &[f64]) -> Vec<Row> {
    machine.curve(name, sizes, 4, 11).iter().map(|p| chase(p, name, pages)).collect()
}

fn chase(point: &Point, order: &str, pages: &str) -> Row {
    row("chase", point)
        .with("order", order)
        .with("pages", pages)
        .with("working_set_bytes", point.size as i64)
        .with("stride_bytes", 64_i64)
}

/// Of the full plan, bytes.
fn sizes() -> Vec<f64> {
    plan::sizes(8, 128 << 20).into_iter().map(|s| s as f64).collect()
}

fn flat(operation: &str, over: &str, costs: &[(i64, f64)]) -> Vec<Row> {
    let point = |ns: f64| Point { size: 0.0, costs_ns: (0..12).map(|i| (i / 3, ns)).collect() };
    costs.iter().map(|(x, ns)| row(operation, &point(*ns)).with(over, *x)).collect()
}

fn rows(machine: &Machine) -> Rows {
    let mut rows = Rows::in_nanoseconds(Vec::new());
    rows.facts.set(&plan::REPORTED_CACHES, ReportedCaches::planted(&[32 << 10, 1 << 20, 32 << 20]));
    rows.facts.set(&ROUND_ENDS_NS, vec![1.0, 1e9 + 1.0, 2e9 + 1.0, 3e9 + 1.0]);
    rows.facts.set(&plan::HYPERVISOR, "none".to_owned());
    rows.facts.set(&plan::HUGE_BYTES, [128 << 20; 2]);
    rows.facts.set(&plan::LIMIT, plan::Limit::None);
    let sizes = sizes();
    let pages: Vec<f64> = (8..=160).map(|n| f64::from(n) * 4_096.0).collect();
    // With huge pages nothing is translated twice: as a machine without buffers.
    let no_misses = Machine { translations: [(1e9, 0.0); 2], ..machine.clone() };
    rows.rows.extend(curve(machine, PAGE_LOCAL, SMALL, &sizes));
    rows.rows.extend(curve(machine, GLOBAL, SMALL, &sizes));
    rows.rows.extend(curve(&no_misses, GLOBAL, HUGE, &sizes[sizes.len() - 9..]));
    rows.rows.extend(curve(machine, ONE_PER_PAGE, SMALL, &pages));
    rows.rows.extend(curve(&no_misses, ONE_PER_PAGE, HUGE, &[144.0 * 4_096.0]));
    let seconds: Vec<(i64, f64)> =
        [8, 16, 32, 64, 128, 256].map(|d| (d, if d < 64 { 2.6 } else { 3.8 })).to_vec();
    let line = flat("second", "offset_bytes", &seconds);
    rows.rows.extend(line.into_iter().map(|r| r.with("working_set_bytes", 524_288_i64)));
    let lines: Vec<(i64, f64)> = (1..=16).map(|k| (k, if k <= 8 { 1.08 } else { 3.8 })).collect();
    rows.rows.extend(flat("conflict", "lines", &lines));
    // Prefetchers hide all levels, and twice as much of the last: no curve to find caches on.
    let hidden = |bytes: f64| if bytes < 64e6 { 1.2 } else { 2.4 };
    rows.rows.extend(plan::sizes(1, 128 << 20).into_iter().map(|bytes| {
        let costs_ns = (0..12).map(|i| (i / 3, hidden(bytes as f64))).collect();
        chase(&Point { size: bytes as f64, costs_ns }, STRIDED, SMALL)
    }));
    rows.rows.extend(flat("parallel", "chains", &[(1, 110.0), (2, 55.0), (8, 15.0)]));
    let mut adds = flat("adds", "none", &[(0, 0.27)]).remove(0);
    adds.params.clear();
    rows.rows.push(adds);
    rows
}

/// Without the working sets that reach memory.
fn short() -> Rows {
    let mut rows = rows(&Machine::usual());
    rows.rows.retain(|r| r.int("working_set_bytes").is_none_or(|b| b <= 4 << 20));
    rows
}

fn slow_down(pair: &mut Pair, slower: f64) {
    let ticks = |ticks: u64| (ticks as f64 * slower) as u64;
    (pair.short_ticks, pair.long_ticks) = (ticks(pair.short_ticks), ticks(pair.long_ticks));
}

fn analysis(rows: &Rows) -> Analysis {
    analyze(&crate::testing::params(&[]), rows, 7)
}

fn value(a: &Analysis, id: &str, of: &[(&str, &str)]) -> Option<f64> {
    crate::testing::metric(a, id, of).and_then(|m| m.value)
}

/// Widths beside each pair: mostly a neighbor, who takes twelve pages of the buffer and half a line.
fn beside_a_neighbour(rows: &mut Rows) {
    for row in &mut rows.rows {
        for pair in &mut row.pairs {
            pair.core.width = 3.75;
        }
        let pages = row.int("working_set_bytes").unwrap_or(0) as f64 / 4_096.0;
        let misses = row.text("order") == ONE_PER_PAGE && (60.0..=72.0).contains(&pages);
        if misses || row.int("offset_bytes") == Some(32) {
            let missed = |p: &Pair| Pair {
                long_ticks: 3 * p.long_ticks,
                short_ticks: 3 * p.short_ticks,
                core: CoreLook { width: 2.2, addition_ticks: 1.0 },
                ..*p
            };
            row.pairs.truncate(5);
            let shared: Vec<Pair> = row.pairs.iter().map(missed).cycle().take(40).collect();
            row.pairs.extend(shared);
        }
    }
}

#[test]
fn what_a_neighbour_takes_is_not_the_size_of_a_line_or_buffer() {
    let mut rows = rows(&Machine::usual());
    beside_a_neighbour(&mut rows);
    let of = |rows: &Rows| {
        let a = analysis(rows);
        let entries = value(&a, "memory.tlb_entries", &[("level", "1")]);
        (entries, value(&a, "memory.line_size", &[("level", "L1")]))
    };
    assert_eq!(of(&rows), (Some(59.0), Some(32.0)), "nobody looked");
    rows.store_core();
    assert_eq!(of(&rows), (Some(72.0), Some(64.0)));
}

#[test]
fn what_was_seldom_seen_alone_is_wanted_again() {
    let mut rows = rows(&Machine::usual());
    beside_a_neighbour(&mut rows);
    rows.store_core();
    let curves = Curves::of(&rows);
    let found = refine::Refinement::of(&curves, 128 << 20);
    let wanted: Vec<(String, i64)> = found
        .wanting(&curves)
        .iter()
        .map(|i| (rows.rows[*i].text("order"), rows.rows[*i].int("working_set_bytes").unwrap()))
        .collect();
    // Prices were seen twelve times, the step lies between 72 and 73 pages, and 73 were seen alone every time.
    let pages: Vec<i64> = wanted.iter().filter(|w| w.0 == ONE_PER_PAGE).map(|w| w.1 / 4_096).collect();
    assert_eq!(pages, [71, 72]);
    let priced: Vec<i64> = wanted.iter().filter(|w| w.0 == GLOBAL).map(|w| w.1).collect();
    assert!(priced.contains(&(16 << 10)) && priced.contains(&(128 << 20)) && priced.len() <= 8, "{priced:?}");
    for row in &mut rows.rows {
        row.pairs = row.pairs.iter().copied().cycle().take(300).collect();
    }
    assert_eq!(found.wanting(&Curves::of(&rows)), [0; 0]);
}

#[test]
fn a_planted_machine_is_described() {
    let machine = Machine::usual();
    let a = analysis(&rows(&machine));
    let near = |id: &str, of: &[(&str, &str)], truth: f64, within: f64| {
        let v = value(&a, id, of).unwrap_or_else(|| panic!("{id} {of:?} is missing"));
        assert!((v / truth - 1.0).abs() < within, "{id} {of:?}: {v}, not {truth}");
    };
    near("memory.cache_size", &[("level", "L1")], 32_768.0, 0.15);
    near("memory.cache_size", &[("level", "L2")], 1_048_576.0, 0.12);
    near("memory.cache_size", &[("level", "LLC")], 33_554_432.0, 0.2);
    near("memory.latency", &[("level", "L1"), ("order", "global")], 1.08, 0.03);
    near("memory.latency", &[("level", "L1"), ("order", "strided")], 1.2, 0.01);
    near("memory.latency", &[("level", "DRAM"), ("order", "strided")], 2.4, 0.01);
    near("memory.latency_cycles", &[("level", "L1")], 4.0, 0.03);
    near("memory.latency", &[("level", "DRAM"), ("pages", "huge")], 110.0, 0.05);
    near("memory.core_clock", &[], 3.7037e9, 0.001);
    near("memory.line_size", &[("level", "L1")], 64.0, 1e-9);
    near("memory.associativity", &[], 8.0, 1e-9);
    near("memory.tlb_entries", &[("level", "1")], 72.0, 1e-9);
    // 128 MiB: 110 ns, and 20 ns for all but 3,072 of 32,768 small pages, 1.9 ns for nearly all.
    near("memory.huge_pages_saving", &[("level", "DRAM"), ("order", "global")], 1.0 - 110.0 / 130.0, 0.1);
    near("memory.parallelism", &[("chains", "8")], 110.0 / 15.0, 0.01);
    assert!(a.warnings.is_empty(), "{:?}", a.warnings);
    assert_eq!(a.findings[0].verdict, "equal", "{:?}", a.findings);
    let told = crate::testing::row_texts(&crate::memory::info::INFO, &a);
    for row in ["latency, 2 MiB pages | 4 KiB: ", "line, L1: 64", "ways, L1: 8", "L1, size | latency: "] {
        assert!(told.iter().any(|t| t.starts_with(row)), "{row}: {told:?}");
    }
    for m in &a.metrics {
        assert!(m.value.is_none_or(|v| v.is_finite() && v >= 0.0), "{m:?}");
    }
    let drawn: usize =
        a.datasets.iter().map(|d| serde_json::to_string(d).expect("a dataset is JSON").len()).sum();
    assert!(drawn < 20_000, "{drawn} bytes of datasets");
}

#[test]
fn cycles_hold_while_the_clock_changes() {
    let mut r = rows(&Machine::usual());
    let is_small = |r: &&mut Row| {
        r.text("order") == GLOBAL && r.text("pages") == SMALL && r.int("working_set_bytes") <= Some(32 << 10)
    };
    let mut clocks = Vec::new();
    for row in r.rows.iter_mut().filter(is_small) {
        let mut clock = flat("adds", "none", &[(0, 0.27)]).remove(0);
        clock.params = row.params.clone();
        // Two visits in three are at a clock that is 8 % lower; the additions by themselves met the higher one only.
        for (i, pair) in row.pairs.iter_mut().chain(&mut clock.pairs).enumerate() {
            pair.visit = i as u32 % 12 + 1;
            slow_down(pair, if pair.visit % 3 == 0 { 1.0 } else { 1.08 });
        }
        clocks.push(clock);
    }
    r.rows.extend(clocks);
    let a = analysis(&r);
    let cycles = value(&a, "memory.latency_cycles", &[("level", "L1")]).expect("known");
    assert!((cycles / 4.0 - 1.0).abs() < 0.02, "{cycles}");
    assert!(value(&a, "memory.latency", &[("level", "L1"), ("order", "global")]) > Some(1.15));
}

#[test]
fn conditions_that_weaken_it_are_told() {
    let machine = Machine { drift: 0.7, ..Machine::usual() };
    let mut r = rows(&machine);
    r.facts.set(&plan::HYPERVISOR, "kvm".to_owned());
    // Huge pages that save nothing in memory, a clock that moves, and memory not asked for in full.
    huge::save(&mut r, 0.0);
    for row in r.rows.iter_mut().filter(|r| r.operation == "adds") {
        row.pairs.iter_mut().take(3).for_each(|p| (p.short_ticks, p.long_ticks) = (2_400, 4_800));
    }
    let a = analysis(&r);
    assert_eq!(crate::testing::codes(&a), ["W402", "W403", "W404"], "{:?}", a.warnings);
    assert_eq!(a.findings[0].verdict, "effective", "{:?}", a.findings);
    let last = a.metrics.iter().find(|m| m.key() == "memory.cache_size{level=LLC}").expect("a last cache");
    assert_eq!(last.flags, ["W404"]);

    r.facts.set(&plan::HUGE_REFUSED, "never".to_owned());
    assert!(analysis(&r).warnings.iter().any(|w| w.code == "W401"));

    let mut short = short();
    short.facts.set(&plan::LIMIT, plan::Limit::Time);
    let a = analysis(&short);
    let bounded = a.warnings.iter().any(|w| w.code == "W405" && w.text.contains("limited by time"));
    assert!(bounded, "{:?}", a.warnings);
    assert!(a.metrics.iter().all(|m| m.params.get("level").is_none_or(|l| l.to_string() != "DRAM")));
}

#[test]
fn a_larger_cache_than_claimed_differs_and_none_claimed_is_said() {
    let mut r = rows(&Machine::usual());
    let cache = ReportedCache { level: 1, bytes: 16 << 10, line_bytes: 64, ways: 4 };
    r.facts.set(&plan::REPORTED_CACHES, ReportedCaches(vec![cache]));
    let a = analysis(&r);
    assert_eq!(a.findings[0].verdict, "differs", "{:?}", a.findings);
    let text = a.findings[0].evidence.join("\n");
    for said in ["16.0 KiB claimed: differs", "nothing claimed: not claimed", "4 claimed: differs"] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_cache_that_was_missed_does_not_give_its_name_to_the_next() {
    let mut r = rows(&Machine::usual());
    r.rows.retain(|r| r.int("working_set_bytes").is_none_or(|b| b >= 128 << 10));
    let a = analysis(&r);
    let size = |level| value(&a, "memory.cache_size", &[("level", level)]);
    assert_eq!(size("L1"), None);
    for (level, truth) in [("L2", 1_048_576.0), ("LLC", 33_554_432.0)] {
        assert!(size(level).is_some_and(|v| (v / truth - 1.0_f64).abs() < 0.2), "{level}: {:?}", size(level));
    }
    assert_eq!(value(&a, "memory.latency", &[("level", "L1"), ("order", "global")]), None);
}

#[test]
fn what_was_found_is_told_to_the_parts_after_it() {
    let told = |rows: &Rows| DetectedCaches::of(&Curves::of(rows));
    let (least, most) = told(&rows(&Machine::usual())).last_bytes.expect("a last cache");
    assert!((24 << 20..=most).contains(&least) && most < 41 << 20, "{least} to {most}");
    // Memory not reached: what ends the curve may be any cache.
    assert_eq!(told(&short()).last_bytes, None);
    assert_eq!(told(&Rows::in_nanoseconds(Vec::new())), DetectedCaches::default());
}

#[test]
fn nothing_measured_says_nothing() {
    let empty = Rows::in_nanoseconds(Vec::new());
    let a = analysis(&empty);
    assert!(a.metrics.is_empty() && a.warnings.is_empty());
    // A few pairs of a few working sets: no figure is made of them.
    let mut few = rows(&Machine::usual());
    few.rows.truncate(3);
    few.rows.iter_mut().for_each(|r| r.pairs.truncate(2));
    let a = analysis(&few);
    let counted = "memory.huge_pages_granted";
    assert!(a.metrics.iter().all(|m| m.value.is_none() || m.id == counted), "{:?}", a.metrics);
    assert!(a.warnings.iter().any(|w| w.code == "W405"));
}

#[test]
fn a_last_cache_that_others_share_is_a_range() {
    let machine = Machine { drift: 0.6, ..Machine::usual() };
    let sizes = sizes();
    for seed in 0..20 {
        let ends = level_ends(&machine.curve(PAGE_LOCAL, &sizes, 3, seed));
        let [first, second, last] = &ends[..] else { panic!("seed {seed}: {ends:?}") };
        let near = |end: &CacheEnd, bytes: f64| (end.all.bytes / bytes).log2().abs() < 0.3;
        assert!(near(first, 32_768.0) && near(second, 1_048_576.0), "seed {seed}: {ends:?}");
        let (least, most) = last.range_bytes();
        // Two fifths to all of 32 MiB were left.
        assert!(least > 8e6 && most < 38e6 && last.by_round_bytes.len() == 3, "seed {seed}: {last:?}");
    }
}

#[test]
fn a_last_cache_is_priced_where_others_left_it_all_the_time() {
    let mut r = rows(&Machine::usual());
    // From the second round on a tenth of it is left.
    for row in r.rows.iter_mut().filter(|r| r.text("order") == PAGE_LOCAL) {
        let bytes = row.int("working_set_bytes").unwrap_or(0) as f64;
        let ns = |left: f64| Machine::usual().cost_ns(PAGE_LOCAL, bytes, left);
        let later = row.pairs.iter_mut().filter(|p| p.at_ns > 1e9);
        later.for_each(|p| slow_down(p, ns(0.1) / ns(1.0)));
    }
    let a = analysis(&r);
    let price = value(&a, "memory.latency", &[("level", "LLC"), ("order", "page_local")]);
    assert!(price.is_some_and(|ns| (11.0..17.0).contains(&ns)), "13.5 ns, not {price:?}");
}
