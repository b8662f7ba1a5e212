//! Metrics as a Markdown table that fits into a mail: at most 80 columns.

use std::io;

use machmeter_data::quantity::digits;
use machmeter_data::{Metric, Record, Table};

use super::{ExportError, Format};
use crate::identity::Identity;
use crate::{finite, label};

/// The registry's row.
pub(super) const FORMAT: Format = Format {
    name: "markdown",
    extension: "md",
    description: "Metrics as a Markdown table of at most 80 columns, for mails and issues.",
    write,
};

/// Widths of the columns; with bars and spaces 80 at most.
const WIDTHS: [usize; 4] = [42, 10, 8, 7];

fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let id = Identity::of(&record);
    writeln!(out, "{}", clip(&id.line().replace('\n', " "), 80))?;
    writeln!(out, "{} {}, {}\n", record.tool.name, record.tool.version, record.run.started)?;
    row(out, &["metric", "value", "+-", "n"].map(str::to_owned))?;
    let rule: Vec<String> = WIDTHS
        .iter()
        .enumerate()
        .map(|(i, w)| if i == 0 { "-".repeat(*w) } else { format!("{}:", "-".repeat(w - 1)) })
        .collect();
    writeln!(out, "| {} |", rule.join(" | "))?;
    for m in &record.metrics {
        let value = if m.flags.is_empty() { label::value(m) } else { format!("{} !", label::value(m)) };
        row(out, &[name(m), value, half_width(m), m.n.to_string()])?;
    }
    if record.metrics.iter().any(|m| !m.flags.is_empty()) {
        let mut codes: Vec<&str> =
            record.metrics.iter().flat_map(|m| m.flags.iter().map(String::as_str)).collect();
        codes.sort_unstable();
        codes.dedup();
        writeln!(out, "\n! weakened by {}", codes.join(", "))?;
    }
    writeln!(out, "\n+- is the farther end of the interval, as a share of the value.")?;
    if !record.summary.verdict.is_empty() {
        writeln!(out, "\n{}", record.summary.verdict)?;
    }
    Ok(())
}

/// The key of a metric; where it is too long the names of parameters are left out, and only then is it cut.
fn name(m: &Metric) -> String {
    let key = m.key();
    if key.chars().count() <= WIDTHS[0] {
        return key;
    }
    let values: Vec<String> = m.params.values().map(ToString::to_string).collect();
    format!("{}{{{}}}", m.id, values.join(","))
}

/// The farther end of the 95 % interval as a share of the value, `3.9 %`.
fn half_width(m: &Metric) -> String {
    match (m.value, &m.ci) {
        (Some(v), Some(ci)) if v != 0.0 => {
            format!("{} %", digits((ci.high - v).max(v - ci.low) / v.abs() * 100.0))
        }
        _ => String::new(),
    }
}

fn row(out: &mut dyn io::Write, cells: &[String; 4]) -> io::Result<()> {
    let cells: Vec<String> = cells
        .iter()
        .zip(WIDTHS)
        .enumerate()
        .map(|(i, (c, w))| {
            let text = clip(&c.replace('|', "/").replace('\n', " "), w);
            if i == 0 { format!("{text:<w$}") } else { format!("{text:>w$}") }
        })
        .collect();
    writeln!(out, "| {} |", cells.join(" | "))
}

/// At most `room` characters; what is cut ends in two dots.
fn clip(text: &str, room: usize) -> String {
    if text.chars().count() <= room {
        return text.to_owned();
    }
    text.chars().take(room - 2).collect::<String>() + ".."
}
