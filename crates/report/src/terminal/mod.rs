//! The page on a terminal: plain text in aligned columns, optional color, glyphs with an ASCII variant.

mod columns;
mod dataset;
mod decades;
mod glance;
mod glyphs;
mod matrix;
mod pictures;

use std::fmt::Write as _;

use machmeter_data::record::Warning;
use machmeter_data::{CheckState, Record, Shape};

use crate::identity::Identity;
use machmeter_data::finite;

pub use dataset::dataset;
pub use glyphs::sparkline;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Columns of the terminal; long lines are broken at words.
    pub width: usize,
    pub color: bool,
    /// Only characters of ASCII.
    pub ascii: bool,
}

impl Default for TerminalStyle {
    /// Plain: 80 columns, no color, ASCII.
    fn default() -> Self {
        Self { width: 80, color: false, ascii: true }
    }
}

impl TerminalStyle {
    fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

const SECTION: usize = 13;
/// Warnings that are told in full before the figures. Of more, the figures would not be on the first screen.
const TOLD_FIRST: usize = 2;

/// The page of a record: that of the whole machine at a glance where it has rows, else in full.
pub fn page(record: &Record, style: &TerminalStyle) -> String {
    let record = finite::record(record);
    if record.summary.rows.is_empty() { in_full(&record, style) } else { glance::page(&record, style) }
}

/// Who, what weakens it, the sections of its summary in words, ladders of costs, the verdict, and in full what was too much to be told
/// first.
pub fn in_full(record: &Record, style: &TerminalStyle) -> String {
    let id = Identity::of(record);
    let mut out = String::new();
    let head =
        format!("{} {}  {}  {}", record.tool.name, record.tool.version, printable(&id.name), id.line());
    push_wrapped(&mut out, style, "", "  ", &printable(&head), Some("1"));
    if !record.complete {
        let text = format!("incomplete: the run ended before its plan ({})", record.stopped_by);
        push_wrapped(&mut out, style, " ! ", "   ", &text, Some("33"));
    }
    notes(&mut out, record, style);
    out.push('\n');
    for line in &record.summary.lines {
        for (i, text) in line.lines.iter().enumerate() {
            let heading = if i == 0 { line.section.as_str() } else { "" };
            section(&mut out, style, heading, text);
        }
    }
    for d in &record.datasets {
        if let Shape::Decades(ladder) = &d.shape {
            let _ = write!(
                out,
                "\n {}\n{}",
                style.paint("1", &printable(&d.title)),
                decades::ladder(ladder, style)
            );
        }
    }
    if !record.summary.verdict.is_empty() {
        out.push('\n');
        section(&mut out, style, "VERDICT", &record.summary.verdict);
    }
    if record.warnings.len() > TOLD_FIRST {
        let _ = write!(out, "\n {}\n", style.paint("1", "WARNINGS"));
        for w in &record.warnings {
            push_warning(&mut out, w, style);
        }
    }
    out
}

/// Every dataset of a record that the page does not draw itself, one below the other, with what to know when reading it.
pub fn views(record: &Record, style: &TerminalStyle) -> String {
    let record = finite::record(record);
    let mut out = String::new();
    let mut said = "";
    for d in record.datasets.iter().filter(|d| !matches!(d.shape, Shape::Decades(_))) {
        out.push('\n');
        out.push_str(&dataset(d, style));
        // Datasets of one kind follow each other: what they have in common is said once.
        if d.caption != said {
            push_wrapped(&mut out, style, "   ", "   ", &printable(&d.caption), Some("2"));
            said = &d.caption;
        }
    }
    out
}

/// Lines for what failed, warns or is unknown: ` ! code text`, ` ? code text`.
fn notes(out: &mut String, record: &Record, style: &TerminalStyle) {
    let warnings = &record.warnings;
    if warnings.len() > TOLD_FIRST {
        for w in warnings {
            let told = begin(&printable(&format!("{} {}", w.code, w.text)), style);
            push_wrapped(out, style, " ! ", "   ", &told, Some("33"));
        }
        push_wrapped(out, style, "   ", "   ", "(warnings in full: below)", Some("33"));
    } else {
        for w in warnings {
            push_warning(out, w, style);
        }
    }
    let in_state = |state: CheckState| record.checks.iter().filter(move |c| c.state == state);
    for c in in_state(CheckState::Fail) {
        let mut text = format!("{} {}: {}", c.id, c.name, c.observed);
        if let Some(limit) = &c.limit {
            let _ = write!(text, " (limit {limit})");
        }
        push_wrapped(out, style, " ! ", "   ", &printable(&text), Some("31"));
    }
    // What failed is told in full; the rest by name, so that the figures stay on the first screen.
    for (state, sign, word, color) in
        [(CheckState::Warn, " ! ", "doubtful", "33"), (CheckState::Unknown, " ? ", "unknown", "36")]
    {
        let names: Vec<String> = in_state(state).map(|c| format!("{} {}", c.id, c.name)).collect();
        if !names.is_empty() {
            let text = format!("{word}: {}   (machmeter doctor)", names.join(", "));
            push_wrapped(out, style, sign, "   ", &printable(&text), Some(color));
        }
    }
}

fn push_warning(out: &mut String, w: &Warning, style: &TerminalStyle) {
    let text = printable(&format!("{} {}. Next: {}", w.code, w.text.trim_end_matches('.'), w.next));
    push_wrapped(out, style, " ! ", "   ", &text, Some("33"));
}

/// As many words of a text as fit on one line beside its sign; dots tell that there are more.
fn begin(text: &str, style: &TerminalStyle) -> String {
    const MORE: &str = " ...";
    let room = style.width.saturating_sub(" ! ".len()).max(20);
    if text.chars().count() <= room {
        return text.to_owned();
    }
    let first = wrap(text, room - MORE.len()).into_iter().next().unwrap_or_default();
    format!("{}{MORE}", first.trim_end_matches([' ', ',', ';', ':', '(']))
}

fn section(out: &mut String, style: &TerminalStyle, heading: &str, text: &str) {
    let name = format!(" {heading:<width$}", width = SECTION - 1);
    let first = if heading.is_empty() { name } else { style.paint("1", &name) };
    let lead = SECTION.max(heading.chars().count() + 2);
    for (i, part) in wrap(&printable(text), style.width.saturating_sub(lead).max(20)).iter().enumerate() {
        if i == 0 {
            out.push_str(&first);
        } else {
            out.push_str(&" ".repeat(SECTION));
        }
        out.push_str(part);
        out.push('\n');
    }
}

fn push_wrapped(
    out: &mut String,
    style: &TerminalStyle,
    first: &str,
    rest: &str,
    text: &str,
    color: Option<&str>,
) {
    let room = style.width.saturating_sub(rest.chars().count().max(first.chars().count())).max(20);
    for (i, part) in wrap(text, room).iter().enumerate() {
        let line = format!("{}{part}", if i == 0 { first } else { rest });
        out.push_str(&color.map_or(line.clone(), |c| style.paint(c, &line)));
        out.push('\n');
    }
}

/// Text broken at spaces into lines of at most `room` characters; runs of spaces inside a line stay.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim_end();
    while rest.chars().count() > room {
        let limit = rest.char_indices().nth(room).map_or(rest.len(), |(i, _)| i);
        // The line may be as long as there is room, so the space may come just behind.
        let behind = rest[limit..].starts_with(' ').then_some(limit);
        let break_at = behind.or_else(|| rest[..limit].rfind(' ')).filter(|i| *i > 0);
        let Some(at) = break_at.or_else(|| rest.find(' ')) else { break };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

/// Text without control characters: names come from the system and must not steer the terminal.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words_and_keep_inner_spaces() {
        assert_eq!(wrap("aa  bb cc", 6), ["aa  bb", "cc"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("ä ö ü", 3), ["ä ö", "ü"]);
        assert_eq!(wrap("éééé éé 漢字", 3), ["éééé", "éé", "漢字"]);
    }

    #[test]
    fn the_beginning_of_a_text_fits_on_a_line() {
        let style = TerminalStyle { width: 33, ..TerminalStyle::default() };
        assert_eq!(begin("W448 somebody else used the", &style), "W448 somebody else used the");
        assert_eq!(begin("W448 somebody else used the core: 72 %", &style), "W448 somebody else used ...");
    }

    #[test]
    fn names_can_not_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a [2Jb");
    }
}
