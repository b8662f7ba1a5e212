//! Metrics as a Markdown table that fits into a mail: at most 80 columns.

use std::io;

use machmeter_data::{Record, Table};

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
const WIDTHS: [usize; 4] = [34, 10, 19, 7];

fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let id = Identity::of(&record);
    writeln!(out, "{}", clip(&id.line().replace('\n', " "), 80))?;
    writeln!(out, "{} {}, {}\n", record.tool.name, record.tool.version, record.run.started)?;
    row(out, &["metric", "value", "95 % interval", "n"].map(str::to_owned))?;
    let rule: Vec<String> = WIDTHS
        .iter()
        .enumerate()
        .map(|(i, w)| if i == 0 { "-".repeat(*w) } else { format!("{}:", "-".repeat(w - 1)) })
        .collect();
    writeln!(out, "| {} |", rule.join(" | "))?;
    for m in &record.metrics {
        let ci = m.ci.as_ref().map_or_else(String::new, |c| label::interval(c, m.unit));
        let value = if m.flags.is_empty() { label::value(m) } else { format!("{} !", label::value(m)) };
        row(out, &[m.key(), value, ci, m.n.to_string()])?;
    }
    if record.metrics.iter().any(|m| !m.flags.is_empty()) {
        let mut codes: Vec<&str> = record.metrics.iter().flat_map(|m| m.flags.iter().map(String::as_str)).collect();
        codes.sort_unstable();
        codes.dedup();
        writeln!(out, "\n! weakened by {}", codes.join(", "))?;
    }
    if !record.summary.verdict.is_empty() {
        writeln!(out, "\n{}", record.summary.verdict)?;
    }
    Ok(())
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
