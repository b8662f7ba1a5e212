//! Figures, and what to draw of them: the staircase, the pages, the line, the misses under way, the surface over strides.

use super::chase::{GLOBAL, HUGE, ONE_PER_PAGE, PAGE_BYTES, PAGE_LOCAL, SMALL, STRIDE_BYTES, STRIDED};
use super::curves::{Curves, Point};
use super::detect::{Cache, Detection, MEMORY, Saving};
use super::refine::STRIDES;
use crate::show;
use machmeter_data::metric::{Params, Population, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::shape::{Axis, CurveRow, Mark, Matrix};
use machmeter_data::{Dataset, Interval, Metric, Shape};
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Cost, Row};

pub(super) fn metrics(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Metric> {
    let mut out = latencies(found);
    out.extend(ladder(curves));
    out.extend(cycles(found));
    out.extend(found.caches.iter().map(size));
    let l1 = || params([("level", "L1".into())]);
    out.extend(found.line.as_ref().map(|s| {
        Metric::new(&super::LINE_SIZE, l1(), s.next, "step of the second access", s.n as u64)
            .with_ci(Interval::new(LEVEL, s.last, s.next, "bracket"))
    }));
    out.extend(found.ways.as_ref().map(|s| {
        Metric::new(&super::ASSOCIATIVITY, l1(), s.last, "step of conflicting lines", s.n as u64)
            .with_ci(Interval::new(LEVEL, s.last, s.next - 1.0, "bracket"))
    }));
    out.extend(translations(found));
    out.extend(huge(found));
    out.extend(parallelism(curves));
    out
}

fn latency_params(level: &str, order: &str, pages: &str) -> Params {
    params([
        ("level", level.into()),
        ("order", order.into()),
        ("pages", pages.into()),
        ("stride_bytes", STRIDE_BYTES.into()),
    ])
}

fn latencies(found: &Detection<'_>) -> Vec<Metric> {
    let mut out = Vec::new();
    for pages in [SMALL, HUGE] {
        for order in [GLOBAL, PAGE_LOCAL, STRIDED] {
            for p in found.prices(order, pages) {
                out.push(p.cost.metric(&super::LATENCY, latency_params(&p.level, order, pages)));
            }
        }
    }
    out
}

/// The global curve at powers of four, where it was measured throughout.
fn ladder(curves: &Curves<'_>) -> Vec<Metric> {
    let chases = curves.chases(GLOBAL, curves.first_pages(), STRIDE_BYTES);
    let sizes = (12..40).step_by(2).map(|shift| 1_i64 << shift);
    let rows: Vec<&Row> = sizes
        .filter_map(|bytes| chases.iter().copied().find(|r| r.int("working_set_bytes") == Some(bytes)))
        .collect();
    if rows.len() < 6 {
        return Vec::new();
    }
    let metric = |row: &Row| {
        let mut m = curves.all.cost(row).metric(&super::LATENCY, row.params.clone());
        // The level's figure carries them; here they would only fill the record.
        m.blocks.clear();
        m
    };
    rows.into_iter().map(metric).collect()
}

fn cycles(found: &Detection<'_>) -> Vec<Metric> {
    let Some(cycle) = &found.cycle else { return Vec::new() };
    let mut out = vec![cycle.metric_as(&super::CORE_CLOCK, Params::new(), |ns| 1e9 / ns)];
    // As programs pay them: random order over small pages where measured.
    out.extend(found.prices(GLOBAL, found.first_pages).into_iter().filter_map(|p| {
        let of = latency_params(&p.level, GLOBAL, found.first_pages);
        if let Some(cycles) = p.cycles {
            return Some(cycles.metric_as(&super::LATENCY_CYCLES, of, |cycles| cycles));
        }
        let cycle_ns = cycle.value_ns().filter(|ns| *ns > 0.0)?;
        let both = Population::of_all([p.cost.population(), cycle.population()]);
        Some(p.cost.metric_as(&super::LATENCY_CYCLES, of, |ns| ns / cycle_ns).with_population(both))
    }));
    out
}

fn size(cache: &Cache) -> Metric {
    let p = params([("level", cache.name.as_str().into())]);
    let end = &cache.end;
    let (mut low, mut high) = end.bracket_bytes;
    if cache.shared {
        let rounds = end.range_bytes();
        (low, high) = (low.min(rounds.0), high.max(rounds.1));
    }
    let method = if cache.shared { "range of rounds" } else { "range of resampled rounds" };
    let n = end.by_round_bytes.len() as u64;
    Metric::new(&super::CACHE_SIZE, p, end.all.capacity.bytes, "largest working set at the level's price", n)
        .with_ci(Interval::new(LEVEL, low, high, method))
}

/// From one size to another as a person reads it; one size where both read alike.
pub(super) fn span(low: f64, high: f64) -> String {
    let (low, high) = (human(low, Unit::Bytes), human(high, Unit::Bytes));
    if low == high { low } else { format!("{low} to {high}") }
}

fn translations(found: &Detection<'_>) -> Vec<Metric> {
    let page_bytes = PAGE_BYTES as f64;
    let mut out = Vec::new();
    let first = params([("level", 1_i64.into())]);
    let estimator = "step of one line per page";
    out.push(if let Some((s, alone)) = found.first_reach {
        let (entries, next) = (s.last / page_bytes, s.next / page_bytes);
        let bracket = if alone { "bracket, alone on the core" } else { "bracket" };
        Metric::new(&super::TRANSLATIONS, first, entries, estimator, s.n as u64)
            .with_ci(Interval::new(LEVEL, entries, next, bracket))
    } else {
        let why =
            "no step within half of the lines of the first cache, or too few undisturbed pairs around it";
        Metric::rejected(&super::TRANSLATIONS, first, estimator, why)
    });
    out.extend(found.second_reach.map(|(low, high)| {
        let (low, high) = (low / page_bytes, high / page_bytes);
        let p = params([("level", 2_i64.into())]);
        Metric::new(&super::TRANSLATIONS, p, (low * high).sqrt(), "rise of one line per page", 1)
            .with_ci(Interval::new(LEVEL, low, high, "range of the rise"))
    }));
    out
}

fn huge(found: &Detection<'_>) -> Vec<Metric> {
    let granted = found.huge_granted.map(|share| {
        Metric::new(&super::HUGE_GRANTED, Params::new(), share, "smaps", 1)
            .with_ci(Interval::new(LEVEL, share, share, "counted"))
    });
    let metric = |s: &Saving, mut of: Params| {
        let (value, low, high) = s.share();
        let [value, low, high] = [value, low, high].map(|share| share.max(0.0));
        of.insert("working_set_bytes".to_owned(), (s.bytes as i64).into());
        let n = s.small.n.min(s.huge.n) as u64;
        Metric::new(&super::HUGE_SAVING, of, value, "share of the latency over small pages", n)
            .with_ci(Interval::new(LEVEL, low, high, "rank, both rows"))
            .with_population(Population::of_all([s.small.population, s.huge.population]))
    };
    let curve = found.huge_savings.iter().map(|s| metric(s, params([("order", ONE_PER_PAGE.into())])));
    let memory = || params([("level", MEMORY.into()), ("order", GLOBAL.into())]);
    let memory = found.huge_memory.iter().map(|s| metric(s, memory()));
    granted.into_iter().chain(curve).chain(memory).collect()
}

fn parallelism(curves: &Curves<'_>) -> Vec<Metric> {
    let alone = curves.of_operation("parallel").find(|r| r.int("chains") == Some(1));
    let Some(Cost::Known(alone)) = alone.map(|r| curves.all.cost(r)) else { return Vec::new() };
    curves
        .of_operation("parallel")
        .filter(|r| r.int("chains") != Some(1))
        .map(|r| {
            let p = params([("chains", r.int("chains").unwrap_or(0).into())]);
            let cost = curves.all.cost(r);
            let mut m = cost.metric_as(&super::PARALLELISM, p, |ns| alone.value_ns / ns);
            // A ratio of two figures: its interval spans both, and samples of one are none of the ratio.
            if let (Some(k), Some(_)) = (cost.known(), m.value) {
                let (low, high) = (alone.low_ns / k.high_ns, alone.high_ns / k.low_ns);
                m.ci = Interval::new(LEVEL, low, high, "rank, both rows");
                m.population = Population::of_all([alone.population, k.population]);
            }
            m.blocks.clear();
            m.visits = None;
            m
        })
        .collect()
}

pub(super) fn datasets(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Dataset> {
    show::present([
        staircase(curves, found),
        pages(curves, found),
        savings(found),
        line(curves),
        parallel(curves),
        surface(curves),
    ])
}

/// A row of medians, `None` when there are fewer than two points.
fn row(name: &str, points: &[Point], per_x: f64) -> Option<CurveRow> {
    let median = |p: &Point| Some((p.size / per_x, show::rounded(p.median_ns()?, 3)));
    show::curve(name, points.iter().filter_map(median).collect())
}

fn staircase(curves: &Curves<'_>, found: &Detection<'_>) -> Option<Dataset> {
    let mut rows = Vec::new();
    for (pages, of_pages) in [(SMALL, "4 KiB pages"), (HUGE, "2 MiB pages")] {
        for (order, in_order) in [
            (GLOBAL, "random"),
            (PAGE_LOCAL, "random inside pages"),
            (ONE_PER_PAGE, "one line per page"),
            (STRIDED, "line after line"),
        ] {
            rows.extend(row(&format!("{in_order}, {of_pages}"), &curves.points(order, pages), 1.0));
        }
    }
    let mark = |x: f64, label: String, detail: String| Mark { x, label, detail, ..Mark::default() };
    let mut marks = Vec::new();
    for c in &found.caches {
        let bytes = c.end.all.capacity.bytes;
        let detail = format!("{} found: {}", c.name, human(bytes, Unit::Bytes));
        marks.push(Mark { edge: true, ..mark(show::rounded(bytes, 3), c.name.clone(), detail) });
        marks.extend(c.reported.map(|reported| {
            let detail = format!("the system says {}", human(reported.bytes as f64, Unit::Bytes));
            mark(reported.bytes as f64, format!("{} as reported", c.name), detail)
        }));
    }
    let caption = "What a load costs whose address comes from the load before. The flat parts are caches, the last one is memory. Random \
             order pays for caches and address translation; random inside pages pays for hardly any translation, and \
             prefetchers may help it; one line per page is mostly translation; line after line is what prefetchers are made \
             for. Marks: where levels end, found and as the system reports.";
    let axes = [Axis::log("working set", Unit::Bytes), Axis::log("latency", Unit::Nanoseconds)];
    show::curves(["memory.staircase", "Latency over working set", caption], axes, rows, marks)
}

/// The reach of the first translation buffer, drawn only where there is more than the short plan's look.
fn pages(curves: &Curves<'_>, found: &Detection<'_>) -> Option<Dataset> {
    let (reach, _) = found.first_reach?;
    let per_page = PAGE_BYTES as f64;
    let mut points = curves.points(ONE_PER_PAGE, found.first_pages);
    points.retain(|p| p.size <= 4.0 * reach.last);
    let rows = row("one line per page", &points, per_page);
    let caption = "One line in each of so many 4 KiB pages: the step is where the first buffer of address translations is full.";
    let axes = [Axis::linear("pages", Unit::Count), Axis::linear("latency", Unit::Nanoseconds)];
    let x = reach.last / per_page;
    let mark = Mark { x, y: None, label: format!("{x:.0} pages"), ..Mark::default() };
    show::curves(["memory.translations", "Latency over pages", caption], axes, rows, vec![mark])
        .filter(|_| points.len() >= 30)
}

/// What huge pages save over working sets.
fn savings(found: &Detection<'_>) -> Option<Dataset> {
    let point = |s: &Saving| (s.bytes, show::rounded(s.share().0, 3));
    let row = show::curve("one line per page", found.huge_savings.iter().map(point).collect());
    let caption =
        "Share of the latency that pages of 2 MiB take away, where each load goes to another page of 4 KiB.";
    let axes = [Axis::log("working set", Unit::Bytes), Axis::linear("saved", Unit::One)];
    show::curves(["memory.huge_pages", "Time saved by huge pages", caption], axes, row, Vec::new())
        .filter(|_| found.huge_savings.len() > 2)
}

fn line(curves: &Curves<'_>) -> Option<Dataset> {
    let points = curves.curve("offset_bytes", &curves.of_operation("second").collect::<Vec<_>>());
    let together = |same: &[Point]| Point {
        size: same[0].size,
        costs_ns: same.iter().flat_map(|p| p.costs_ns.iter().copied()).collect(),
    };
    let together: Vec<Point> = points.chunk_by(|a, b| a.size == b.size).map(together).collect();
    let rows = row("second access", &together, 1.0);
    let caption = "Mean latency of two accesses so many bytes apart, in blocks that live in the second cache. Inside the line that \
             the first one fetched the second is nearly free; the step is the line size.";
    let axes = [Axis::log("distance", Unit::Bytes), Axis::linear("latency", Unit::Nanoseconds)];
    show::curves(["memory.line", "Second access in a block", caption], axes, rows, Vec::new())
        .filter(|_| together.len() >= 8)
}

fn parallel(curves: &Curves<'_>) -> Option<Dataset> {
    let points = curves.curve("chains", &curves.of_operation("parallel").collect::<Vec<_>>());
    let rows = row("per load", &points, 1.0);
    let caption = "Time per load from memory with so many independent chains: it falls until the processor keeps no more misses \
             under way.";
    let axes = [Axis::log("chains", Unit::Count), Axis::log("time per load", Unit::Nanoseconds)];
    show::curves(["memory.parallel_loads", "Loads under way", caption], axes, rows, Vec::new())
        .filter(|_| points.len() > 2)
}

fn surface(curves: &Curves<'_>) -> Option<Dataset> {
    let chases = |stride: &usize| curves.chases(GLOBAL, curves.first_pages(), *stride);
    let curve = |stride: &usize| curves.curve("working_set_bytes", &chases(stride));
    let curves: Vec<Vec<Point>> = STRIDES.iter().map(curve).collect();
    if curves.iter().skip(1).all(Vec::is_empty) {
        return None;
    }
    let sizes = show::ascending(curves[1..].iter().flatten().map(|p| p.size as u64));
    let columns: Vec<f64> = sizes.into_iter().map(|size| size as f64).collect();
    let cell = |curve: &[Point], size: f64| {
        curve.iter().find(|p| p.size == size)?.median_ns().map(|x| show::rounded(x, 3))
    };
    let values = curves.iter().map(|c| columns.iter().map(|size| cell(c, *size)).collect()).collect();
    Some(Dataset::new(
        "memory.surface",
        "Latency over stride and working set",
        "Random order over nodes one stride apart: along a row the caches show, down a column lines, sets and pages.",
        Shape::Matrix(Matrix {
            x: Axis::log("working set", Unit::Bytes),
            columns,
            column_names: Vec::new(),
            rows: STRIDES.iter().map(|s| format!("stride {s} B")).collect(),
            cell: Axis::log("latency", Unit::Nanoseconds),
            values,
            range: None,
        }),
    ))
}
