//! Places text on the page: headings on the left, lines beside them, parts that are never broken.

use super::{TerminalStyle, printable, wrap};

/// Columns of headings, including the leading space.
const HEADING: usize = 13;
/// Terminals narrower than this have headings on separate lines.
const NARROW: usize = 60;
/// Indentation of text below a heading on a separate line.
const INDENT: usize = 2;

/// Columns before the text beside headings.
pub(super) fn margin(style: &TerminalStyle) -> usize {
    if style.width < NARROW { INDENT } else { HEADING }
}

/// Columns for the text beside headings.
pub(super) fn room(style: &TerminalStyle) -> usize {
    style.width.saturating_sub(margin(style)).max(1)
}

/// Adds lines, the first beside its heading and the rest below it; on a narrow terminal all of them below it.
pub(super) fn under(
    out: &mut String,
    style: &TerminalStyle,
    heading: &str,
    lines: impl IntoIterator<Item = String>,
) {
    let margin = margin(style);
    let mut heading = printable(heading);
    for line in lines {
        if margin < HEADING && !heading.is_empty() {
            *out += &format!("{}\n", style.paint("1", &format!(" {heading}")));
            heading.clear();
        }
        let before = format!(" {heading:<width$}", width = margin - 1);
        let before = if heading.is_empty() { before } else { style.paint("1", &before) };
        *out += &format!("{}\n", format!("{before}{line}").trim_end());
        heading.clear();
    }
}

/// Joins parts with `gap` into as few lines of at most `room` characters as possible, in order. No part is broken; a longer one has its own line.
pub(super) fn flow(parts: &[String], gap: &str, room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in parts.iter().filter(|p| !p.is_empty()) {
        match lines.last_mut() {
            Some(line) if length(line) + length(gap) + length(part) <= room => {
                *line += &format!("{gap}{part}");
            }
            _ => lines.push(part.clone()),
        }
    }
    lines
}

/// A text in lines of at most `room` characters; further lines are indented by `indent` spaces.
pub(super) fn indented(text: &str, room: usize, indent: usize) -> Vec<String> {
    let lines = wrap(text, room.saturating_sub(indent).max(1)).into_iter().enumerate();
    lines.map(|(i, line)| if i == 0 { line } else { format!("{:indent$}{line}", "") }).collect()
}

/// Number of characters.
pub(super) fn length(text: &str) -> usize {
    text.chars().count()
}
