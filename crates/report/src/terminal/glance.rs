//! The page of the whole machine, read in ten seconds: what it is fit for, a row for each figure, what operations cost on one axis, and
//! the notes that change what is read.

use machmeter_data::quantity::human;
use machmeter_data::summary::{Fit, Row, Shown};
use machmeter_data::{Check, CheckState, Record, Shape, Unit};

use super::{TerminalStyle, decades, pictures, printable, push_wrapped, wrap};
use crate::identity::Identity;
use crate::label;

/// Columns of headings and of names.
pub(super) const HEADING: usize = 12;
const NAME: usize = 36;
const FIGURE: usize = 16;
/// Notes that are told; the others are counted.
const NOTES: usize = 4;
/// Rows of a section that are told: three figures of each probe.
const ROWS: usize = 3;

/// The page of a record with rows.
pub(super) fn page(record: &Record, style: &TerminalStyle) -> String {
    let mut out = heading(record, style);
    if !record.complete {
        let text = format!("incomplete: the run ended before its plan ({})", record.stopped_by);
        push_wrapped(&mut out, style, " ! ", "   ", &text, Some("33"));
    }
    out.push('\n');
    verdicts(&mut out, record, style);
    rows(&mut out, record, style);
    for (heading, picture) in [
        (pictures::LADDER, pictures::ladder(record, style)),
        (pictures::TAKEN, pictures::taken(record, style)),
    ] {
        for (i, line) in picture.iter().enumerate() {
            let before = if i == 0 { heading_text(heading, style) } else { " ".repeat(HEADING) };
            let room = style.width.saturating_sub(HEADING);
            let text: String = printable(line).chars().take(room).collect();
            let space = if i == 0 && heading == pictures::LADDER { "\n" } else { "" };
            out += &format!("{space}{before}{}\n", text.trim_end());
        }
    }
    for dataset in &record.datasets {
        if let Shape::Decades(costs) = &dataset.shape {
            out.push('\n');
            out += &decades::strip(costs, style, &heading_text("COSTS", style), HEADING);
        }
    }
    notes(&mut out, record, style);
    out
}

fn heading(record: &Record, style: &TerminalStyle) -> String {
    let id = Identity::of(record);
    let left = printable(&format!("{}  {}", id.name, id.line()));
    let took = label::duration(record.run.wall_ns as f64);
    let right = format!("{} {}, {took}", record.tool.name, record.tool.version);
    let room = style.width.saturating_sub(right.chars().count() + 4);
    let left = wrap(&left, room.max(20)).into_iter().next().unwrap_or_default();
    let left = left.trim_end_matches([',', ' ']).to_owned();
    format!(" {}   {right}\n", style.paint("1", &format!("{left:<room$}")))
}

fn heading_text(text: &str, style: &TerminalStyle) -> String {
    let text = format!(" {text:<width$}", width = HEADING - 1);
    if text.trim().is_empty() { text } else { style.paint("1", &text) }
}

fn verdicts(out: &mut String, record: &Record, style: &TerminalStyle) {
    let width = record.summary.fitness.iter().map(|f| f.purpose.chars().count()).max().unwrap_or(0);
    for (i, f) in record.summary.fitness.iter().enumerate() {
        let (mark, ascii, color) = match f.fit {
            Fit::Yes => ("✓", "ok", "32"),
            Fit::Unknown => ("?", "?", "36"),
            Fit::Partly => ("~", "~", "33"),
            Fit::No => ("✗", "no", "31"),
        };
        let mark = if style.ascii { format!("{ascii:<2}") } else { mark.to_owned() };
        out.push_str(&heading_text(if i == 0 { "VERDICT" } else { "" }, style));
        out.push_str(&style.paint(color, &mark));
        let begin = format!(" {:<width$}  ", printable(&f.purpose));
        let lead = HEADING + mark.chars().count() + begin.chars().count();
        let reason = wrap(&printable(&f.reason), style.width.saturating_sub(lead).max(20));
        out.push_str(&format!("{begin}{}\n", reason.join(&format!("\n{}", " ".repeat(lead)))));
    }
    if !record.summary.fitness.is_empty() {
        out.push('\n');
    }
}

fn rows(out: &mut String, record: &Record, style: &TerminalStyle) {
    let mut section = ("", 0);
    let beside = [pictures::LADDER, pictures::TAKEN];
    for row in record.summary.rows.iter().filter(|r| !beside.contains(&r.section.as_str())) {
        section = if section.0 == row.section { (section.0, section.1 + 1) } else { (&row.section, 0) };
        if section.1 >= ROWS {
            continue;
        }
        let Some((name, figures, spread)) = told(row, record, style) else { continue };
        out.push_str(&heading_text(if section.1 == 0 { &row.section } else { "" }, style));
        let line = format!("{name:<NAME$}{figures:>FIGURE$}   {spread}");
        let room = style.width.saturating_sub(HEADING);
        out.push_str(&line.trim_end().chars().take(room).collect::<String>());
        out.push('\n');
    }
}

/// Name, figures and what is to be known beside them.
pub(super) fn told(row: &Row, record: &Record, style: &TerminalStyle) -> Option<(String, String, String)> {
    let found: Vec<(&str, Shown<'_>)> =
        row.figures.iter().filter_map(|f| Some((f.condition.as_str(), f.find(&record.metrics)?))).collect();
    let texts: Vec<String> = found.iter().map(|(_, s)| human(s.value, s.unit)).collect();
    // Two that read the same are one: the nearest CPU of two is the farthest.
    let same = texts.len() > 1 && texts.iter().all(|t| *t == texts[0]);
    let shown = if same { &found[..1] } else { &found[..] };
    let conditions: Vec<&str> = shown.iter().map(|(c, _)| *c).filter(|c| !c.is_empty() && !same).collect();
    let name = if conditions.is_empty() {
        row.name.clone()
    } else {
        format!("{}, {}", row.name, conditions.join(" | "))
    };
    let figures = joined(&texts[..shown.len()])?;
    Some((printable(&name), figures, spread(shown, style)))
}

/// `5.14 | 31.8 ns`: a unit that is the same stands once.
fn joined(texts: &[String]) -> Option<String> {
    let (last, before) = texts.split_last()?;
    let unit = last.split_once(' ').map_or("", |(_, unit)| unit);
    let mut parts: Vec<&str> =
        before.iter().map(|t| t.strip_suffix(unit).map_or(t.as_str(), str::trim_end)).collect();
    parts.push(last);
    Some(parts.join(" | "))
}

/// The half width of the interval of a single figure as a share of it, and the mark of a shared core.
fn spread(shown: &[(&str, Shown<'_>)], style: &TerminalStyle) -> String {
    let mut out = Vec::new();
    if let [(_, only)] = shown
        && only.metric.value == Some(only.value)
        && let Some(ci) = only.metric.ci.as_ref()
        && only.value > 0.0
    {
        let half = (only.value - ci.low).max(ci.high - only.value) / only.value;
        out.push(format!("{} {}", if style.ascii { "+-" } else { "±" }, label::tick(half, Unit::One)));
    }
    if shown.iter().any(|(_, s)| s.metric.is_shared()) {
        out.push("core shared".to_owned());
    }
    out.join(", ")
}

/// What failed, and what changes what is read: one line each.
fn notes(out: &mut String, record: &Record, style: &TerminalStyle) {
    let failed = record.checks.iter().filter(|c| c.state == CheckState::Fail);
    let failed = failed.map(|c| format!("{}  {}: {}", c.id, c.name, c.observed));
    let changing = record.warnings.iter().filter(|w| w.changes);
    let changing = changing.map(|w| format!("{}  {}", w.code, w.text));
    let all: Vec<String> = failed.chain(changing).collect();
    out.push('\n');
    for (i, text) in all.iter().take(NOTES).enumerate() {
        let room = style.width.saturating_sub(HEADING);
        let text = printable(text);
        let line = if text.chars().count() > room {
            let first = wrap(&text, room.saturating_sub(4)).into_iter().next().unwrap_or_default();
            format!("{} ...", first.trim_end_matches([' ', ',', ';', ':', '(']))
        } else {
            text
        };
        out.push_str(&heading_text(if i == 0 { "NOTES" } else { "" }, style));
        out.push_str(&format!("{line}\n"));
    }
    let doubtful = |c: &&Check| !matches!(c.state, CheckState::Pass | CheckState::NotApplicable);
    let codes: Vec<&str> = record.checks.iter().filter(doubtful).map(|c| c.id.as_str()).collect();
    let others = (record.warnings.len() + codes.len()).saturating_sub(all.len().min(NOTES));
    if others > 0 {
        let example = record.warnings.first().map_or(codes.first().copied(), |w| Some(w.code.as_str()));
        let rest = format!(
            "{others} {}notes: -v or the report. What a code means: machmeter explain {}",
            if all.is_empty() { "" } else { "smaller " },
            example.unwrap_or_default()
        );
        let first = heading_text(if all.is_empty() { "NOTES" } else { "" }, style);
        for (i, line) in wrap(&rest, style.width.saturating_sub(HEADING).max(20)).iter().enumerate() {
            out.push_str(&format!("{}{line}\n", if i == 0 { first.clone() } else { " ".repeat(HEADING) }));
        }
    }
}
