//! Exports `OpenMetrics` 1.0 text: one gauge family per metric id, in SI base units (seconds, bytes, ratio), and `# EOF`.

use std::collections::BTreeMap;
use std::io;

use machmeter_data::{Metric, Record, Table, Unit, finite};

use super::ExportError;
use crate::identity::Identity;

/// Name of the base unit and the factor to it. Counts and densities have no unit name.
const fn base(unit: Unit) -> (&'static str, f64) {
    match unit {
        Unit::Nanoseconds => ("seconds", 1e-9),
        Unit::Bytes => ("bytes", 1.0),
        Unit::BytesPerSecond => ("bytes_per_second", 1.0),
        Unit::FlopsPerSecond => ("flops_per_second", 1.0),
        Unit::Hertz => ("hertz", 1.0),
        Unit::One => ("ratio", 1.0),
        Unit::NanosecondsPerByte => ("seconds_per_byte", 1e-9),
        Unit::PartsPerMillion => ("ratio", 1e-6),
        Unit::PerHertz => ("per_hertz", 1.0),
        Unit::Ticks => ("ticks", 1.0),
        Unit::Count => ("", 1.0),
    }
}

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let host = format!("host=\"{}\"", escape(&Identity::of(&record).name));
    // The format allows each family only once, so metrics are grouped by id.
    let mut families: BTreeMap<String, Vec<&Metric>> = BTreeMap::new();
    for m in record.metrics.iter().filter(|m| m.value.is_some()) {
        families.entry(family(m)).or_default().push(m);
    }
    for (name, metrics) in &families {
        let (unit, factor) = base(metrics[0].unit);
        writeln!(out, "# TYPE {name} gauge")?;
        if !unit.is_empty() {
            writeln!(out, "# UNIT {name} {unit}")?;
        }
        writeln!(out, "# HELP {name} {} ({}).", escape(&metrics[0].id), escape(&metrics[0].estimator))?;
        let mut seen = Vec::new();
        for m in metrics {
            let labels = labels(m, &host);
            if seen.contains(&labels) {
                continue;
            }
            writeln!(out, "{name}{labels} {}", m.value.unwrap_or_default() * factor)?;
            seen.push(labels);
        }
    }
    rejected(&record, &host, out)?;
    writeln!(out, "# EOF")?;
    Ok(())
}

/// Writes metrics without a figure: a gauge of 1 for each, with the reason as a label.
fn rejected(record: &Record, host: &str, out: &mut dyn io::Write) -> Result<(), ExportError> {
    let mut lines: BTreeMap<String, String> = BTreeMap::new();
    for m in record.metrics.iter().filter(|m| m.value.is_none()) {
        let why = escape(m.why.as_deref().unwrap_or("unknown"));
        lines.entry(m.key()).or_insert(format!("metric=\"{}\",why=\"{why}\",{host}", escape(&m.key())));
    }
    if !lines.is_empty() {
        writeln!(out, "# TYPE machmeter_rejected gauge")?;
        writeln!(out, "# HELP machmeter_rejected Metrics without a figure in this run.")?;
    }
    for labels in lines.values() {
        writeln!(out, "machmeter_rejected{{{labels}}} 1")?;
    }
    Ok(())
}

fn family(m: &Metric) -> String {
    let mut name = format!("machmeter_{}", identifier(&m.id));
    let unit = base(m.unit).0;
    if !unit.is_empty() && !name.ends_with(&format!("_{unit}")) {
        name.push('_');
        name.push_str(unit);
    }
    name
}

/// Letters, digits and underscores only.
fn identifier(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

fn labels(m: &Metric, host: &str) -> String {
    let mut list: Vec<String> =
        m.params.iter().map(|(k, v)| format!("{}=\"{}\"", label_name(k), escape(&v.to_string()))).collect();
    if m.is_shared() {
        list.push("population=\"core_shared\"".to_owned());
    }
    list.push(format!("quality=\"{}\"", crate::label::quality(m.quality)));
    list.push(host.to_owned());
    format!("{{{}}}", list.join(","))
}

fn label_name(text: &str) -> String {
    let name = identifier(text);
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("_{name}") } else { name }
}

/// Escapes backslash, quote and line break, as the exposition format requires.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}
