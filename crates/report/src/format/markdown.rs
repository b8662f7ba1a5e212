//! Exports metrics as a Markdown table for e-mail: 80 columns, more only for rows with long names or figures. Nothing is cut.

use std::collections::BTreeSet;
use std::io;

use machmeter_data::shape::Matrix;
use machmeter_data::summary::{Mark, Row, interval_text};
use machmeter_data::{Metric, Record, Table, finite};

use super::ExportError;
use crate::identity::Identity;
use crate::label;
use crate::terminal::{parts, wrap};

/// Widths of the columns; with bars and spaces they add up to 80.
const WIDTHS: [usize; 4] = [42, 10, 8, 7];

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let id = Identity::of(&record);
    writeln!(out, "{}", wrap(&id.line().replace('\n', " "), 80).join("\n"))?;
    writeln!(out, "{} {}, {}\n", record.tool.name, record.tool.version, record.run.started)?;
    summary(out, &record)?;
    for d in &record.datasets {
        if let Some(m) = d.shape.matrix().filter(|m| !m.column_names.is_empty()) {
            matrix(out, &d.title, m)?;
        }
    }
    let columns = Columns { widths: WIDTHS.to_vec(), left: 1 };
    writeln!(out, "{}\n{}", columns.row(&["metric", "value", "+-", "n"]), columns.rule())?;
    for m in &record.metrics {
        let value = [label::value(m), signs(&Mark::of(m))].join(" ");
        let cells = [name(m), value.trim_end().to_owned(), interval(m), m.n.to_string()];
        writeln!(out, "{}", columns.row(&cells.map(|c| clean(&c))))?;
    }
    let mut marks: Vec<Mark> = record.metrics.iter().flat_map(Mark::of).collect();
    marks.sort_unstable();
    marks.dedup();
    for mark in marks {
        writeln!(out, "\n{} {}", mark.sign(), mark.legend())?;
    }
    let codes: BTreeSet<&str> = record.metrics.iter().flat_map(|m| &m.flags).map(String::as_str).collect();
    if !codes.is_empty() {
        writeln!(out, "\nCodes: {}", Vec::from_iter(codes).join(", "))?;
    }
    writeln!(out, "\n+-: half-width of the 95 % interval (its longer side), of shares in points.")?;
    Ok(())
}

/// Writes the summary of the page: the verdicts and the rows.
fn summary(out: &mut dyn io::Write, record: &Record) -> io::Result<()> {
    for f in &record.summary.fitness {
        let text = format!("- **{}: {}.** {}", f.purpose, label::fit(f.fit), f.reason.replace('\n', " "));
        writeln!(out, "{}", wrap(&text, 78).join("\n  "))?;
    }
    let rows: Vec<&Row> = record.summary.rows.iter().filter(|r| !r.detail).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let columns = Columns { widths: vec![10, 28, 16, 12], left: 2 };
    writeln!(out, "\n{}\n{}", columns.row(&["", "what", "figure", "+-"]), columns.rule())?;
    for row in rows {
        let Some(text) = row.text(&record.metrics) else {
            if let Some((name, why)) = row.missing(&record.metrics) {
                writeln!(
                    out,
                    "{}",
                    columns.row(&[clean(&row.section), clean(name), clean(&why), String::new()])
                )?;
            }
            continue;
        };
        let figures = [text.line(), signs(&text.marks)].join(" ");
        let interval = ascii(&text.interval.unwrap_or_default());
        let cells = [clean(&row.section), clean(&text.name), clean(figures.trim_end()), interval];
        writeln!(out, "{}", columns.row(&cells))?;
    }
    writeln!(out)
}

fn signs(marks: &[Mark]) -> String {
    marks.iter().map(|m| m.sign()).collect()
}

/// The interval without its sign, which the heading has: `4.13 %`, `at most 8 ns`.
fn ascii(interval: &str) -> String {
    interval.trim_start_matches("± ").to_owned()
}

/// Writes a matrix with named columns under its title, in parts of at most 80 columns, unless a name alone is wider.
fn matrix(out: &mut dyn io::Write, title: &str, m: &Matrix) -> io::Result<()> {
    writeln!(out, "{}\n", wrap(&label::headed(title, &m.cell.label).replace('\n', " "), 80).join("\n"))?;
    let mut lines: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(label::columns(m)).collect()];
    for (name, cells) in m.rows.iter().zip(&m.values) {
        let figures = cells.iter().map(|v| v.map_or_else(|| "-".to_owned(), |v| label::cell(v, m.cell.unit)));
        lines.push(std::iter::once(name.clone()).chain(figures).collect());
    }
    let lines: Vec<Vec<String>> = lines.iter().map(|l| l.iter().map(|c| clean(c)).collect()).collect();
    let widths: Vec<usize> = (0..=m.width())
        .map(|c| lines.iter().filter_map(|l| l.get(c)).map(|t| t.chars().count()).max().unwrap_or(0).max(2))
        .collect();
    // A cell takes its text, two spaces and a bar.
    for part in parts(&widths[1..], 76_usize.saturating_sub(widths[0]), 3) {
        let of = |all: &[String]| [&all[..1], &all[1..][part.clone()]].concat();
        let columns = Columns { widths: [&widths[..1], &widths[1..][part.clone()]].concat(), left: 1 };
        writeln!(out, "{}\n{}", columns.row(&of(&lines[0])), columns.rule())?;
        for l in &lines[1..] {
            writeln!(out, "{}", columns.row(&of(l)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The key of a metric; if it is too long, without the names of the parameters.
fn name(m: &Metric) -> String {
    let key = m.key();
    if key.chars().count() <= WIDTHS[0] {
        return key;
    }
    let values: Vec<String> = m.params.values().map(ToString::to_string).collect();
    format!("{}{{{}}}", m.id, values.join(","))
}

/// The interval in the form of the page's rows, and the number of runs behind it.
fn interval(m: &Metric) -> String {
    let text = m.value.zip(m.ci.as_ref()).and_then(|(v, ci)| interval_text(v, ci, m.unit));
    text.map(|t| ascii(&t) + &label::runs(m)).unwrap_or_default()
}

/// A table: widths of its columns, and the number of leading columns aligned left.
struct Columns {
    widths: Vec<usize>,
    left: usize,
}

impl Columns {
    fn row(&self, cells: &[impl AsRef<str>]) -> String {
        let cell = |(i, (cell, w)): (usize, (&_, &usize))| {
            let text = AsRef::<str>::as_ref(cell);
            if i < self.left { format!("{text:<w$}") } else { format!("{text:>w$}") }
        };
        let cells: Vec<String> = cells.iter().zip(&self.widths).enumerate().map(cell).collect();
        format!("| {} |", cells.join(" | "))
    }

    /// The line below the headings; a colon aligns figures to the right.
    fn rule(&self) -> String {
        let line = |(i, w): (usize, &usize)| {
            if i < self.left { "-".repeat(*w) } else { "-".repeat(w - 1) + ":" }
        };
        self.row(&self.widths.iter().enumerate().map(line).collect::<Vec<_>>())
    }
}

/// Replaces characters that would end a cell.
fn clean(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}
