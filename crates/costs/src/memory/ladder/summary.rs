//! What to read first.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Summary, SummaryLine, Tile};

use super::chase::{GLOBAL, HUGE, PAGE_BYTES, PAGE_LOCAL, SMALL};
use super::figures::{range, span};
use super::found::{Cache, Found, MEMORY, Priced};
use super::reading::Reading;
use super::verdicts::{Verdict, on_hypervisor, verdict};

/// Writes the lines of the page and the tiles.
pub(super) fn write(reading: &Reading<'_>, found: &Found<'_>) -> Summary {
    let prices = found.usual_prices();
    let local = found.prices(PAGE_LOCAL, found.first_pages);
    if prices.is_empty() && local.is_empty() && found.caches.is_empty() {
        return Summary::default();
    }
    let cycle_ns = found.cycle.as_ref().and_then(machmeter_engine::cost::Cost::value_ns);
    let level = |name: &String| {
        let cache = found.caches.iter().find(|c| c.name == *name);
        let said = match cache {
            Some(c) => named(c, on_hypervisor(reading)),
            None if name == MEMORY => "memory".to_owned(),
            None => name.clone(),
        };
        let of = |priced: &[Priced]| priced.iter().find(|p| p.level == *name).and_then(|p| p.cost.value_ns());
        match (of(&prices), of(&local)) {
            (Some(ns), _) if name == MEMORY => format!("{said} {}", memory(found, ns)),
            (Some(ns), _) => {
                let cycles = cycle_ns.filter(|_| cache.is_some_and(|c| !c.shared));
                let cycles =
                    cycles.map_or(String::new(), |cycle_ns| format!(" ({:.1} cycles)", ns / cycle_ns));
                format!("{said} {}{cycles}", human(ns, Unit::Nanoseconds))
            }
            (None, Some(ns)) => format!("{said} {} (inside pages)", human(ns, Unit::Nanoseconds)),
            (None, None) => format!("{said}, latency not known"),
        }
    };
    let mut lines = vec![found.names.iter().map(level).collect::<Vec<_>>().join(", ")];
    let mut rest = Vec::new();
    rest.extend(found.line.as_ref().map(|l| format!("line {:.0} B", l.next)));
    rest.extend(found.ways.as_ref().map(|w| format!("{:.0} ways in L1", w.last)));
    rest.extend(found.first_reach.as_ref().map(|s| {
        let [fit, fail] = [s.last, s.next].map(|bytes| bytes / PAGE_BYTES as f64);
        let most = if fail > fit + 1.0 { format!(" to {:.0}", fail - 1.0) } else { String::new() };
        format!("{fit:.0}{most} pages in the first translation buffer")
    }));
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
            let there = span(low, high);
            let claimed =
                cache.claim.map_or(String::new(), |c| format!(" ({} claimed)", bytes(c.bytes as f64)));
            format!("last level {there} effective{claimed}")
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

fn memory(found: &Found<'_>, small_ns: f64) -> String {
    let text = |ns: f64| human(ns, Unit::Nanoseconds);
    let huge = found.prices(GLOBAL, HUGE).into_iter().find(|p| p.level == MEMORY);
    match huge.and_then(|p| p.cost.value_ns()).filter(|_| found.first_pages == SMALL) {
        Some(huge_ns) => format!("{} (4 KiB pages), {} (2 MiB)", text(small_ns), text(huge_ns)),
        None => text(small_ns),
    }
}

fn tile(found: &Found<'_>, prices: &[Priced]) -> Option<Tile> {
    // Not of a nearer level where the last one has no price.
    let last = prices.last().filter(|p| Some(&p.level) == found.names.last())?;
    let k = last.cost.known()?;
    let label = if found.memory_reached { "Memory latency" } else { "Latency of the last level" };
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    Some(Tile {
        label: label.to_owned(),
        value: ns(k.value_ns),
        note: format!("[{}, {}], random order", ns(k.low_ns), ns(k.high_ns)),
    })
}
