//! What names mean in records: operations with costs in p and d, and single figures.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::metric::{Metric, ParamValue};
use machmeter_data::{Record, Unit};
use machmeter_model::laws::Term;
use strsim::levenshtein;

use super::ExprError;

/// The figure that the page of costs calls system call, by a name of its own.
const SYSTEM_CALL: &str = "syscall";
const IS_SYSTEM_CALL: [(&str, &str); 2] = [("operation", "getppid"), ("code", "libc")];
/// Names and values of keys that a message lists at most.
const LISTED: usize = 6;

/// Sizes from one to another of a law, with its terms and the places of their coefficients.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) to_bytes: Option<u64>,
    pub(super) terms: Vec<(Term, usize)>,
}

/// An operation whose cost depends on ranks and bytes. Figures are places in the list of all.
#[derive(Debug, Clone, Default)]
pub(super) struct Operation {
    pub(super) name: String,
    /// Laws by the number of ranks for which alone they hold, all for `None`; their segments by the first size.
    pub(super) laws: BTreeMap<Option<u32>, BTreeMap<u64, Segment>>,
    pub(super) costs: BTreeMap<u32, BTreeMap<u64, usize>>,
}

impl Operation {
    /// First and last of the numbers of ranks that costs or laws stand on.
    pub(super) fn ranks(&self) -> Option<(u32, u32)> {
        let all = || self.costs.keys().copied().chain(self.laws.keys().flatten().copied());
        all().min().zip(all().max())
    }

    /// The same of sizes, bytes.
    pub(super) fn sizes(&self) -> Option<(u64, u64)> {
        let segments = || self.laws.values().flatten();
        let costs = || self.costs.values().flat_map(BTreeMap::keys).copied();
        let first = costs().chain(segments().map(|(from, _)| *from)).min()?;
        let last = segments().map(|(from, s)| s.to_bytes.unwrap_or(*from));
        Some((first, costs().chain(last).max()?))
    }
}

/// All figures of some records. Of a name that several have, the first record counts.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    pub(super) metrics: Vec<Metric>,
    /// Record of each metric, by its place.
    records: Vec<usize>,
    pub(super) operations: Vec<Operation>,
}

/// Power of time and factor to ns of a unit.
fn scale(unit: Unit) -> (i32, f64) {
    match unit {
        Unit::Nanoseconds | Unit::NanosecondsPerByte => (1, 1.0),
        Unit::BytesPerSecond | Unit::FlopsPerSecond | Unit::Hertz => (-1, 1e-9),
        Unit::PerHertz => (1, 1e9),
        Unit::PartsPerMillion => (0, 1e-6),
        Unit::Bytes | Unit::Ticks | Unit::One | Unit::Count => (0, 1.0),
    }
}

fn text(m: &Metric, key: &str) -> Option<String> {
    m.params.get(key).map(ToString::to_string)
}

/// What a cost is of.
fn costs(m: &Metric) -> Option<String> {
    m.id.split_once('.').filter(|(_, figure)| *figure == "cost").and_then(|_| text(m, "operation"))
}

impl Sheet {
    /// The figures of records.
    pub fn of(records: &[Record]) -> Self {
        let mut sheet = Self::default();
        for (number, record) in records.iter().enumerate() {
            let from = sheet.metrics.len();
            sheet.metrics.extend(record.metrics.iter().cloned());
            sheet.records.resize(sheet.metrics.len(), number);
            for operation in operations(&sheet.metrics, from) {
                if !sheet.operations.iter().any(|o| o.name == operation.name) {
                    sheet.operations.push(operation);
                }
            }
        }
        sheet
    }

    /// Value and ends of a figure, in ns or without unit; the value at both where it has no interval.
    pub(super) fn value(&self, figure: usize) -> [f64; 3] {
        let m = &self.metrics[figure];
        let value = m.value.unwrap_or(f64::NAN);
        let (low, high) = m.ci.as_ref().map_or((value, value), |ci| (ci.low, ci.high));
        [value, low, high].map(|v| v * scale(m.unit).1)
    }

    pub(super) fn dimension(&self, figure: usize) -> i32 {
        scale(self.metrics[figure].unit).0
    }

    /// Whether a figure goes by this name: its id, the end of its id, or what it costs.
    fn is_called(m: &Metric, name: &str) -> bool {
        let is_id = m.id == name || m.id.split_once('.').is_some_and(|(_, end)| end == name);
        is_id || costs(m).is_some_and(|o| o == name)
    }

    /// The figure of a name with these values of keys.
    pub(super) fn figure(&self, name: &str, keys: &[(String, String)]) -> Result<usize, ExprError> {
        let mut wanted: Vec<(&str, &str)> = keys.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        let mut id = name;
        if name == SYSTEM_CALL {
            id = "ops.cost";
            let given: Vec<&str> = wanted.iter().map(|w| w.0).collect();
            wanted.extend(IS_SYSTEM_CALL.iter().filter(|(key, _)| !given.contains(key)));
        }
        let called: Vec<usize> =
            (0..self.metrics.len()).filter(|i| Self::is_called(&self.metrics[*i], id)).collect();
        if called.is_empty() {
            return Err(self.unknown(name));
        }
        let fits = |i: &&usize| {
            wanted.iter().all(|(key, value)| text(&self.metrics[**i], key).is_some_and(|v| v == *value))
        };
        let found: Vec<usize> = called.iter().filter(fits).copied().collect();
        let Some(first) = found.first() else { return Err(self.without(name, &called, &wanted)) };
        let own: Vec<usize> =
            found.iter().filter(|i| self.records[**i] == self.records[*first]).copied().collect();
        if own.len() > 1 {
            return Err(self.ambiguous(name, &own));
        }
        let m = &self.metrics[*first];
        if m.value.is_some() {
            return Ok(*first);
        }
        let why = m.why.as_ref().map_or(String::new(), |why| format!(": {why}"));
        Err(ExprError::new(format!("{} has no value{why}", m.key())))
    }

    /// No figure has what was asked for.
    fn without(&self, name: &str, called: &[usize], wanted: &[(&str, &str)]) -> ExprError {
        let all = wanted.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join(", ");
        let values = |key: &str| -> BTreeSet<String> {
            called.iter().filter_map(|i| text(&self.metrics[*i], key)).collect()
        };
        let wrong = wanted.iter().find(|(key, value)| !values(key).contains(*value));
        let help = wrong.map_or_else(String::new, |(key, _)| match listed(values(key)) {
            known if known.is_empty() => {
                let keys = called.iter().flat_map(|i| self.metrics[*i].params.keys().cloned());
                format!("{name} has no {key}: its keys are {}", listed(keys.collect()))
            }
            known => format!("{key} is {known}"),
        });
        ExprError::new(format!("no {name} with {all}")).help(help)
    }

    /// Several figures have it: which keys tell them apart.
    fn ambiguous(&self, name: &str, own: &[usize]) -> ExprError {
        let ids: BTreeSet<String> = own.iter().map(|i| self.metrics[*i].id.clone()).collect();
        let help = if ids.len() > 1 {
            format!("name one: {}", listed(ids))
        } else {
            let keys: BTreeSet<&String> = own.iter().flat_map(|i| self.metrics[*i].params.keys()).collect();
            let value = |i: &usize, key: &str| {
                self.metrics[*i].params.get(key).map_or("(none)".to_owned(), ParamValue::to_string)
            };
            let told = keys.into_iter().filter_map(|key| {
                let values: BTreeSet<String> = own.iter().map(|i| value(i, key)).collect();
                (values.len() > 1).then(|| format!("{key} ({})", listed(values)))
            });
            format!("choose by {}", told.take(3).collect::<Vec<_>>().join(", or "))
        };
        ExprError::new(format!("{name} is {} figures", own.len())).help(help)
    }

    /// All names: of operations with laws, of metrics, and of what they cost.
    pub(super) fn names(&self) -> BTreeSet<String> {
        let mut names: BTreeSet<String> = self.operations.iter().map(|o| o.name.clone()).collect();
        for m in &self.metrics {
            names.insert(m.id.clone());
            names.extend(costs(m));
        }
        names
    }

    /// A line for each name with a figure, with the keys that tell its figures apart: `memory.latency  7 figures, by level, order`.
    pub fn listing(&self) -> Vec<String> {
        let line = |name: &String| {
            let own: Vec<&Metric> =
                self.metrics.iter().filter(|m| m.value.is_some() && Self::is_called(m, name)).collect();
            let keys: BTreeSet<&String> = own.iter().flat_map(|m| m.params.keys()).collect();
            let values = |key: &str| own.iter().map(|m| text(m, key)).collect::<BTreeSet<_>>().len();
            let apart: Vec<&str> =
                keys.into_iter().map(String::as_str).filter(|key| values(key) > 1).collect();
            let ranks = self.operations.iter().any(|o| o.name == *name).then_some("ranks, bytes");
            let by: Vec<&str> = ranks.into_iter().chain(apart).collect();
            let count = if own.len() == 1 { "1 figure".to_owned() } else { format!("{} figures", own.len()) };
            let by = if by.is_empty() { String::new() } else { format!(", by {}", by.join(", ")) };
            (!own.is_empty() || ranks.is_some()).then(|| format!("{name}  {count}{by}"))
        };
        let mut lines: Vec<String> = self.names().iter().filter_map(line).collect();
        lines.extend(self.figure(SYSTEM_CALL, &[]).is_ok().then(|| format!("{SYSTEM_CALL}  1 figure")));
        lines
    }

    /// Nothing goes by this name: the nearest ones that do.
    pub(super) fn unknown(&self, name: &str) -> ExprError {
        let names = self.names();
        let distance = |known: &String| {
            let end = known.rsplit('.').next().unwrap_or(known);
            levenshtein(name, known).min(levenshtein(name, end))
        };
        let mut near: Vec<(usize, &String)> = names.iter().map(|n| (distance(n), n)).collect();
        near.sort();
        let close = name.chars().count().div_ceil(2);
        let similar: Vec<&str> =
            near.iter().filter(|(d, _)| *d <= close).take(3).map(|(_, n)| n.as_str()).collect();
        let help = if similar.is_empty() {
            format!("names here: {}", listed(names.iter().cloned().collect()))
        } else {
            format!("similar: {}", similar.join(", "))
        };
        ExprError::new(format!("no cost or law '{name}'")).help(help)
    }
}

fn listed(all: BTreeSet<String>) -> String {
    let more = if all.len() > LISTED { format!(" and {} more", all.len() - LISTED) } else { String::new() };
    all.into_iter().take(LISTED).collect::<Vec<_>>().join(", ") + &more
}

/// Operations with costs in ranks and bytes, among metrics from a place on.
fn operations(metrics: &[Metric], from: usize) -> Vec<Operation> {
    let mut all: BTreeMap<String, Operation> = BTreeMap::new();
    for (i, m) in metrics.iter().enumerate().skip(from) {
        let number = |key: &str| text(m, key)?.parse::<u64>().ok();
        let ranks = number("ranks").and_then(|p| u32::try_from(p).ok());
        let (Some(("mpi" | "simulate", figure)), Some(name)) = (m.id.split_once('.'), text(m, "operation"))
        else {
            continue;
        };
        if m.value.is_none() {
            continue;
        }
        let own = || Operation { name: name.clone(), ..Operation::default() };
        match figure {
            "cost" => {
                let (Some(ranks), Some(bytes)) = (ranks, number("size_bytes")) else { continue };
                let costs = &mut all.entry(name.clone()).or_insert_with(own).costs;
                costs.entry(ranks).or_default().insert(bytes, i);
            }
            "coefficient" => {
                let term = Term::ALL.into_iter().find(|t| text(m, "term").is_some_and(|n| n == t.name()));
                let (Some(term), Some(from_bytes)) = (term, number("from_bytes")) else { continue };
                let segments = all.entry(name.clone()).or_insert_with(own).laws.entry(ranks).or_default();
                let new = || Segment { to_bytes: number("to_bytes"), terms: Vec::new() };
                segments.entry(from_bytes).or_insert_with(new).terms.push((term, i));
            }
            _ => {}
        }
    }
    for segments in all.values_mut().flat_map(|o| o.laws.values_mut()) {
        let next: Vec<u64> = segments.keys().skip(1).copied().collect();
        for (segment, next) in segments.values_mut().zip(next) {
            segment.to_bytes.get_or_insert(next - 1);
        }
    }
    all.into_values().collect()
}
