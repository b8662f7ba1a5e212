//! Figures.

use machmeter_data::metric::{ParamValue, Params, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::{Interval, Metric};
use machmeter_engine::cost::estimate::LEVEL;

use super::chase::{GLOBAL, HUGE, PAGE_BYTES, PAGE_LOCAL, SMALL, STRIDE_BYTES, STRIDED};
use super::found::{Cache, Found};
use super::info;
use super::reading::Reading;

/// All figures of the part.
pub(super) fn all(reading: &Reading<'_>, found: &Found<'_>) -> Vec<Metric> {
    let mut out = latencies(found);
    out.extend(ladder(reading));
    out.extend(cycles(found));
    out.extend(found.caches.iter().map(size));
    out.extend(found.line.as_ref().map(|s| {
        Metric::new(
            &info::LINE_SIZE,
            params([("level", "L1".into())]),
            s.next,
            "step of the second access",
            s.n as u64,
        )
        .with_ci(Interval::new(LEVEL, s.last, s.next, "bracket"))
    }));
    out.extend(found.ways.as_ref().map(|s| {
        let p = params([("level", "L1".into())]);
        Metric::new(&info::ASSOCIATIVITY, p, s.last, "step of conflicting lines", s.n as u64)
            .with_ci(Interval::new(LEVEL, s.last, s.next - 1.0, "bracket"))
    }));
    out.extend(translations(found));
    out.extend(huge(found));
    out.extend(parallelism(reading));
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

/// Price of each level, in every order and page size that it was measured in.
fn latencies(found: &Found<'_>) -> Vec<Metric> {
    let mut out = Vec::new();
    for pages in [SMALL, HUGE] {
        for order in [GLOBAL, PAGE_LOCAL, STRIDED] {
            for p in found.prices(order, pages) {
                out.push(p.cost.metric(&info::LATENCY, latency_params(&p.level, order, pages)));
            }
        }
    }
    out
}

/// The global curve at powers of four, where it was measured throughout.
fn ladder(reading: &Reading<'_>) -> Vec<Metric> {
    let sizes = (12..40).step_by(2).map(|shift| 1_usize << shift);
    let rows: Vec<_> = sizes
        .filter_map(|bytes| Some((bytes, reading.chase(GLOBAL, reading.first_pages(), bytes, STRIDE_BYTES)?)))
        .collect();
    if rows.len() < 6 {
        return Vec::new();
    }
    let metric = |(bytes, row): (usize, &machmeter_engine::cost::Row)| {
        let mut p = latency_params("", GLOBAL, reading.first_pages());
        p.remove("level");
        p.insert("working_set_bytes".to_owned(), ParamValue::from(bytes));
        let mut m = reading.cost(row).metric(&info::LATENCY, p);
        // The level's figure carries them; here they would only fill the record.
        m.blocks.clear();
        m
    };
    rows.into_iter().map(metric).collect()
}

fn cycles(found: &Found<'_>) -> Vec<Metric> {
    let Some(cycle) = &found.cycle else { return Vec::new() };
    let mut out = vec![cycle.metric_as(&info::CORE_CLOCK, Params::new(), |ns| 1e9 / ns)];
    if let Some(cycle_ns) = cycle.value_ns().filter(|ns| *ns > 0.0) {
        out.extend(found.usual_prices().into_iter().map(|p| {
            let of = latency_params(&p.level, GLOBAL, found.first_pages);
            p.cost.metric_as(&info::LATENCY_CYCLES, of, |ns| ns / cycle_ns)
        }));
    }
    out
}

fn size(cache: &Cache) -> Metric {
    let p = params([("level", cache.name.as_str().into())]);
    let b = &cache.boundary;
    let n = b.by_round.len() as u64;
    let (mut low, mut high) = (b.interval.low, b.interval.high);
    if cache.shared {
        let rounds = range(cache);
        (low, high) = (low.min(rounds.0), high.max(rounds.1));
    }
    let method = if cache.shared { "range of rounds" } else { "bootstrap" };
    Metric::new(&info::CACHE_SIZE, p, b.size, "crossing of two levels", n)
        .with_ci(Interval::new(LEVEL, low, high, method))
}

/// From one size to another as a person reads it; one size where both read alike.
pub(super) fn span(low: f64, high: f64) -> String {
    let (low, high) = (human(low, Unit::Bytes), human(high, Unit::Bytes));
    if low == high { low } else { format!("{low} to {high}") }
}

/// Sizes by round and of all rounds together, from least to most.
pub(super) fn range(cache: &Cache) -> (f64, f64) {
    let sizes = || cache.boundary.by_round.iter().copied().chain([cache.boundary.size]);
    (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max))
}

fn translations(found: &Found<'_>) -> Vec<Metric> {
    let page_bytes = PAGE_BYTES as f64;
    let mut out = Vec::new();
    let first = params([("level", 1_i64.into())]);
    out.push(match &found.first_reach {
        Some(s) => {
            let (entries, next) = (s.last / page_bytes, s.next / page_bytes);
            Metric::new(&info::TRANSLATIONS, first, entries, "step of one line per page", s.n as u64).with_ci(
                Interval::new(
                    LEVEL,
                    entries,
                    next,
                    if found.first_reach_alone { "bracket, alone on the core" } else { "bracket" },
                ),
            )
        }
        None => Metric::rejected(
            &info::TRANSLATIONS,
            first,
            "step of one line per page",
            "no step within half of the lines of the first cache, or too few undisturbed pairs around it",
        ),
    });
    out.extend(found.second_reach.map(|(low, high)| {
        let (low, high) = (low / page_bytes, high / page_bytes);
        let p = params([("level", 2_i64.into())]);
        Metric::new(&info::TRANSLATIONS, p, (low * high).sqrt(), "rise of one line per page", 1)
            .with_ci(Interval::new(LEVEL, low, high, "range of the rise"))
    }));
    out
}

fn huge(found: &Found<'_>) -> Vec<Metric> {
    let granted = found.huge_granted.map(|share| {
        Metric::new(&info::HUGE_GRANTED, Params::new(), share, "smaps", 1)
            .with_ci(Interval::new(LEVEL, share, share, "counted"))
    });
    let effective = found.huge_effective.map(|(share, n)| {
        Metric::new(&info::HUGE_EFFECTIVE, Params::new(), share, "share of the cost of translation", n)
    });
    granted.into_iter().chain(effective).collect()
}

fn parallelism(reading: &Reading<'_>) -> Vec<Metric> {
    let rows = || reading.rows().filter(|r| r.operation == "parallel");
    let Some(alone) = rows().find(|r| r.int("chains") == Some(1)).map(|r| reading.cost(r)) else {
        return Vec::new();
    };
    let Some(alone) = alone.known().cloned() else { return Vec::new() };
    rows()
        .filter(|r| r.int("chains") != Some(1))
        .map(|r| {
            let p = params([("chains", r.int("chains").unwrap_or(0).into())]);
            let cost = reading.cost(r);
            let mut m = cost.metric_as(&info::PARALLELISM, p, |ns| alone.value_ns / ns);
            // A ratio of two medians: its interval spans both.
            if let (Some(k), Some(_)) = (cost.known(), m.value) {
                m.ci = Interval::new(
                    LEVEL,
                    alone.low_ns / k.high_ns,
                    alone.high_ns / k.low_ns,
                    "rank, both rows",
                );
            }
            m.blocks.clear();
            m
        })
        .collect()
}
