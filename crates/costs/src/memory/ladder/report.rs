//! What to read: the lines of the page, statements and warnings of what was found against what the system reports.

use machmeter_data::Metric;
use machmeter_data::code::Code;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Summary, Tile, Warning};
use machmeter_engine::cost::Cost;
use machmeter_engine::cost::estimate::Known;

use super::chase::{GLOBAL, HUGE, PAGE_BYTES, PAGE_LOCAL, SMALL};
use super::curves::Curves;
use super::detect::{Cache, Detection, MEMORY, Priced};
use super::figures::span;
use super::plan::{GRANTED, HUGE_REFUSED, HYPERVISOR, LIMIT, Limit};
use crate::show;

/// Writes the lines of the page and the tiles.
pub(super) fn write(curves: &Curves<'_>, found: &Detection<'_>) -> Summary {
    let prices = found.usual_prices();
    let local = found.prices(PAGE_LOCAL, found.first_pages);
    if prices.is_empty() && local.is_empty() && found.caches.is_empty() {
        return Summary::default();
    }
    let level = |name: &String| {
        let cache = found.caches.iter().find(|c| c.name == *name);
        let said = match cache {
            Some(c) => named(c, on_hypervisor(curves)),
            None if name == MEMORY => "memory".to_owned(),
            None => name.clone(),
        };
        let of = |priced: &[Priced]| {
            let p = priced.iter().find(|p| p.level == *name)?;
            Some((p.cost.known()?.clone(), p.cycles.as_ref().and_then(Cost::value_ns)))
        };
        match (of(&prices), of(&local)) {
            (Some((k, _)), _) if name == MEMORY => format!("{said} {}", memory(found, &k)),
            (Some((k, cycles)), _) => {
                let cycles = cycles.map_or(String::new(), |cycles| format!(" ({cycles:.1} cycles)"));
                format!("{said} {}{cycles}{}", human(k.value_ns, Unit::Nanoseconds), k.mark())
            }
            (None, Some((k, _))) => format!("{said} {} (inside pages)", k.words()),
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
    let cycle_ns = found.cycle.as_ref().and_then(Cost::value_ns);
    rest.extend(cycle_ns.map(|ns| format!("core at {}", human(1e9 / ns, Unit::Hertz))));
    if !rest.is_empty() {
        lines.push(rest.join("; "));
    }
    show::summary("MEMORY", lines, tile(found, &prices))
}

/// A cache with its size as a person says it.
fn named(cache: &Cache, on_hypervisor: bool) -> String {
    let bytes = |b: f64| human(b, Unit::Bytes);
    match verdict(cache, on_hypervisor) {
        Verdict::Effective => {
            let (low, high) = cache.end.range_bytes();
            let there = span(low, high);
            let claimed =
                cache.reported.map_or(String::new(), |c| format!(" ({} claimed)", bytes(c.bytes as f64)));
            format!("last level {there} effective{claimed}")
        }
        Verdict::Equal => format!("{} {}", cache.name, bytes(cache.reported.map_or(0.0, |c| c.bytes as f64))),
        Verdict::Differs => format!(
            "{} {} ({} claimed)",
            cache.name,
            bytes(cache.nominal_bytes),
            bytes(cache.reported.map_or(0.0, |c| c.bytes as f64))
        ),
        Verdict::NotClaimed => format!("{} {}", cache.name, bytes(cache.nominal_bytes)),
    }
}

fn memory(found: &Detection<'_>, small: &Known) -> String {
    let huge = found.prices(GLOBAL, HUGE).into_iter().find(|p| p.level == MEMORY);
    match huge.and_then(|p| p.cost.words()).filter(|_| found.first_pages == SMALL) {
        Some(huge) => format!("{} (4 KiB pages), {huge} (2 MiB)", small.words()),
        None => small.words(),
    }
}

fn tile(found: &Detection<'_>, prices: &[Priced]) -> Option<Tile> {
    // Not of a nearer level where the last one has no price.
    let last = prices.last().filter(|p| Some(&p.level) == found.names.last())?;
    let k = last.cost.known()?;
    let label = if found.memory_reached { "Memory latency" } else { "Latency of the last level" };
    let ns = |ns: f64| human(ns, Unit::Nanoseconds);
    Some(show::tile(
        label,
        ns(k.value_ns),
        format!("[{}, {}], random order{}", ns(k.low_ns), ns(k.high_ns), k.mark()),
    ))
}

/// Change of the core's clock between rounds that is worth a warning.
const CLOCK_CHANGE: f64 = 0.01;
/// Ratio of the largest and smallest effective size of the last cache that is worth one.
const LAST_RATIO: f64 = 1.3;
/// Share of the claimed last cache below which the rest belongs to others.
const LAST_SHARE: f64 = 0.6;
/// Share of the cost of translations taken away that counts as effective.
const EFFECTIVE: f64 = 0.5;

/// A cache is the reported one within so many octaves: whoever shares the core makes it look smaller by up to a third.
const SAME_OCTAVES: f64 = 0.5;

/// How a cache compares with what the system reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Equal,
    Differs,
    NotClaimed,
    /// Others share it: the effective size is a range.
    Effective,
}

impl Verdict {
    const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Differs => "differs",
            Self::NotClaimed => "not claimed",
            Self::Effective => "effective",
        }
    }
}

/// The verdict on a cache. In a virtual machine the last cache is never said to be as claimed.
pub(super) fn verdict(cache: &Cache, on_hypervisor: bool) -> Verdict {
    let Some(claim) = cache.reported else { return Verdict::NotClaimed };
    let claimed = claim.bytes as f64;
    let (low, high) = cache.end.range_bytes();
    if cache.shared && (on_hypervisor || high / low > LAST_RATIO) {
        return Verdict::Effective;
    }
    let apart_octaves = (cache.end.all.bytes / claimed).log2().abs();
    if apart_octaves < SAME_OCTAVES { Verdict::Equal } else { Verdict::Differs }
}

/// Whether the processor runs under a hypervisor, or may.
pub(super) fn on_hypervisor(curves: &Curves<'_>) -> bool {
    curves.facts().get(&HYPERVISOR).is_none_or(|name| name != "none")
}

pub(super) fn findings(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Finding> {
    [hierarchy(curves, found), huge(found)].into_iter().flatten().collect()
}

fn hierarchy(curves: &Curves<'_>, found: &Detection<'_>) -> Option<Finding> {
    if found.caches.is_empty() {
        return None;
    }
    let judged: Vec<(&Cache, Verdict)> =
        found.caches.iter().map(|c| (c, verdict(c, on_hypervisor(curves)))).collect();
    let mut evidence: Vec<String> = judged.iter().map(|(c, v)| describe(c, *v)).collect();
    if let Some(line) = &found.line {
        let claimed = found.caches.iter().find_map(|c| c.reported).map_or(0, |c| c.line_bytes);
        let against = match claimed {
            0 => "not claimed".to_owned(),
            c if c as f64 == line.next => format!("{c} B claimed: equal"),
            c => format!("{c} B claimed: differs"),
        };
        evidence.push(format!("line: {} B found, {against}", line.next));
    }
    if let Some(ways) = &found.ways {
        let claimed = found.caches.first().and_then(|c| c.reported).map_or(0, |c| c.ways);
        let against = match claimed {
            0 => "not claimed".to_owned(),
            c if c as f64 == ways.last => format!("{c} claimed: equal"),
            c => format!("{c} claimed: differs"),
        };
        evidence.push(format!("ways of L1: {} found, {against}", ways.last));
    }
    let differs: Vec<&str> =
        judged.iter().filter(|j| j.1 == Verdict::Differs).map(|j| j.0.name.as_str()).collect();
    let effective = judged.iter().find(|j| j.1 == Verdict::Effective);
    let text = match (&differs[..], effective) {
        ([], None) => "The caches found are those that the system claims.".to_owned(),
        ([], Some((c, _))) => {
            let (low, high) = c.end.range_bytes();
            format!(
                "Caches are as the system claims, but of the last one {} were effectively there.",
                span(low, high)
            )
        }
        (names, _) => format!(
            "{} {} from what the system claims; whoever shares a cache, or the core, makes it look smaller.",
            names.join(" and "),
            if names.len() == 1 { "differs" } else { "differ" }
        ),
    };
    let word = if differs.is_empty() {
        effective.map_or(Verdict::Equal, |e| e.1).name()
    } else {
        Verdict::Differs.name()
    };
    Some(show::finding("memory.hierarchy", word, text, evidence))
}

fn describe(cache: &Cache, verdict: Verdict) -> String {
    let bytes = |b: f64| human(b, Unit::Bytes);
    let claimed =
        cache.reported.map_or("nothing claimed".to_owned(), |c| format!("{} claimed", bytes(c.bytes as f64)));
    let all = &cache.end.all;
    if cache.shared {
        let rounds: Vec<String> = cache.end.by_round_bytes.iter().map(|s| bytes(*s)).collect();
        return format!(
            "{}: {} effective (by round {}), {claimed}: {}",
            cache.name,
            bytes(all.bytes),
            rounds.join(", "),
            verdict.name()
        );
    }
    format!(
        "{}: step at {} [{}, {}] where a load passes {:.2} ns, looks like {}, {claimed}: {}",
        cache.name,
        bytes(all.bytes),
        bytes(all.from_bytes),
        bytes(all.to_bytes),
        all.threshold_ns,
        bytes(cache.nominal_bytes),
        verdict.name()
    )
}

fn huge(found: &Detection<'_>) -> Option<Finding> {
    let granted = found.huge_granted?;
    let mut evidence = vec![format!("granted: {}", human(granted, Unit::One))];
    let (word, text) = match found.huge_effective {
        _ if granted < GRANTED => ("denied", "Huge pages were asked for and not, or only partly, given."),
        Some((share, _)) if share < EFFECTIVE => {
            ("not effective", "Huge pages were given, but translation reaches no further with them.")
        }
        Some(_) => ("effective", "Huge pages were given and translation reaches further with them."),
        None => ("granted", "Huge pages were given; whether translation reaches further was not measured."),
    };
    evidence.extend(found.huge_effective.map(|(share, n)| {
        format!(
            "they take away {} of what missed translations cost beyond the first buffer ({n} pairs)",
            human(share, Unit::One)
        )
    }));
    Some(show::finding("memory.huge_pages", word, text.to_owned(), evidence))
}

pub(super) fn warnings(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Warning> {
    let mut out = Vec::new();
    let mut warn = |code: &Code, text: String| {
        let changes = code.id == super::LAST_DRIFTS.id;
        out.push(Warning { changes, ..code.warning(text) });
    };
    if let Some(why) = curves.facts().get(&HUGE_REFUSED) {
        warn(&super::NO_HUGE, format!("no huge pages: {why}"));
    } else if let Some(share) = found.huge_granted.filter(|s| *s < GRANTED) {
        warn(
            &super::NO_HUGE,
            format!("{} of the memory asked for came in huge pages", human(share, Unit::One)),
        );
    } else if let Some((share, _)) = found.huge_effective.filter(|e| e.0 < EFFECTIVE) {
        let text = format!(
            "huge pages were granted, but take away only {} of what missed translations cost",
            human(share, Unit::One)
        );
        warn(&super::HUGE_NOT_EFFECTIVE, text);
    }
    if let Some(change) = found.clock_change.filter(|c| *c > CLOCK_CHANGE) {
        warn(
            &super::CLOCK_MOVED,
            format!("the core's clock moved by {} between rounds", human(change, Unit::One)),
        );
    }
    for cache in found.caches.iter().filter(|c| c.shared) {
        let (low, high) = cache.end.range_bytes();
        let claimed = cache.reported.map(|c| c.bytes as f64);
        if high / low > LAST_RATIO || claimed.is_some_and(|c| high < LAST_SHARE * c) {
            let of = claimed.map_or(String::new(), |c| format!(" of {} claimed", human(c, Unit::Bytes)));
            warn(&super::LAST_DRIFTS, format!("the last cache was effectively {}{of}", span(low, high)));
        }
    }
    if !found.memory_reached {
        let limit = curves.facts().get(&LIMIT).filter(|l| *l != Limit::None);
        let because = limit.map_or(String::new(), |l| format!(", bounded by {}", l.name()));
        let rounds = curves.rounds();
        let text = format!(
            "memory was not told from the caches: working sets up to {}{because}, {rounds} rounds",
            human(found.most_bytes, Unit::Bytes)
        );
        warn(&super::SHORT_LADDER, text);
    }
    out
}

/// Marks the figures that a warning weakens.
pub(super) fn flag(metrics: &mut [Metric], warnings: &[Warning]) {
    for w in warnings {
        for m in metrics.iter_mut().filter(|m| m.value.is_some()) {
            let level = m.params.get("level").map(ToString::to_string).unwrap_or_default();
            let pages = m.params.get("pages").map(ToString::to_string).unwrap_or_default();
            let weakened = match w.code.as_str() {
                c if c == super::NO_HUGE.id => pages == super::chase::HUGE,
                c if c == super::CLOCK_MOVED.id => {
                    m.id == super::LATENCY_CYCLES.id || m.id == super::CORE_CLOCK.id
                }
                c if c == super::LAST_DRIFTS.id => level == "LLC",
                _ => false,
            };
            if weakened {
                m.flag(&w.code);
            }
        }
    }
}
