//! Estimates the usual range of a figure over machines of one kind, from published tables or from stored records.
//!
//! A source must define the figure as this program does; else the figure has no range.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machmeter_data::summary::{Shows, Usual, selects};
use machmeter_data::{Facts, Metric, ParamValue, Quality, Record};
use machmeter_stats::quantile;
use serde::Deserialize;

use crate::{identity, machine};

/// Least number of machines for a range. With fewer, interpolated percentiles are little more than the extremes.
pub const MIN_MACHINES: usize = 5;
/// Most figures in the rows of a record; a record of all probes has about 150.
const MAX_FIGURES: usize = 1_000;
/// Most bytes of a metric's key; the longest of this version has about 120.
const MAX_KEY_BYTES: usize = 300;
/// Model that QEMU, Firecracker and similar hypervisors write into the device tree of a guest.
const GUEST_MODEL: &str = "linux,dummy-virt";

/// A range and the figures that it applies to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// Selector in the syntax of [`machmeter_data::summary::Pick::new`].
    selector: String,
    #[serde(default)]
    shows: Shows,
    #[serde(flatten)]
    usual: Usual,
}

#[derive(Default, Deserialize)]
struct Published {
    range: Vec<Entry>,
}

static PUBLISHED: LazyLock<Published> =
    LazyLock::new(|| toml::from_str(include_str!("reference.toml")).unwrap_or_default());

/// The usual range of a metric's figure on machines of the record's kind. Published ranges come before `grown` ones, because they are the same for every
/// user.
pub fn usual_shown(grown: &[Entry], metric: &Metric, shows: &Shows, record: &Record) -> Option<Usual> {
    let kind = kind(record)?;
    if !apart(metric, &record.machine.before) {
        return None;
    }
    let fits = |e: &&Entry| e.usual.kind == kind && e.shows == *shows && selects(&e.selector, metric);
    PUBLISHED.range.iter().chain(grown).find(fits).map(|e| e.usual.clone())
}

/// Sets the usual ranges of the figures in the rows of a record; existing ranges stay.
pub fn fill(grown: &[Entry], record: &mut Record) {
    let mut rows = std::mem::take(&mut record.summary.rows);
    for figure in rows.iter_mut().flat_map(|r| &mut r.figures).filter(|f| f.usual.is_none()) {
        let found = figure.find(&record.metrics);
        figure.usual = found.and_then(|s| usual_shown(grown, s.metric, &figure.shows, record));
    }
    record.summary.rows = rows;
}

/// The kind of a machine. A hypervisor makes it a guest; else the firmware's chassis type decides, else a device tree makes it a board. `None` if the record
/// does not show it.
pub fn kind(record: &Record) -> Option<&'static str> {
    let facts = &record.machine.before;
    let product = facts.get("virt.product");
    let is_bare = ["bare metal", "unknown"].contains(&identity::virtualization(facts).as_str());
    if !is_bare || product.and_then(|p| p.text()).is_some_and(|p| p.contains(GUEST_MODEL)) {
        return Some("guest");
    }
    match facts.text("virt.chassis") {
        Some("desktop") => Some("desktop"),
        Some("laptop" | "convertible") => Some("laptop"),
        Some("server") => Some("server"),
        Some("embedded") => Some("board"),
        Some(_) => None,
        None => product.filter(|p| p.value.is_some() && p.source.contains("devicetree")).map(|_| "board"),
    }
}

/// True if the CPUs of a pair are known to be on different cores. Threads of one core exchange cache lines much faster.
fn apart(metric: &Metric, facts: &Facts) -> bool {
    let cpu = |name| match metric.params.get(name)? {
        ParamValue::Int(cpu) => Some(*cpu),
        ParamValue::Text(_) => None,
    };
    let (Some(from), Some(to)) = (cpu("from"), cpu("to")) else { return true };
    let cores = machine::cores(facts);
    match (machine::core_of(&cores, from), machine::core_of(&cores, to)) {
        (Some(a), Some(b)) => a != b,
        _ => false,
    }
}

/// Range from the 10th percentile of `lows` to the 90th of `highs`, and the number of machines. Each slice has one figure per machine; they are equal if
/// a machine has one figure. `None` for fewer than [`MIN_MACHINES`].
pub fn range(lows: &[f64], highs: &[f64]) -> Option<(f64, f64, u32)> {
    let percentile = |of: &[f64], p| quantile::quantile(&quantile::sorted(of).ok()?, p);
    let n = u32::try_from(lows.len()).ok().filter(|_| lows.len() >= MIN_MACHINES)?;
    Some((percentile(lows, 0.1)?, percentile(highs, 0.9)?, n))
}

/// A figure of a machine: key of its metric, the part of the metric that it shows, value.
pub type Figure = (String, Shows, f64);

/// Ranges from machines, each given by its kind and its figures.
pub fn grown<'m>(machines: impl Iterator<Item = (&'m str, &'m [Figure])>) -> Vec<Entry> {
    let mut values: BTreeMap<(&str, &str, &Shows), Vec<f64>> = BTreeMap::new();
    for (kind, figures) in machines {
        for (selector, shows, value) in figures {
            values.entry((kind, selector, shows)).or_default().push(*value);
        }
    }
    let entry = |((kind, selector, shows), values): ((&str, &str, &Shows), Vec<f64>)| {
        let (low, high, n) = range(&values, &values)?;
        let source = "records added by `machmeter reference add`".to_owned();
        let usual = Usual { low, high, kind: kind.to_owned(), n, source };
        Some(Entry { selector: selector.to_owned(), shows: shows.clone(), usual })
    };
    values.into_iter().filter_map(entry).collect()
}

/// The figures in a record's rows that may represent its machine: those without a mark or flag.
/// Errors: one line with the reason why the record is not one of this program.
pub fn figures(record: &Record) -> Result<Vec<Figure>, String> {
    let listed = || record.summary.rows.iter().flat_map(|r| &r.figures);
    if listed().count() > MAX_FIGURES {
        return Err(format!("more than {MAX_FIGURES} figures in rows: the record is damaged"));
    }
    let mut all: BTreeMap<(String, Shows), f64> = BTreeMap::new();
    for (figure, shown) in listed().filter_map(|f| Some((f, f.find(&record.metrics)?))) {
        let m = shown.metric;
        let words = m.params.iter().flat_map(|(name, value)| [name.clone(), value.to_string()]);
        let is_plain = |w: String| w.chars().all(|c| !c.is_control() && !"{},=!*".contains(c));
        if m.key().len() > MAX_KEY_BYTES || !words.chain([m.id.clone()]).all(is_plain) {
            return Err("a metric of a row has an unknown key: the record is damaged".to_owned());
        }
        if m.quality == Quality::Ok && !m.is_shared() && apart(m, &record.machine.before) {
            all.insert((m.key(), figure.shows.clone()), shown.value);
        }
    }
    Ok(all.into_iter().map(|((key, shows), value)| (key, shows, value)).collect())
}

#[cfg(test)]
#[path = "usual_tests.rs"]
mod tests;
