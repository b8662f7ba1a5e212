//! Parts: a probe of costs is a list of parts, each with its own measurement and its own analysis of its rows. Parts share
//! the time by weight, and the thread that measures.

use clap::Args;
use machmeter_data::code::Code;
use machmeter_data::record::{Summary, SummaryLine, Warning};
use machmeter_data::{MetricInfo, Table};
use machmeter_sys::sched;
use machmeter_sys::thread::spawn_placed_scoped;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cost::estimate::Known;
use crate::cost::{Row, Rows};
use crate::placement;
use crate::probe::Measured;
use crate::sampling::{HostTiming, Sampler};
use crate::selftest::{self, Injection, SelfTest};
use crate::team::sampler::HostClock;
use crate::{Analysis, Host, Info, Level, Page, Probe, ProbeError};

/// A part of a probe with parameters `P`.
pub struct Part<P: 'static> {
    /// Name, as in `--parts` and in rows.
    pub name: &'static str,
    /// Its share of the time, relative to the other parts that run.
    pub weight: u32,
    /// Measures on the calling thread, which sits on the first measured CPU, until `at.until_ns`.
    pub measure: Measure<P>,
    /// What the rows say. `rows` holds all parts; a part reads its own, and others where it needs them.
    pub analyze: fn(&P, &Rows, u64) -> Analysis,
    pub metrics: &'static [MetricInfo],
    pub codes: &'static [Code],
    pub selftest: &'static [Injection],
}

pub type Measure<P> = fn(&mut At<'_, '_>, &P) -> Result<Vec<Row>, ProbeError>;

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
pub trait Verb {
    const INFO: Info;
    /// Its parts, in the order in which they run and stand on the page.
    const PARTS: &'static [Part<Self::Params>];
    /// Warning that a part could not be measured.
    const NOT_MEASURED: Code;
    const PLACE: u8;
    /// Time that its self-test takes at most, quick and full, s.
    const SELFTEST_WITHIN_S: [u64; 2];
    type Params: Args + Serialize + DeserializeOwned + JsonSchema + Sync + 'static;

    /// Names of the parts asked for; all when empty.
    fn names(params: &Self::Params) -> &[String];

    /// Wall time when none is given, s.
    fn seconds(level: Level) -> u64;

    /// Looks at what was asked for by name.
    ///
    /// # Errors
    /// One line: what is not there.
    fn check(_params: &Self::Params) -> Result<(), ProbeError> {
        Ok(())
    }

    /// As [`Probe::commands`].
    fn commands(_params: &Self::Params) -> Vec<(&'static str, &str)> {
        Vec::new()
    }
}

impl<V: Verb> Probe for V {
    const INFO: Info = V::INFO;
    const PAGE: Page = Page { place: V::PLACE, parameters: "{}", least_ns: 0 };
    const SELFTEST: SelfTest =
        SelfTest { within_s: V::SELFTEST_WITHIN_S, tries_again: false, run: selftest::run::<V> };
    type Params = V::Params;
    type Samples = Rows;

    fn default_ns(params: &V::Params, level: Level) -> Result<u64, ProbeError> {
        select(V::PARTS, V::names(params))?;
        V::check(params)?;
        Ok(V::seconds(level) * 1_000_000_000)
    }

    fn measure(host: &Host<'_>, params: &V::Params) -> Result<Measured<Rows>, ProbeError> {
        V::check(params)?;
        let mut measured = measure(host, params, V::PARTS, V::names(params))?;
        let started = V::commands(params).into_iter();
        measured.side_effects.extend(started.map(|(key, line)| format!("started {line:?} ({key})")));
        Ok(measured)
    }

    fn commands(params: &V::Params) -> Vec<(&'static str, &str)> {
        V::commands(params)
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

pub struct At<'h, 's> {
    pub host: &'h Host<'h>,
    pub sampler: &'s mut Sampler<HostTiming>,
    /// When this part has to be done, monotonic ns.
    pub until_ns: u64,
    pub policy: sched::Policy,
    pub facts: &'s mut std::collections::BTreeMap<String, String>,
}

impl At<'_, '_> {
    /// Time left for this part, ns.
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

/// Share of a probe's time that is kept for analysis and storage.
const KEPT: f64 = 0.05;

/// The parts with these names, or all if none is named.
///
/// # Errors
/// A name that no part has: one line with those there are.
fn select<'p, P>(parts: &'p [Part<P>], names: &[String]) -> Result<Vec<&'p Part<P>>, ProbeError> {
    if let Some(wrong) = names.iter().find(|n| !parts.iter().any(|p| p.name == n.as_str())) {
        let known: Vec<&str> = parts.iter().map(|p| p.name).collect();
        return Err(ProbeError::Usage(format!("part '{wrong}' is not one of {}", known.join(", "))));
    }
    Ok(parts.iter().filter(|p| names.is_empty() || names.iter().any(|n| n == p.name)).collect())
}

/// Measures the selected parts one after the other on a thread on the first measured CPU.
///
/// # Errors
/// The first part's error that is one of the request; what the system refuses a part is a refused row of that part.
fn measure<P: Sync>(
    host: &Host<'_>,
    params: &P,
    parts: &[Part<P>],
    names: &[String],
) -> Result<Measured<Rows>, ProbeError> {
    let selected = select(parts, names)?;
    let plan = placement::plan(
        &host.cpus,
        &host.allowed,
        &host.priority,
        &Err("costs are measured under the ordinary policy".to_owned()),
    );
    let kept_ns = (host.budget.total_ns() as f64 * KEPT).min(2e9) as u64;
    let cpu = host.cpus.first();
    let work = || measure_here(host, params, &selected, plan.policy, kept_ns);
    let (samples, complete) = std::thread::scope(|scope| {
        spawn_placed_scoped(scope, "mm-cost", cpu, plan.policy, work)
            .map_err(|e| ProbeError::Cannot(e.to_string()))?
            .join()
    })?;
    Ok(Measured { samples, policy: plan.policy.to_string(), side_effects: Vec::new(), complete })
}

fn measure_here<P>(
    host: &Host<'_>,
    params: &P,
    selected: &[&Part<P>],
    policy: sched::Policy,
    kept_ns: u64,
) -> Result<(Rows, bool), ProbeError> {
    let mut rows = Rows { tick_hz: host.rate.hz(), step_ticks: host.clock.step_ticks(), ..Rows::default() };
    let cpu = host.cpus.first().unwrap_or(0).to_string();
    rows.remember_width((host.best_ever)(&narrowest(&cpu)));
    rows.facts.insert(CPU.to_owned(), cpu);
    let mut sampler = Sampler::on(host);
    let mut complete = true;
    for (i, part) in selected.iter().enumerate() {
        let weights: u32 = selected[i..].iter().map(|p| p.weight).sum();
        let left_ns = host.budget.left_ns().saturating_sub(kept_ns);
        let share_ns = (left_ns as f64 * f64::from(part.weight) / f64::from(weights.max(1))) as u64;
        if crate::budget::stop_requested() {
            complete = false;
            break;
        }
        host.progress.step(part.name);
        let until_ns = machmeter_sys::thread::monotonic_ns() + share_ns;
        let mut at = At { host, sampler: &mut sampler, until_ns, policy, facts: &mut rows.facts };
        match (part.measure)(&mut at, params) {
            Ok(found) => rows.rows.extend(found),
            Err(ProbeError::Cannot(why)) => {
                let mut row = Row::new(part.name, "part", crate::cost::Kind::Latency);
                row.refused = Some(why);
                rows.rows.push(row);
            }
            Err(e) => return Err(e),
        }
    }
    rows.tell_width();
    Ok((rows, complete && !crate::budget::stop_requested()))
}

/// Analyses of all parts put together; lines of one section of the page are joined.
fn analyze<V: Verb>(params: &V::Params, rows: &Rows, seed: u64) -> Analysis {
    let mut out = Analysis::default();
    out.warnings.extend(shared_core(V::INFO.name, rows));
    let narrowness = rows.facts.get(CPU).zip(rows.narrowness());
    out.remember.extend(narrowness.map(|(cpu, n)| (narrowest(cpu), n)));
    for part in V::PARTS.iter().filter(|p| rows.part(p.name).next().is_some()) {
        let a = (part.analyze)(params, rows, seed);
        out.metrics.extend(a.metrics);
        out.datasets.extend(a.datasets);
        out.findings.extend(a.findings);
        for warning in a.warnings {
            warn(&mut out.warnings, warning);
        }
        out.remember.extend(a.remember);
        join(&mut out.summary, a.summary);
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

/// Somebody else on the core, whom nothing else shows.
pub const SHARED_CORE: Code = Code {
    id: "W448",
    name: "core shared",
    what: "During part of the samples somebody else used the same core: its other hardware thread was at work, for another guest of \
           the host or for a program on a sibling CPU.",
    why: "Two hardware threads share the core's units and first caches: most operations take longer then, some half as long again. \
          Such samples are left out of the figures as long as enough others remain; figures of the rest are marked core shared, and \
          their intervals reach down to what undisturbed samples bound. Quantiles are of all samples.",
    how: "A mixture of additions beside dependent ones, before, between and after the two batches of each pair of samples: their \
          ratio falls while another hardware thread of the core works, whatever the clock does.",
    next: "On a rented machine choose one with whole cores; on your own, keep the sibling idle or switch SMT off. Quantiles show \
           what programs pay beside the neighbour.",
    undo: None,
};

const CPU: &str = "core.cpu";

/// Key under which the least that an independent addition costs of a dependent one is remembered for a CPU of a kind of machine: not all
/// of its CPUs need be alike.
fn narrowest(cpu: &str) -> String {
    format!("costs.mix_160_of_adds_64.cpu{cpu}")
}

/// Share of the samples with a neighbour that is worth a word.
const SHARED_SHARE: f64 = 0.05;

/// What a neighbour on the core did to a probe. Figures and name stand behind a colon, so that probes that all had one say the first
/// half once ([`Record::warn`](machmeter_data::Record::warn)).
fn shared_core(probe: &str, rows: &Rows) -> Option<Warning> {
    let (share, n) = rows.shared_core().filter(|(share, _)| *share > SHARED_SHARE)?;
    let marked = |r: &&Row| rows.cost(r).known().is_some_and(Known::is_shared);
    let looked = || rows.rows.iter().filter(|r| r.pairs.iter().any(|p| p.core_width > 0.0));
    let (all, marked) = (looked().count(), looked().filter(marked).count());
    Some(SHARED_CORE.warning(format!(
            "somebody else used the core: during {:.0} % of {n} samples of {probe} ({marked} of {all} figures are marked core \
             shared)",
            share * 100.0
        )))
}

/// Adds a warning; parts that warn of the same become one warning.
fn warn(into: &mut Vec<Warning>, from: Warning) {
    match into.iter_mut().find(|w| w.code == from.code) {
        Some(w) if w.text != from.text => w.text = format!("{}; {}", w.text.trim_end_matches('.'), from.text),
        Some(_) => {}
        None => into.push(from),
    }
}

fn join(into: &mut Summary, from: Summary) {
    for SummaryLine { section, lines } in from.lines {
        match into.lines.iter_mut().find(|l| l.section == section) {
            Some(l) => l.lines.extend(lines),
            None => into.lines.push(SummaryLine { section, lines }),
        }
    }
    into.tiles.extend(from.tiles);
    if !from.verdict.is_empty() {
        into.verdict =
            if into.verdict.is_empty() { from.verdict } else { format!("{} {}", into.verdict, from.verdict) };
    }
}
