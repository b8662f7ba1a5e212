//! Metrics as a Markdown table that fits into a mail: 80 columns, but for rows whose names or figures need more. None is cut.

use std::collections::BTreeSet;
use std::io;

use machmeter_data::shape::Matrix;
use machmeter_data::summary::{Mark, Row, interval_text};
use machmeter_data::{Metric, Record, Table, finite};

use super::ExportError;
use crate::identity::Identity;
use crate::label;
use crate::terminal::{parts, wrap};

/// Widths of the columns; with bars and spaces 80 at most.
const WIDTHS: [usize; 4] = [42, 10, 8, 7];

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let id = Identity::of(&record);
    writeln!(out, "{}", label::clipped(&id.line().replace('\n', " "), 80))?;
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

/// What the page says: what the machine is fit for, and its rows.
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
        let Some(text) = row.text(&record.metrics) else { continue };
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

/// `4.13 %`, `at most 8 ns`: the sign is in the heading.
fn ascii(interval: &str) -> String {
    interval.trim_start_matches("± ").to_owned()
}

/// A matrix of named things under its title, in parts of at most 80 columns.
fn matrix(out: &mut dyn io::Write, title: &str, m: &Matrix) -> io::Result<()> {
    writeln!(out, "{}\n", label::clipped(&label::headed(title, &m.cell.label).replace('\n', " "), 80))?;
    let mut lines: Vec<Vec<String>> = vec![std::iter::once(String::new()).chain(label::columns(m)).collect()];
    for (name, cells) in m.rows.iter().zip(&m.values) {
        let figures = cells.iter().map(|v| v.map_or_else(|| "-".to_owned(), |v| label::cell(v, m.cell.unit)));
        lines.push(std::iter::once(name.clone()).chain(figures).collect());
    }
    let lines: Vec<Vec<String>> =
        lines.iter().map(|l| l.iter().map(|c| label::clipped(&clean(c), 16)).collect()).collect();
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

/// The key of a metric; where it is too long the names of parameters are left out.
fn name(m: &Metric) -> String {
    let key = m.key();
    if key.chars().count() <= WIDTHS[0] {
        return key;
    }
    let values: Vec<String> = m.params.values().map(ToString::to_string).collect();
    format!("{}{{{}}}", m.id, values.join(","))
}

/// The interval as rows of the page print it, and the number of runs behind it.
fn interval(m: &Metric) -> String {
    let text = m.value.zip(m.ci.as_ref()).and_then(|(v, ci)| interval_text(v, ci, m.unit));
    text.map(|t| ascii(&t) + &label::runs(m)).unwrap_or_default()
}

/// A table: widths of its columns, and how many from the first on stand left.
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

    /// The line below the headings; a colon puts figures right.
    fn rule(&self) -> String {
        let line = |(i, w): (usize, &usize)| {
            if i < self.left { "-".repeat(*w) } else { "-".repeat(w - 1) + ":" }
        };
        self.row(&self.widths.iter().enumerate().map(line).collect::<Vec<_>>())
    }
}

/// Text without what ends a cell.
fn clean(text: &str) -> String {
    text.replace('|', "/").replace('\n', " ")
}
