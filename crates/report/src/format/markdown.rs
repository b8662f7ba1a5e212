//! Metrics as a Markdown table that fits into a mail: at most 80 columns.

use std::io;

use machmeter_data::quantity::digits;
use machmeter_data::shape::Matrix;
use machmeter_data::summary::Row;
use machmeter_data::{Metric, Record, Shape, Table, finite};

use super::ExportError;
use crate::identity::Identity;
use crate::label;
use crate::terminal::wrap;

/// Widths of the columns; with bars and spaces 80 at most.
const WIDTHS: [usize; 4] = [42, 10, 8, 7];

pub(super) fn write(record: &Record, _tables: &[Table], out: &mut dyn io::Write) -> Result<(), ExportError> {
    let record = finite::record(record);
    let id = Identity::of(&record);
    writeln!(out, "{}", clip(&id.line().replace('\n', " "), 80))?;
    writeln!(out, "{} {}, {}\n", record.tool.name, record.tool.version, record.run.started)?;
    summary(out, &record)?;
    for d in &record.datasets {
        if let Shape::Matrix(m) = &d.shape
            && !m.column_names.is_empty()
        {
            matrix(out, &d.title, m)?;
        }
    }
    row(out, &["metric", "value", "+-", "n"].map(str::to_owned))?;
    let rule: Vec<String> = WIDTHS
        .iter()
        .enumerate()
        .map(|(i, w)| if i == 0 { "-".repeat(*w) } else { format!("{}:", "-".repeat(w - 1)) })
        .collect();
    writeln!(out, "| {} |", rule.join(" | "))?;
    for m in &record.metrics {
        let value = if m.flags.is_empty() { label::value(m) } else { format!("{} !", label::value(m)) };
        let name = if m.is_shared() { format!("~ {}", name(m)) } else { name(m) };
        row(out, &[name, value, half_width(m), m.n.to_string()])?;
    }
    if record.metrics.iter().any(Metric::is_shared) {
        writeln!(out, "\n~ core shared: too few samples without another hardware thread at work")?;
    }
    if record.metrics.iter().any(|m| !m.flags.is_empty()) {
        let mut codes: Vec<&str> =
            record.metrics.iter().flat_map(|m| m.flags.iter().map(String::as_str)).collect();
        codes.sort_unstable();
        codes.dedup();
        writeln!(out, "\n! weakened by {}", codes.join(", "))?;
    }
    writeln!(out, "\n+- is the farther end of the interval, as a share of the value.")?;
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
    writeln!(out, "\n| {:<10} | {:<34} | {:>16} | {:>7} |", "", "what", "figure", "+-")?;
    writeln!(out, "| {} | {} | {}: | {}: |", "-".repeat(10), "-".repeat(34), "-".repeat(15), "-".repeat(6))?;
    for row in rows {
        let Some(told) = row.told(&record.metrics) else { continue };
        let clean = |text: &str, room| clip(&text.replace('|', "/").replace('\n', " "), room);
        let name = clean(&told.name, 34);
        let mark = if told.is_shared { "~ " } else { "" };
        let figures = clean(&format!("{mark}{}", told.figures), 16);
        let half_width = told.half_width.unwrap_or_default();
        writeln!(out, "| {:<10} | {name:<34} | {figures:>16} | {half_width:>7} |", clean(&row.section, 10))?;
    }
    writeln!(out)
}

/// A matrix of named things under its title, in parts of at most 80 columns.
fn matrix(out: &mut dyn io::Write, title: &str, m: &Matrix) -> io::Result<()> {
    writeln!(out, "{}\n", clip(&label::headed(title, &m.cell.label).replace('\n', " "), 80))?;
    let clean = |text: &str| clip(&text.replace('|', "/").replace('\n', " "), 16);
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
    let mut from = 1;
    while from < widths.len() {
        let mut used = widths[0] + 4;
        let fits = |w: &&usize| {
            used += **w + 3;
            used <= 80
        };
        let to = from + widths[from..].iter().take_while(fits).count().max(1);
        let part = |cells: &[String]| {
            let figures: Vec<String> =
                (from..to).map(|c| format!("{:>w$}", cells[c], w = widths[c])).collect();
            format!("| {:<w$} | {} |", cells[0], figures.join(" | "), w = widths[0])
        };
        writeln!(out, "{}", part(&lines[0]))?;
        let rule: Vec<String> = (from..to).map(|c| format!("{}:", "-".repeat(widths[c] - 1))).collect();
        writeln!(out, "| {} | {} |", "-".repeat(widths[0]), rule.join(" | "))?;
        for l in &lines[1..] {
            writeln!(out, "{}", part(l))?;
        }
        writeln!(out)?;
        from = to;
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
            format!("{} %{}", digits((ci.high - v).max(v - ci.low) / v.abs() * 100.0), label::runs(m))
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
