//! What to read first.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Summary, SummaryLine, Tile};

use super::chase::{GLOBAL, HUGE, PAGE_BYTES, SMALL};
use super::figures::range;
use super::found::{Cache, Found, Priced};
use super::reading::Reading;
use super::verdicts::{Verdict, on_hypervisor, verdict};

/// Writes the lines of the page and the tiles.
pub(super) fn write(reading: &Reading<'_>, found: &Found<'_>) -> Summary {
    let prices = found.usual_prices();
    if prices.is_empty() {
        return Summary::default();
    }
    let cycle_ns = found.cycle.as_ref().and_then(machmeter_engine::cost::Cost::value_ns);
    let level = |p: &Priced<'_>| {
        let ns = human(p.cost.value_ns().unwrap_or(0.0), Unit::Nanoseconds);
        match found.caches.iter().find(|c| c.name == p.level) {
            Some(c) => {
                let cycles = cycle_ns.filter(|_| !c.shared).map_or(String::new(), |cycle_ns| {
                    format!(" ({:.1} cycles)", p.cost.value_ns().unwrap_or(0.0) / cycle_ns)
                });
                format!("{} {ns}{cycles}", named(c, on_hypervisor(reading)))
            }
            None if p.level == "DRAM" => memory(found, p),
            None => format!("{} {ns}", p.level),
        }
    };
    let mut lines = vec![prices.iter().map(level).collect::<Vec<_>>().join(", ")];
    let mut rest = Vec::new();
    rest.extend(found.line.as_ref().map(|l| format!("line {:.0} B", l.next)));
    rest.extend(found.ways.as_ref().map(|w| format!("{:.0} ways in L1", w.last)));
    rest.extend(
        found
            .first_reach
            .as_ref()
            .map(|s| format!("{:.0} pages in the first translation buffer", s.last / PAGE_BYTES as f64)),
    );
    if let Some((low, high)) = found.second_reach {
        let page = PAGE_BYTES as f64;
        rest.push(format!("{:.0} to {:.0} in the second", low / page, high / page));
    }
    rest.extend(cycle_ns.map(|ns| format!("core at {}", human(1e9 / ns, Unit::Hertz))));
    if !rest.is_empty() {
        lines.push(rest.join("; "));
    }
    Summary {
        lines: vec![SummaryLine { section: "MEMORY".to_owned(), lines }],
        tiles: tile(found, &prices).into_iter().collect(),
        verdict: String::new(),
    }
}

/// A cache with its size as a person says it.
fn named(cache: &Cache, on_hypervisor: bool) -> String {
    let bytes = |b: f64| human(b, Unit::Bytes);
    match verdict(cache, on_hypervisor) {
        Verdict::Effective => {
            let (low, high) = range(cache);
            let claimed =
                cache.claim.map_or(String::new(), |c| format!(" ({} claimed)", bytes(c.bytes as f64)));
            format!("last level {} to {} effective{claimed}", bytes(low), bytes(high))
        }
        Verdict::Equal => format!("{} {}", cache.name, bytes(cache.claim.map_or(0.0, |c| c.bytes as f64))),
        Verdict::Differs => format!(
            "{} {} ({} claimed)",
            cache.name,
            bytes(cache.looks_like),
            bytes(cache.claim.map_or(0.0, |c| c.bytes as f64))
        ),
        Verdict::NotClaimed => format!("{} {}", cache.name, bytes(cache.looks_like)),
    }
}

fn memory(found: &Found<'_>, small: &Priced<'_>) -> String {
    let text = |p: &Priced<'_>| human(p.cost.value_ns().unwrap_or(0.0), Unit::Nanoseconds);
    let huge = found.prices(GLOBAL, HUGE).into_iter().find(|p| p.level == "DRAM");
    match huge.filter(|_| found.first_pages == SMALL) {
        Some(huge) => format!("memory {} (4 KiB pages), {} (2 MiB)", text(small), text(&huge)),
        None => format!("memory {}", text(small)),
    }
}

fn tile(found: &Found<'_>, prices: &[Priced<'_>]) -> Option<Tile> {
    let last = prices.last()?;
    let k = last.cost.known()?;
    let label = if found.memory_reached { "Memory latency" } else { "Latency of the last level" };
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    Some(Tile {
        label: label.to_owned(),
        value: ns(k.value_ns),
        note: format!("[{}, {}], random order", ns(k.low_ns), ns(k.high_ns)),
    })
}
