//! Prints a record on a terminal: plain text in aligned columns, with optional color and glyphs that have ASCII variants.

mod columns;
mod dataset;
mod decades;
mod glance;
mod glyphs;
mod layout;
mod matrix;
mod pictures;
mod rows;

use machmeter_data::summary::Fitness;
use machmeter_data::{Record, Shape, finite};

use glance::Depth;

pub(crate) use columns::parts;

pub use dataset::dataset;
use glyphs::sparkline;
pub use machmeter_data::text::printable;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalStyle {
    /// Columns of the terminal; long lines are broken at words.
    pub width: usize,
    pub color: bool,
    /// True to use only ASCII characters.
    pub ascii: bool,
}

impl Default for TerminalStyle {
    /// Plain: 80 columns, no color, ASCII.
    fn default() -> Self {
        Self { width: 80, color: false, ascii: true }
    }
}

impl TerminalStyle {
    pub fn paint(&self, code: &str, text: &str) -> String {
        if self.color { format!("\u{1b}[{code}m{text}\u{1b}[0m") } else { text.to_owned() }
    }
}

/// The page of a record: short for several probes, with all rows for one probe.
pub fn page(record: &Record, style: &TerminalStyle) -> String {
    let depth = if record.run.parameters.len() > 1 { Depth::Brief } else { Depth::Rows };
    glance::page(&finite::record(record), style, depth)
}

/// Adds a line per verdict with a mark, the purpose and the reason.
pub fn verdicts(out: &mut String, fitness: &[Fitness], style: &TerminalStyle) {
    glance::verdicts(out, fitness, style);
}

/// The page with all rows and all notes.
pub fn in_full(record: &Record, style: &TerminalStyle) -> String {
    glance::page(&finite::record(record), style, Depth::All)
}

/// Every dataset that the page does not draw, one below the other, with its caption.
pub fn views(record: &Record, style: &TerminalStyle) -> String {
    let record = finite::record(record);
    let mut out = String::new();
    let mut said = "";
    for d in record.datasets.iter().filter(|d| !matches!(d.shape, Shape::Decades(_))) {
        out.push('\n');
        out.push_str(&dataset(d, &record.metrics, style));
        // Datasets of one kind follow each other; their common caption appears once.
        if d.caption != said {
            push_wrapped(&mut out, style, "   ", "   ", &printable(&d.caption), Some("2"));
            said = &d.caption;
        }
    }
    out
}

/// Adds a text that begins with `first`, broken at words; further lines begin with `rest`.
pub fn push_wrapped(
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

/// Units; no line breaks between a number and its unit.
const UNITS: [&str; 26] = [
    "%", "ns", "us", "ms", "s", "min", "h", "B", "KiB", "MiB", "GiB", "kB", "B/s", "kB/s", "MB/s", "GB/s",
    "Hz", "kHz", "MHz", "GHz", "flop/s", "kflop/s", "Mflop/s", "Gflop/s", "ns/B", "ppm",
];
/// A space at which no line breaks.
const GLUE: char = '\u{a0}';

/// Puts [`GLUE`] between numbers and their units.
fn glued(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut is_number = false;
    for word in text.split_inclusive(' ') {
        let unit = word.trim_end().trim_end_matches([',', ';', ':', '.', ')']);
        if is_number && UNITS.contains(&unit) {
            out.pop();
            out.push(GLUE);
        }
        out.push_str(word);
        is_number =
            word.trim_start_matches(['(', '<', '>', '+', '-', '~']).starts_with(|c: char| c.is_ascii_digit())
                && word.trim_end().ends_with(|c: char| c.is_ascii_digit());
    }
    out
}

/// Breaks a text at spaces into lines of at most `room` characters, but not between a number and its unit. Runs of spaces inside a line are kept.
pub fn wrap(text: &str, room: usize) -> Vec<String> {
    let text = glued(text);
    wrapped(&text, room).into_iter().map(|line| line.replace(GLUE, " ")).collect()
}

fn wrapped(text: &str, room: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut rest = text.trim_end();
    while rest.chars().count() > room {
        let limit = rest.char_indices().nth(room).map_or(rest.len(), |(i, _)| i);
        // A line may fill the room, so the next character may be the space.
        let behind = rest[limit..].starts_with(' ').then_some(limit);
        let break_at = behind.or_else(|| rest[..limit].rfind(' ')).filter(|i| *i > 0);
        let Some(at) = break_at.or_else(|| rest.find(' ')) else { break };
        lines.push(rest[..at].trim_end().to_owned());
        rest = rest[at..].trim_start();
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_words_and_keep_inner_spaces() {
        assert_eq!(wrap("aa  bb cc", 6), ["aa  bb", "cc"]);
        assert_eq!(wrap("unbreakable", 4), ["unbreakable"]);
        assert_eq!(wrap("took 2.3 % of 2 CPUs (4.0 us)", 7), ["took", "2.3 %", "of 2", "CPUs", "(4.0 us)"]);
        assert_eq!(wrap("ä ö ü", 3), ["ä ö", "ü"]);
        assert_eq!(wrap("éééé éé 漢字", 3), ["éééé", "éé", "漢字"]);
    }

    #[test]
    fn names_can_not_steer_the_terminal() {
        assert_eq!(printable("a\u{1b}[2Jb"), "a [2Jb");
    }
}
