//! What to read: statements and warnings of what was found against what the system reports.

use machmeter_data::Metric;

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_stats::levels::only_size_between;

use super::chase::PAGE_BYTES;
use super::curves::Curves;
use super::detect::{Cache, Detection, Saving};
use super::figures::span;
use super::plan::{GRANTED, HUGE_REFUSED, HYPERVISOR, LIMIT, Limit};
use crate::show;

/// Change of the core's clock between rounds that is worth a warning.
const CLOCK_CHANGE: f64 = 0.01;
/// Ratio of the largest and smallest effective size of the last cache that is worth one.
const LAST_RATIO: f64 = 1.3;
/// Share of the claimed last cache below which the rest belongs to others.
const LAST_SHARE: f64 = 0.6;
/// Share of memory latency taken away, from which on huge pages are worth their memory: less than what runs on one machine differ by.
const EFFECTIVE: f64 = 0.1;

/// A cache is the reported one within so many octaves: whoever shares the core makes it look smaller by up to a third.
const SAME_OCTAVES: f64 = 0.5;

const EQUAL: &str = "equal";
const DIFFERS: &str = "differs";
/// Others share a cache: the effective size is a range.
const EFFECTIVE_RANGE: &str = "effective";

/// How a cache compares with what the system reports. In a virtual machine the last cache is never said to be as claimed.
fn verdict(cache: &Cache, on_hypervisor: bool) -> &'static str {
    let Some(claim) = cache.reported else { return "not claimed" };
    let (low, high) = cache.end.range_bytes();
    if cache.shared && (on_hypervisor || high / low > LAST_RATIO) {
        return EFFECTIVE_RANGE;
    }
    let apart_octaves = (cache.end.all.capacity.bytes / claim.bytes as f64).log2().abs();
    if apart_octaves < SAME_OCTAVES { EQUAL } else { DIFFERS }
}

fn against(found: f64, claimed: Option<usize>, unit: &str) -> String {
    let claim = match claimed.filter(|c| *c > 0) {
        None => "not claimed".to_owned(),
        Some(c) => format!("{c}{unit} claimed: {}", if c as f64 == found { EQUAL } else { DIFFERS }),
    };
    format!("{found}{unit} found, {claim}")
}

pub(super) fn findings(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Finding> {
    show::present([hierarchy(curves, found), huge(found)])
}

fn hierarchy(curves: &Curves<'_>, found: &Detection<'_>) -> Option<Finding> {
    if found.caches.is_empty() {
        return None;
    }
    // Under a hypervisor, or perhaps.
    let on_hypervisor = curves.all.facts.get(&HYPERVISOR).is_none_or(|name| name != "none");
    let judged: Vec<(&Cache, &str)> = found.caches.iter().map(|c| (c, verdict(c, on_hypervisor))).collect();
    let mut evidence: Vec<String> = judged.iter().map(|(c, v)| describe(c, v)).collect();
    if let Some(line) = &found.line {
        let claimed = found.caches.iter().find_map(|c| c.reported).map(|c| c.line_bytes);
        evidence.push(format!("line: {}", against(line.next, claimed, " B")));
    }
    if let Some(ways) = &found.ways {
        let claimed = found.caches.iter().find(|c| c.number == 0).and_then(|c| c.reported).map(|c| c.ways);
        evidence.push(format!("ways of L1: {}", against(ways.last, claimed, "")));
    }
    let differs: Vec<&str> = judged.iter().filter(|j| j.1 == DIFFERS).map(|j| j.0.name.as_str()).collect();
    let effective = judged.iter().find(|j| j.1 == EFFECTIVE_RANGE);
    let (word, text) = match (&differs[..], effective) {
        ([], None) => (EQUAL, "The detected caches match the claims of the system.".to_owned()),
        ([], Some((c, _))) => {
            let (low, high) = c.end.range_bytes();
            let there = span(low, high);
            let text = "Caches match the claims of the system, but this run had only";
            (EFFECTIVE_RANGE, format!("{text} {there} of the last one."))
        }
        (names, _) => {
            let text = format!(
                "{} {} from the claim of the system. A shared cache or core looks smaller.",
                names.join(" and "),
                if names.len() == 1 { "differs" } else { "differ" }
            );
            (DIFFERS, text)
        }
    };
    Some(show::finding("memory.hierarchy", word, text, evidence))
}

fn describe(cache: &Cache, verdict: &str) -> String {
    let bytes = |b: f64| human(b, Unit::Bytes);
    let claimed =
        cache.reported.map_or("nothing claimed".to_owned(), |c| format!("{} claimed", bytes(c.bytes as f64)));
    let (name, all) = (&cache.name, &cache.end.all);
    let (low, high) = cache.end.bracket_bytes;
    let [size, from, to] = [all.capacity.bytes, low, high].map(bytes);
    if cache.shared {
        let rounds: Vec<String> = cache.end.by_round_bytes.iter().map(|s| bytes(*s)).collect();
        let rounds = rounds.join(", ");
        return format!("{name}: {size} effective (by round {rounds}), {claimed}: {verdict}");
    }
    let stated = only_size_between(low, high).map_or(String::new(), |b| format!(", so {}", bytes(b)));
    format!("{name}: {size} [{from}, {to}]{stated}; {claimed}: {verdict}")
}

fn huge(found: &Detection<'_>) -> Option<Finding> {
    let granted = found.huge_granted?;
    let mut evidence = vec![format!("granted: {}", human(granted, Unit::One))];
    let (word, text) = match &found.huge_memory {
        _ if granted < GRANTED => {
            ("denied", "Huge pages were requested, but not granted or only partly granted.".to_owned())
        }
        Some(s) if gains_little(s) => ("not effective", format!("Huge pages were granted and {}.", saved(s))),
        Some(s) if s.share().1 >= EFFECTIVE => {
            ("effective", format!("Huge pages were granted and {}.", saved(s)))
        }
        Some(s) => (
            "unknown",
            format!("Huge pages were granted and {}: too close to the threshold to decide.", saved(s)),
        ),
        None => {
            let text = "Huge pages were granted; their effect on memory latency was not measured.";
            ("granted", text.to_owned())
        }
    };
    evidence.extend(reaches(found));
    evidence.extend(found.huge_savings.iter().map(|s| {
        let [small, huge] = [s.small.value_ns, s.huge.value_ns].map(|ns| human(ns, Unit::Nanoseconds));
        format!(
            "one line per page of {}: {small} on small pages, {huge} on huge pages",
            human(s.bytes, Unit::Bytes)
        )
    }));
    Some(show::finding("memory.huge_pages", word, text, evidence))
}

/// Whether even the most that huge pages may save of memory latency is little.
fn gains_little(s: &Saving) -> bool {
    s.share().2 < EFFECTIVE
}

/// `take 27 % off memory latency (185 ns over small pages, 135 ns over huge ones)`.
fn saved(s: &Saving) -> String {
    let [small, huge] = [s.small.value_ns, s.huge.value_ns].map(|ns| human(ns, Unit::Nanoseconds));
    let share = human(s.share().0.max(0.0), Unit::One);
    format!("reduce memory latency by {share} ({small} on small pages, {huge} on huge pages)")
}

/// Pages that the buffers of translations reach, as far as they are known.
fn reaches(found: &Detection<'_>) -> Option<String> {
    let pages = |bytes: f64| (bytes / PAGE_BYTES as f64).round();
    let (first, _) = found.first_reach?;
    let second = found.second_reach.map_or(String::new(), |(low, high)| {
        format!(", the second between {} and {}", pages(low), pages(high))
    });
    Some(format!("the first TLB holds {} small pages{second}", pages(first.last)))
}

pub(super) fn warnings(curves: &Curves<'_>, found: &Detection<'_>) -> Vec<Warning> {
    let mut out = Vec::new();
    let share = |share: f64| human(share, Unit::One);
    if let Some(why) = curves.all.facts.get(&HUGE_REFUSED) {
        out.push(super::NO_HUGE.warning(format!("no huge pages: {why}")));
    } else if let Some(granted) = found.huge_granted.filter(|s| *s < GRANTED) {
        let text = format!("only {} of the requested memory came in huge pages", share(granted));
        out.push(super::NO_HUGE.warning(text));
    } else if let Some(s) = found.huge_memory.as_ref().filter(|s| gains_little(s)) {
        let reaches = reaches(found).map_or(String::new(), |text| format!("; {text}"));
        let text = format!("huge pages gain little: they {}{reaches}", saved(s));
        out.push(super::HUGE_NOT_EFFECTIVE.warning(text));
    }
    if let Some(change) = found.clock_change.filter(|c| *c > CLOCK_CHANGE) {
        let text = format!("the clock of the core changed by {} between rounds", share(change));
        out.push(super::CLOCK_MOVED.warning(text));
    }
    for cache in found.caches.iter().filter(|c| c.shared) {
        let (low, high) = cache.end.range_bytes();
        let claimed = cache.reported.map(|c| c.bytes as f64);
        if high / low > LAST_RATIO || claimed.is_some_and(|c| high < LAST_SHARE * c) {
            let of = claimed.map_or(String::new(), |c| format!(" of {} claimed", human(c, Unit::Bytes)));
            let text = format!(
                "other programs or guests share the last cache: this run had {}{of}",
                span(low, high)
            );
            out.push(super::LAST_DRIFTS.note(text));
        }
    }
    if !found.memory_reached {
        let limit = curves.all.facts.get(&LIMIT).filter(|l| *l != Limit::None);
        let because = limit.map_or(String::new(), |l| format!(", limited by {}", l.name()));
        let rounds = curves.round_ends_ns.len();
        let text = format!(
            "the ladder does not separate memory from the caches: working sets up to {}{because}, {rounds} rounds",
            human(found.most_bytes, Unit::Bytes)
        );
        out.push(super::SHORT_LADDER.warning(text));
    }
    out
}

pub(super) fn flag(metrics: &mut [Metric], warnings: &[Warning]) {
    for w in warnings {
        for m in metrics.iter_mut().filter(|m| m.value.is_some()) {
            let is = |name: &str, value: &str| m.params.get(name).is_some_and(|p| *p == value.into());
            let code = w.code.as_str();
            let of_clock = m.id == super::LATENCY_CYCLES.id || m.id == super::CORE_CLOCK.id;
            if code == super::NO_HUGE.id && is("pages", super::chase::HUGE)
                || code == super::CLOCK_MOVED.id && of_clock
                || code == super::LAST_DRIFTS.id && is("level", "LLC")
            {
                m.flag(&w.code);
            }
        }
    }
}
