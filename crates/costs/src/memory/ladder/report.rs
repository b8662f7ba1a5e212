//! What to read: statements and warnings of what was found against what the system reports.

use machmeter_data::Metric;
use machmeter_data::code::Code;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Warning};

use super::curves::Curves;
use super::detect::{Cache, Detection};
use super::figures::span;
use super::plan::{GRANTED, HUGE_REFUSED, HYPERVISOR, LIMIT, Limit};
use crate::show;

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
    curves.all.facts.get(&HYPERVISOR).is_none_or(|name| name != "none")
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
    if let Some(why) = curves.all.facts.get(&HUGE_REFUSED) {
        warn(&super::NO_HUGE, format!("no huge pages: {why}"));
    } else if let Some(share) = found.huge_granted.filter(|s| *s < GRANTED) {
        warn(
            &super::NO_HUGE,
            format!("{} of the memory asked for came in huge pages", human(share, Unit::One)),
        );
    } else if let Some((share, _)) = found.huge_effective.filter(|e| e.0 < EFFECTIVE) {
        let text = format!(
            "huge pages were granted and gain little: they save {} of what missed translations cost",
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
        let limit = curves.all.facts.get(&LIMIT).filter(|l| *l != Limit::None);
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
