//! What checks judge: captured facts, the qualified clock, live measurements; and how they read them.

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};
use machmeter_data::quantity::{Unit, digits, human};
use machmeter_sys::clock::Qualification;
use machmeter_sys::topology::CpuSet;

use super::live::Live;
use super::outcome::Outcome;

#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    pub facts: &'a Facts,
    /// The machine some time later, for rates.
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
    /// Measured rate against the one the kernel publishes, parts per million.
    pub kernel_deviation_ppm: Option<f64>,
    /// Smallest advance of the counter, ns.
    pub step_ns: Option<f64>,
    /// Mean cost of one read, ns.
    pub read_ns: Option<f64>,
    /// Largest amount by which the stamps of two CPUs can be apart, ns; `None` if it could not be bounded.
    pub cross_cpu_bound_ns: Option<f64>,
    /// CPUs that were compared with the first.
    pub compared_cpus: usize,
    /// Reads that showed an earlier time than the read before.
    pub backward_steps: u64,
    /// Why the processor's counter is not used, if it is not.
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

/// A fact that was looked for and understood.
#[derive(Debug, Clone, Copy)]
pub(super) enum Seen<'a> {
    Value(&'a Fact),
    /// The system was asked and has no such thing, for this reason.
    Nothing(&'a str),
}

/// The fact at `path`: a value, a stated absence, or the outcome `unknown` with the reason.
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
    Outcome::unknown(format!("{path} is no {kind}: {:?}", fact.value)).source(fact.source.clone())
}

pub(super) fn amount_in(facts: &Facts, path: &str) -> Result<f64, Outcome> {
    let fact = value(facts, path)?;
    fact.number().filter(|n| n.is_finite() && *n >= 0.0).ok_or_else(|| not_a("amount", path, fact))
}

/// The texts of a list; a single text is a list of one.
pub(super) fn texts_of(fact: &Fact) -> Option<Vec<&str>> {
    match fact.value.as_ref()? {
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

    /// An amount that bounds; infinite where it is `unlimited`.
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
        texts_of(fact).ok_or_else(|| not_a("list of texts", path, fact))
    }

    pub(super) fn flag(&self, path: &str) -> Result<bool, Outcome> {
        let fact = value(self.facts, path)?;
        self.facts.flag(path).ok_or_else(|| not_a("yes or no", path, fact))
    }

    /// A CPU list in the kernel's format.
    pub(super) fn cpus(&self, path: &str) -> Result<CpuSet, Outcome> {
        let text = self.text(path)?;
        text.parse().map_err(|e| Outcome::unknown(format!("{path}: {e}")))
    }

    /// What lies below the kernel, `none` for the hardware. A fact that was refused counts as not seen.
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

    /// What a counter gained between the two captures; `None` without a second one.
    pub(super) fn gained(&self, path: &str) -> Result<Option<f64>, Outcome> {
        let Some(later) = self.later else { return Ok(None) };
        let gained = amount_in(later, path)? - self.amount(path)?;
        if gained >= 0.0 {
            Ok(Some(gained))
        } else {
            Err(Outcome::unknown(format!("the counter {path} went backward")))
        }
    }

    /// The sources of `paths`, each once.
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

/// Three significant digits without trailing zeros after the point.
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
