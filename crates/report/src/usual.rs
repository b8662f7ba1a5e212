//! What is usual: ranges of a figure over machines of a kind, published or grown from records. Without a source of the same
//! definition there is no range.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use machmeter_data::summary::{Shows, Usual, selects};
use machmeter_data::{Facts, Metric, ParamValue, Quality, Record};
use machmeter_stats::quantile;
use serde::Deserialize;

use crate::{identity, machine};

/// Fewer machines give no range: interpolated percentiles of fewer would be little but the least and the greatest machine.
pub const MIN_MACHINES: usize = 5;
/// Figures in the rows of a record; a record of all probes has about 150.
const MAX_FIGURES: usize = 1_000;
/// Bytes of a metric's key; the longest of this version has about 120.
const MAX_KEY_BYTES: usize = 300;
/// Model that QEMU, Firecracker and others write into a guest's device tree.
const GUEST_MODEL: &str = "linux,dummy-virt";

/// A range and the figures it is of.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Entry {
    /// As of [`machmeter_data::summary::Pick::new`].
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

/// Where a figure of a metric usually lies on machines of the record's kind. Published ranges come before `grown` ones: they read
/// the same for everybody.
pub fn usual_shown(grown: &[Entry], metric: &Metric, shows: &Shows, record: &Record) -> Option<Usual> {
    let kind = kind(record)?;
    if !apart(metric, &record.machine.before) {
        return None;
    }
    let fits = |e: &&Entry| e.usual.kind == kind && e.shows == *shows && selects(&e.selector, metric);
    PUBLISHED.range.iter().chain(grown).find(fits).map(|e| e.usual.clone())
}

/// Gives the figures in the rows of a record the ranges they usually lie in; a range that a figure has stays.
pub fn fill(grown: &[Entry], record: &mut Record) {
    let mut rows = std::mem::take(&mut record.summary.rows);
    for figure in rows.iter_mut().flat_map(|r| &mut r.figures).filter(|f| f.usual.is_none()) {
        let found = figure.find(&record.metrics);
        figure.usual = found.and_then(|s| usual_shown(grown, s.metric, &figure.shows, record));
    }
    record.summary.rows = rows;
}

/// The kind of a machine, where its record tells: a guest by its hypervisor, else by what the firmware says of the case, else a
/// board by its device tree.
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

/// Whether the CPUs of a pair are known to be on different cores; threads of one core are as quick as no others.
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

/// Range from the 10th percentile of one figure a machine to the 90th of another, with the number of machines; the two are the
/// same where a machine has one figure. `None` of fewer than [`MIN_MACHINES`].
pub fn range(lows: &[f64], highs: &[f64]) -> Option<(f64, f64, u32)> {
    let percentile = |of: &[f64], p| quantile::quantile(&quantile::sorted(of).ok()?, p);
    let n = u32::try_from(lows.len()).ok().filter(|_| lows.len() >= MIN_MACHINES)?;
    Some((percentile(lows, 0.1)?, percentile(highs, 0.9)?, n))
}

/// A figure of a machine: key of its metric, what it shows of it, value.
pub type Figure = (String, Shows, f64);

/// Ranges of machines, each given by its kind and its figures.
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

/// The figures of a record's rows that may stand for its machine: those that nothing weakens.
/// Errors: in one line, why the record is not one of ours.
pub fn figures(record: &Record) -> Result<Vec<Figure>, String> {
    let listed = || record.summary.rows.iter().flat_map(|r| &r.figures);
    if listed().count() > MAX_FIGURES {
        return Err(format!("more than {MAX_FIGURES} figures in rows, which no record has"));
    }
    let mut all: BTreeMap<(String, Shows), f64> = BTreeMap::new();
    for (figure, shown) in listed().filter_map(|f| Some((f, f.find(&record.metrics)?))) {
        let m = shown.metric;
        let words = m.params.iter().flat_map(|(name, value)| [name.clone(), value.to_string()]);
        let is_plain = |w: String| w.chars().all(|c| !c.is_control() && !"{},=!*".contains(c));
        if m.key().len() > MAX_KEY_BYTES || !words.chain([m.id.clone()]).all(is_plain) {
            return Err("a metric of a row has a key that no version writes".to_owned());
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
