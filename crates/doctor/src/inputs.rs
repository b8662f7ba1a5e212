//! Inputs of the checks: captured facts, the qualified clock and the live measurement, and functions that read them.
//!
//! A fact has a path (`cpu.count`), a value and a source. A reader returns the value, or the outcome `unknown` with the reason. A check can therefore
//! use `?` and never passes without evidence.

use std::collections::BTreeMap;

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_sys::clock::Qualification;
use machmeter_sys::topology::CpuSet;

use super::live::Live;
use super::outcome::Outcome;

#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    pub facts: &'a Facts,
    /// Facts captured a second time, later; they give rates. `None` after a single capture.
    pub later: Option<&'a Facts>,
    pub clock: Option<&'a ClockInput>,
    pub live: Option<&'a Live>,
    pub for_cpus: &'a CpuSet,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ClockInput {
    pub source: String,
    /// Uncertainty of the measured rate, parts per million; `None` if the source needs no rate.
    pub rate_error_ppm: Option<f64>,
    /// Deviation of the measured rate from the rate that the kernel publishes, parts per million.
    pub kernel_deviation_ppm: Option<f64>,
    /// Smallest advance of the counter, ns.
    pub step_ns: Option<f64>,
    /// Mean cost of one read, ns.
    pub read_ns: Option<f64>,
    /// Upper bound of the difference between the clocks of two CPUs, ns; `None` if there is no bound.
    pub cross_cpu_bound_ns: Option<f64>,
    /// Number of CPUs compared with the first CPU.
    pub compared_cpus: usize,
    /// Reads that returned an earlier time than the previous read.
    pub backward_steps: u64,
    /// Reason why the processor's counter is not used; `None` if it is used.
    pub fallback_reason: Option<String>,
}

impl From<&Qualification> for ClockInput {
    fn from(q: &Qualification) -> Self {
        let rate = q.tick_rate();
        Self {
            source: q.source().name().to_owned(),
            rate_error_ppm: q.rate.as_ref().map(|r| r.error_ppm),
            kernel_deviation_ppm: q.deviation_ppm,
            step_ns: q.step().map(|s| s.granularity_ticks * rate.ns_per_tick()),
            read_ns: q.read_cost_ns(),
            cross_cpu_bound_ns: q.cross_cpu_bound_ns(),
            compared_cpus: q.cross_cpu.len(),
            backward_steps: q.backward_steps() as u64,
            fallback_reason: q.verdict.fallback_reason.clone(),
        }
    }
}

/// A fact whose state is definite.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    Value(&'a Fact),
    /// The system has no such thing; the text is the reason.
    Nothing(&'a str),
}

/// Looks `path` up. Returns a value or a stated absence; any other state is the outcome `unknown` with the reason.
pub(super) fn look<'a>(facts: &'a Facts, path: &str) -> Result<Seen<'a>, Outcome> {
    let Some(fact) = facts.get(path) else {
        return Err(Outcome::unknown(format!("{path} was not captured")).source(path));
    };
    let why = fact.why.as_deref().unwrap_or("no reason given");
    match fact.state {
        FactState::Known if fact.value.is_some() => Ok(Seen::Value(fact)),
        FactState::Absent | FactState::Unsupported => Ok(Seen::Nothing(why)),
        _ => Err(Outcome::unknown(format!("{path}: {why}")).source(fact.source.clone())),
    }
}

fn value<'a>(facts: &'a Facts, path: &str) -> Result<&'a Fact, Outcome> {
    match look(facts, path)? {
        Seen::Value(fact) => Ok(fact),
        Seen::Nothing(why) => Err(Outcome::unknown(format!("{path}: {why}"))),
    }
}

fn not_a(kind: &str, path: &str, fact: &Fact) -> Outcome {
    Outcome::unknown(format!("{path} is no {kind}: {}", fact.human().unwrap_or_default()))
        .source(fact.source.clone())
}

pub(super) fn amount_in(facts: &Facts, path: &str) -> Result<f64, Outcome> {
    let fact = value(facts, path)?;
    fact.number().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(|| not_a("amount", path, fact))
}

/// Entries of a fact whose value is a map.
pub(super) type Entries = BTreeMap<String, FactValue>;

/// The CPU list at `key` of a map in the fact `path`.
pub(super) fn cpus_at(path: &str, entries: &Entries, key: &str) -> Result<CpuSet, Outcome> {
    let list = entries.get(key).and_then(FactValue::text);
    let cpus = list.and_then(|list| list.parse().ok());
    cpus.ok_or_else(|| Outcome::unknown(format!("{path} has no CPU list at `{key}`")))
}

/// The texts of a list; a single text is a list of one.
pub(super) fn texts_of(value: &FactValue) -> Option<Vec<&str>> {
    match value {
        FactValue::Text(t) => Some(vec![t]),
        FactValue::List(items) => items.iter().map(FactValue::text).collect(),
        _ => None,
    }
}

impl<'a> Inputs<'a> {
    pub(super) fn look(&self, path: &str) -> Result<Seen<'a>, Outcome> {
        look(self.facts, path)
    }

    pub(super) fn amount(&self, path: &str) -> Result<f64, Outcome> {
        amount_in(self.facts, path)
    }

    /// Reads an amount that is an upper limit; `unlimited` is infinity.
    pub(super) fn limit(&self, path: &str) -> Result<f64, Outcome> {
        match self.look(path)? {
            Seen::Value(fact) if fact.text() == Some("unlimited") => Ok(f64::INFINITY),
            _ => self.amount(path),
        }
    }

    pub(super) fn text(&self, path: &str) -> Result<&'a str, Outcome> {
        let fact = value(self.facts, path)?;
        fact.text().ok_or_else(|| not_a("text", path, fact))
    }

    pub(super) fn texts(&self, path: &str) -> Result<Vec<&'a str>, Outcome> {
        let fact = value(self.facts, path)?;
        fact.value.as_ref().and_then(texts_of).ok_or_else(|| not_a("list of texts", path, fact))
    }

    pub(super) fn entries(&self, path: &str) -> Result<&'a Entries, Outcome> {
        let fact = value(self.facts, path)?;
        fact.value.as_ref().and_then(FactValue::entries).ok_or_else(|| not_a("map", path, fact))
    }

    /// Reads a list of maps.
    pub(super) fn maps(&self, path: &str) -> Result<Vec<&'a Entries>, Outcome> {
        let fact = value(self.facts, path)?;
        let items = fact.value.as_ref().and_then(FactValue::items);
        let maps = items.and_then(|items| items.iter().map(FactValue::entries).collect());
        maps.ok_or_else(|| not_a("list of maps", path, fact))
    }

    pub(super) fn flag(&self, path: &str) -> Result<bool, Outcome> {
        let fact = value(self.facts, path)?;
        self.facts.flag(path).ok_or_else(|| not_a("yes or no", path, fact))
    }

    /// Reads a CPU list in the kernel's format.
    pub(super) fn cpus(&self, path: &str) -> Result<CpuSet, Outcome> {
        let text = self.text(path)?;
        text.parse().map_err(|e| Outcome::unknown(format!("{path}: {e}")))
    }

    /// The hypervisor below the kernel, `none` on bare hardware. `None` if the fact has no value, also if its read was denied.
    pub(super) fn hypervisor(&self) -> Option<&'a str> {
        self.facts.text("virt.hypervisor")
    }

    /// Time between the two captures, ns; `None` without a second one.
    pub(super) fn span_ns(&self) -> Result<Option<f64>, Outcome> {
        let Some(later) = self.later else { return Ok(None) };
        let span_ns = amount_in(later, "time.uptime")? - amount_in(self.facts, "time.uptime")?;
        if span_ns > 0.0 {
            Ok(Some(span_ns))
        } else {
            Err(Outcome::unknown("no time passed between the two captures").source("/proc/uptime"))
        }
    }

    /// Growth of a counter between the two captures; `None` without a second one. A counter that went backward is unknown.
    pub(super) fn gained(&self, path: &str) -> Result<Option<f64>, Outcome> {
        let Some(later) = self.later else { return Ok(None) };
        let gained = amount_in(later, path)? - self.amount(path)?;
        if gained >= 0.0 {
            Ok(Some(gained))
        } else {
            Err(Outcome::unknown(format!("the counter {path} went backward")))
        }
    }

    /// The sources of `paths`, each once, separated by commas.
    pub(super) fn sources(&self, paths: &[&str]) -> String {
        let mut sources: Vec<&str> = Vec::new();
        for path in paths {
            let source = self.facts.get(path).map_or(*path, |f| f.source.as_str());
            if !sources.contains(&source) {
                sources.push(source);
            }
        }
        sources.join(", ")
    }

    pub(super) fn measured(&self) -> String {
        named(self.for_cpus)
    }
}

/// `CPU 3` or `CPUs 2-3`.
pub(super) fn named(cpus: &CpuSet) -> String {
    if cpus.len() == 1 { format!("CPU {cpus}") } else { format!("CPUs {cpus}") }
}

pub(super) fn duration(ns: f64) -> String {
    human(ns, Unit::Nanoseconds)
}

pub(super) fn size(bytes: f64) -> String {
    human(bytes, Unit::Bytes)
}

/// Three significant digits, without trailing zeros after the point.
pub(super) fn three_digits(value: f64) -> String {
    let text = digits(value);
    let trimmed = text.contains('.') && !text.contains('e');
    if trimmed { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stated_absence_is_not_the_same_as_a_fact_nobody_captured() {
        let mut facts = Facts::default();
        assert!(look(&facts, "load.psi_cpu_10s").is_err());
        facts.set("load.psi_cpu_10s", Fact::missing(FactState::Absent, "/proc/pressure/cpu", "no such file"));
        assert!(matches!(look(&facts, "load.psi_cpu_10s"), Ok(Seen::Nothing("no such file"))));
        facts
            .set("load.psi_cpu_10s", Fact::missing(FactState::Denied, "/proc/pressure/cpu", "no permission"));
        assert!(look(&facts, "load.psi_cpu_10s").unwrap_err().observed.contains("no permission"));
        facts.set("load.psi_cpu_10s", Fact::known(-1.0, "/proc/pressure/cpu"));
        assert!(amount_in(&facts, "load.psi_cpu_10s").is_err(), "a share below zero is no evidence");
    }

    #[test]
    fn figures_are_short() {
        let shown = [0.0, 0.041_23, 1.0, 2.345, 10.04, 99.96, 1234.5].map(three_digits);
        assert_eq!(shown, ["0", "0.0412", "1", "2.35", "10", "100", "1234"]);
        assert_eq!((duration(133_000.0), size(8_388_608.0)), ("133 us".to_owned(), "8.00 MiB".to_owned()));
    }
}
