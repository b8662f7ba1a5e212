//! Parts: a probe of costs is a list of them, with cells and analysis, in one pool ([`crate::experiment`]) by weight.

mod together;

use std::path::Path;

use clap::Args;
use machmeter_data::code::Code;
use machmeter_data::record::Warning;
use machmeter_data::summary::{Fit, Fitness, Purpose};
use machmeter_data::{MetricInfo, Table};
use machmeter_sys::sched;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cost::estimate::Known;
use crate::cost::{Fact, Facts, Row, Rows};
use crate::disturbance::core_clock;
use crate::experiment::Set;
use crate::probe::{Measured, Output, Pool, parameters};
use crate::selftest::{self, Injection, SelfTest};
use crate::team::sampler::HostClock;
use crate::{Analysis, Host, Info, Level, Page, Probe, ProbeError};
use together::Given;

pub use together::{Bound, Pooled, run as run_together};

/// A part of a probe with parameters `P`.
pub struct Part<P: 'static> {
    /// Name, as in `--parts` and in rows.
    pub name: &'static str,
    /// Its share of the time, relative to the other parts that run.
    pub weight: u32,
    /// Makes what its cells need and gives them to the pool ([`PartContext::run`]), on the thread that measures.
    pub measure: Measure<P>,
    /// What the rows say. `rows` holds all parts; a part reads its own, and others where it needs them.
    pub analyze: fn(&P, &Rows, u64) -> Analysis,
    pub metrics: &'static [MetricInfo],
    pub codes: &'static [Code],
    pub selftest: &'static [Injection],
}

pub type Measure<P> = fn(&mut PartContext<'_>, &P) -> Result<(), ProbeError>;

impl<P> Part<P> {
    /// A part without metrics, warnings and self-test of its own.
    pub const fn of(
        name: &'static str,
        weight: u32,
        measure: Measure<P>,
        analyze: fn(&P, &Rows, u64) -> Analysis,
    ) -> Self {
        Self { name, weight, measure, analyze, metrics: &[], codes: &[], selftest: &[] }
    }
}

/// A probe that is a list of parts.
pub trait Verb: 'static {
    const INFO: Info;
    /// Its parts, in the order in which they run and stand on the page.
    const PARTS: &'static [Part<Self::Params>];
    /// Warning that a part could not be measured.
    const NOT_MEASURED: Code;
    const PAGE: Page;
    /// Time that its self-test takes at most, quick and full, s.
    const SELFTEST_WITHIN_S: [u64; 2];
    /// Wall time when none is given, quick, standard and thorough, s.
    const SECONDS: [u64; 3];
    type Params: Args + Serialize + DeserializeOwned + JsonSchema + Sync + 'static;

    /// Names of the parts asked for; all when empty.
    fn names(_params: &Self::Params) -> &[String] {
        &[]
    }

    /// Looks at what was asked for by name.
    fn check(_params: &Self::Params) -> Result<(), ProbeError> {
        Ok(())
    }

    /// As [`Probe::commands`].
    fn commands(_params: &Self::Params) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// As [`Probe::destinations`].
    fn destinations(_params: &Self::Params) -> Vec<(&'static str, &Path)> {
        Vec::new()
    }

    /// As [`Probe::attend`].
    fn attend(_params: &Self::Params) -> Option<bool> {
        None
    }

    /// As [`Probe::give_up`].
    fn give_up(_params: &Self::Params) {}
}

impl<V: Verb> Probe for V {
    const INFO: Info = V::INFO;
    const PAGE: Page = V::PAGE;
    const SELFTEST: SelfTest =
        SelfTest { within_s: V::SELFTEST_WITHIN_S, tries_again: false, run: selftest::run::<V> };
    const POOLED: Option<Pool> = Some(|value| Ok(Box::new(Given::<V, _>::new(parameters::<V>(value)?))));
    type Params = V::Params;
    type Samples = Rows;

    fn default_ns(params: &V::Params, level: Level) -> Result<u64, ProbeError> {
        select(V::PARTS, V::names(params))?;
        V::check(params)?;
        let [quick, standard, thorough] = V::SECONDS;
        let seconds = match level {
            Level::Quick => quick,
            Level::Standard => standard,
            Level::Thorough => thorough,
            Level::Soak => level.probe_seconds(),
        };
        Ok(seconds * 1_000_000_000)
    }

    fn measure(host: &Host<'_>, params: &V::Params) -> Result<Measured<Rows>, ProbeError> {
        let mut measured = together::measure(host, &[(&Given::<V, _>::new(params), 1)])?;
        measured.pop().ok_or_else(|| ProbeError::Cannot("nothing was measured".to_owned()))
    }

    fn commands(params: &V::Params) -> Vec<(&'static str, &str)> {
        V::commands(params)
    }

    fn destinations(params: &V::Params) -> Vec<(&'static str, &Path)> {
        V::destinations(params)
    }

    fn attend(params: &V::Params) -> Option<bool> {
        V::attend(params)
    }

    fn give_up(params: &V::Params) {
        V::give_up(params);
    }

    fn analyze(params: &V::Params, samples: &Rows, seed: u64) -> Analysis {
        analyze::<V>(params, samples, seed)
    }

    fn tables(samples: &Rows) -> Vec<Table> {
        samples.to_tables(V::INFO.name)
    }

    fn from_tables(tables: &[Table]) -> Result<Rows, ProbeError> {
        Rows::from_tables(V::INFO.name, tables)
    }
}

/// Where a part is made ready.
pub struct PartContext<'a> {
    pub host: &'a Host<'a>,
    /// When the time that this part has by its weight would be over if nobody else ran, monotonic ns: for plans.
    pub until_ns: u64,
    pub policy: sched::Policy,
    /// What moments of samples count from, monotonic ns.
    pub start_ns: u64,
    /// What its analysis needs beside the rows.
    pub facts: Facts,
    /// Rows without cells: what cannot be measured.
    pub rows: Vec<Row>,
    /// Files that its parameters ask for; who called writes them.
    pub outputs: Vec<Output>,
    next: &'a mut dyn FnMut(Box<dyn Set + '_>),
}

impl PartContext<'_> {
    /// Gives cells to the pool; comes back when everything has been measured.
    pub fn run(&mut self, set: impl Set) {
        (self.next)(Box::new(set));
    }

    /// Time that this part has by its weight, ns.
    pub fn left_ns(&self) -> u64 {
        self.until_ns.saturating_sub(machmeter_sys::thread::monotonic_ns())
    }

    pub fn clock(&self) -> HostClock {
        HostClock { source: self.host.source(), rate: self.host.rate }
    }

    pub fn cpus(&self) -> Vec<usize> {
        self.host.cpus.to_vec()
    }
}

/// The parts with these names, or all if none is named.
fn select<'p, P>(parts: &'p [Part<P>], names: &[String]) -> Result<Vec<&'p Part<P>>, ProbeError> {
    if let Some(wrong) = names.iter().find(|n| !parts.iter().any(|p| p.name == n.as_str())) {
        let known: Vec<&str> = parts.iter().map(|p| p.name).collect();
        return Err(ProbeError::Usage(format!("part '{wrong}' is not one of {}", known.join(", "))));
    }
    Ok(parts.iter().filter(|p| names.is_empty() || names.iter().any(|n| n == p.name)).collect())
}

/// Analyses of all parts put together; lines of one section of the page are joined.
fn analyze<V: Verb>(params: &V::Params, rows: &Rows, seed: u64) -> Analysis {
    let mut out = Analysis::default();
    out.warnings.extend(shared_core(V::INFO.name, rows));
    out.summary.fitness.extend(throughput(rows));
    out.warnings.extend(core_clock::warning(V::INFO.name, rows));
    out.remember.extend(core_clock::quick_addition_ns(rows).map(|ns| (QUICK_ADDITION.to_owned(), ns)));
    let inverse_width = rows.facts.get(&CPU).zip(rows.inverse_width());
    out.remember.extend(inverse_width.map(|(cpu, n)| (narrowest(cpu), n)));
    for part in V::PARTS.iter().filter(|p| rows.part(p.name).next().is_some()) {
        let a = (part.analyze)(params, rows, seed);
        out.metrics.extend(a.metrics);
        out.datasets.extend(a.datasets);
        out.findings.extend(a.findings);
        for warning in a.warnings {
            warn(&mut out.warnings, warning);
        }
        out.remember.extend(a.remember);
        out.summary.add(a.summary);
        for row in rows.part(part.name).filter(|r| r.operation == "part") {
            out.warnings.push(V::NOT_MEASURED.warning(format!(
                "{} was not measured: {}",
                part.name,
                row.refused.as_deref().unwrap_or("no reason given")
            )));
        }
    }
    out
}

machmeter_data::code! { pub SHARED_CORE = "W448" "core shared",
    what: "The core's other hardware thread (SMT sibling) was busy during part of the samples: another guest of the host, or a program on a sibling CPU.",
    why: "Two hardware threads share the core's units and first caches, so most operations take longer, some by half. Figures leave such samples out if \
          enough others remain. Else they are marked core shared, and their intervals reach down to the bound from undisturbed samples. Quantiles \
          include all samples.",
    how: "A mixture of additions is timed against dependent additions before, between and after the two batches of each pair of samples. The ratio \
          depends on the sibling's activity, not on the clock.",
    next: "On a rented machine, choose one with whole cores. On your own machine, keep the sibling idle or switch SMT off. Quantiles show the cost to \
           programs next to the neighbor.",
}

/// Key of what a dependent addition took beside samples at the quick clock of the core (that of `noise` is finer).
const QUICK_ADDITION: &str = "costs.quick_addition_ns";
const CPU: Fact<usize> = Fact::named("core.cpu");

/// Key of the least cost of an independent over a dependent addition, by CPU: not all need be alike.
fn narrowest(cpu: usize) -> String {
    format!("costs.mix_160_of_adds_64.cpu{cpu}")
}

/// Share of the samples with a neighbor that is worth a word.
const SHARED_SHARE: f64 = 0.05;

/// What a neighbor on the core did. Figures stand behind a colon: see [`Record::warn`](machmeter_data::Record::warn).
fn shared_core(probe: &str, rows: &Rows) -> Option<Warning> {
    let (share, n) = rows.shared_core().filter(|(share, _)| *share > SHARED_SHARE)?;
    let marked = |r: &&Row| rows.cost(r).known().is_some_and(Known::is_shared);
    let looked = || rows.rows.iter().filter(|r| r.pairs.iter().any(|p| p.core.width > 0.0));
    let (all, marked) = (looked().count(), looked().filter(marked).count());
    let marked =
        if marked == 0 { String::new() } else { format!(", which {marked} of {all} figures include") };
    Some(SHARED_CORE.note(format!(
        "another hardware thread used the core: {probe} {:.0} % of {n} samples{marked}",
        share * 100.0
    )))
}

/// A busy hardware thread beside a measured one lowers the throughput of the core.
fn throughput(rows: &Rows) -> Option<Fitness> {
    let (share, _) = rows.shared_core().filter(|(share, _)| *share > SHARED_SHARE)?;
    let reason = format!("another hardware thread used the core {:.0} % of the time", share * 100.0);
    Some(Fitness { purpose: Purpose::Throughput.name().to_owned(), fit: Fit::Partly, reason })
}

/// Adds a warning; parts that warn of the same become one warning, which says what they share up to a colon once.
pub fn warn(into: &mut Vec<Warning>, from: Warning) {
    match into.iter_mut().find(|w| w.code == from.code) {
        Some(w) if w.text != from.text => {
            let told = |(head, _): &(&str, &str)| w.text.starts_with(&format!("{head}: "));
            let rest = from.text.split_once(": ").filter(told).map_or(from.text.as_str(), |(_, tail)| tail);
            w.text = format!("{}; {rest}", w.text.trim_end_matches('.'));
        }
        Some(_) => {}
        None => into.push(from),
    }
}
