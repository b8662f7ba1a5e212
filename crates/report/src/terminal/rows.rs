//! Prints rows of figures in aligned columns.
//!
//! A row is one line if its parts fit side by side: name, figures, interval, marks, and a strip with the usual range. Otherwise the figures and their
//! interval move below the name. Figures, units and marks are never shortened. Without room for the words of a mark, its sign is printed, and a legend
//! follows the rows.

use std::collections::BTreeSet;

use machmeter_data::summary::{Compared, Mark, Place, Row, RowText, ends};
use machmeter_data::{Metric, Record};

use super::glance::Depth;
use super::layout::{flow, indented, length, room, under};
use super::{TerminalStyle, pictures, printable};

/// Least columns of names; least and most columns of figures.
const NAME: usize = 35;
const FIGURES: [usize; 2] = [16, 24];
/// Least columns of the interval.
const BESIDE: usize = 16;
/// Space between the figures and the text beside them.
const GAP: &str = "   ";
/// Most and fewest columns of the strip that shows the usual range.
const STRIP: [usize; 2] = [26, 9];
/// Rows of a section on the page of several probes.
const ROWS: usize = 3;
/// Indentation of figures below their name.
const BELOW: usize = 2;

/// Widths of the columns that the rows of a page share.
struct Grid {
    room: usize,
    name: usize,
    figures: usize,
    intervals: usize,
}

/// Marks that a page shows as signs, and the codes behind suspect figures; the legend explains both.
#[derive(Debug, Default)]
pub(super) struct Signs {
    marks: BTreeSet<Mark>,
    codes: BTreeSet<String>,
}

impl Signs {
    /// The sign of a mark; the legend will include it.
    pub(super) fn sign(&mut self, mark: Mark) -> String {
        self.marks.insert(mark);
        mark.sign().to_string()
    }

    /// Collects the codes that weaken the figures of a row.
    pub(super) fn see(&mut self, row: &Row, metrics: &[Metric]) {
        self.see_metrics(row.shown(metrics).iter().map(|(_, s)| s.metric));
    }

    /// Collects the codes that weaken these figures.
    pub(super) fn see_metrics<'m>(&mut self, metrics: impl Iterator<Item = &'m Metric>) {
        self.codes.extend(metrics.flat_map(|m| m.flags.iter().cloned()));
    }

    /// Adds a line for each sign.
    pub(super) fn legend(&self, out: &mut String, style: &TerminalStyle) {
        for mark in &self.marks {
            let text = match mark {
                Mark::Suspect if !self.codes.is_empty() => {
                    let codes: Vec<&str> = self.codes.iter().map(String::as_str).collect();
                    format!("suspect: weakened by {}", codes.join(", "))
                }
                _ => mark.legend().to_owned(),
            };
            under(out, style, "", indented(&format!("{} {text}", mark.sign()), room(style), BELOW));
        }
    }
}

/// Rows of a section that have no figure for one reason.
struct Missing<'r> {
    section: &'r str,
    names: Vec<String>,
    why: String,
}

/// Adds the rows of a record.
pub(super) fn rows(
    out: &mut String,
    record: &Record,
    style: &TerminalStyle,
    depth: Depth,
    signs: &mut Signs,
) {
    let pictured = [pictures::LADDER, pictures::TAKEN];
    let shown = |r: &&Row| !pictured.contains(&r.section.as_str()) && (depth > Depth::Brief || !r.detail);
    let mut section = ("", 0);
    let mut all: Vec<(&str, RowText)> = Vec::new();
    let mut missing: Vec<Missing<'_>> = Vec::new();
    for row in record.summary.rows.iter().filter(shown) {
        let Some(mut text) = row.text(&record.metrics) else {
            let Some((name, why)) = row.missing(&record.metrics) else { continue };
            let (name, section) = (printable(name), row.section.as_str());
            match missing.iter_mut().find(|m| m.section == section && m.why == why) {
                Some(same) => same.names.push(name),
                None => missing.push(Missing { section, names: vec![name], why }),
            }
            continue;
        };
        section = if section.0 == row.section { (section.0, section.1 + 1) } else { (&row.section, 0) };
        if section.1 < ROWS || depth > Depth::Brief {
            text.name = printable(&text.name);
            text.interval = text.interval.map(|i| if style.ascii { i.replace('±', "+-") } else { i });
            signs.see(row, &record.metrics);
            all.push((&row.section, text));
        }
    }
    let grid = Grid::of(&all, style);
    let mut sections: Vec<&str> = Vec::new();
    for section in record.summary.rows.iter().map(|r| r.section.as_str()) {
        if !sections.contains(&section) {
            sections.push(section);
        }
    }
    for section in sections {
        let mut heading = section;
        let texts = all.iter().filter(|(s, _)| *s == section).map(|(_, text)| grid.lines(text, style, signs));
        let reasons = missing.iter().filter(|m| m.section == section).map(|m| {
            let text = format!("{}: {}", m.names.join("; "), printable(&m.why));
            indented(&text, room(style), BELOW)
        });
        for lines in texts.chain(reasons).collect::<Vec<_>>() {
            under(out, style, heading, lines);
            heading = "";
        }
    }
}

impl Grid {
    fn of(all: &[(&str, RowText)], style: &TerminalStyle) -> Self {
        let longest = |of: &dyn Fn(&RowText) -> usize| all.iter().map(|(_, t)| of(t)).max().unwrap_or(0);
        let room = room(style);
        let figures = longest(&|t| length(&t.line())).clamp(FIGURES[0], FIGURES[1]);
        let intervals = longest(&|t| length(&beside(t, false)));
        let left = room.saturating_sub(figures + 1);
        let name =
            longest(&|t| length(&t.name)).min(left.saturating_sub(BESIDE.max(intervals + 4)).max(NAME));
        Self { room, name: name.min(left), figures, intervals }
    }

    /// The lines of a row.
    fn lines(&self, text: &RowText, style: &TerminalStyle, signs: &mut Signs) -> Vec<String> {
        let figures = text.line();
        let painted = |line: &str| match &text.compared {
            Some(c) => line.replacen(&figures, &style.paint(color(c.place()), &figures), 1),
            None => line.to_owned(),
        };
        // A long name extends into the column of figures, and long figures into the column of names.
        let own = length(&figures);
        let aligned = (self.name + 1 + self.figures).saturating_sub(length(&text.name) + 1).max(own);
        for as_signs in [false, true] {
            let beside = beside(text, as_signs);
            let gap = if beside.is_empty() { "" } else { GAP };
            let free = self.room.checked_sub(length(&text.name) + 1 + length(gap) + length(&beside));
            // Figures leave their column before a row takes two lines.
            let Some(column) = free.map(|free| aligned.min(free)).filter(|column| *column >= own) else {
                continue;
            };
            let head = format!("{} {figures:>column$}", text.name);
            for mark in text.marks.iter().filter(|m| is_sign(**m, as_signs)) {
                signs.sign(*mark);
            }
            let used = length(&head) + length(GAP) + self.intervals.max(length(&beside)) + 2;
            let strip = text.compared.as_ref().and_then(|c| strip(c, self.room.saturating_sub(used), style));
            let intervals = self.intervals;
            return vec![match strip {
                Some(strip) => format!("{}{GAP}{beside:<intervals$}  {strip}", painted(&head)),
                None => format!("{}{gap}{beside}", painted(&head)),
            }];
        }
        let mut lines = indented(&text.name, self.room, BELOW);
        let last = text.figures.len().saturating_sub(1);
        let mut parts: Vec<String> = text
            .figures
            .iter()
            .enumerate()
            .map(|(i, f)| if i < last { format!("{f} |") } else { f.clone() })
            .collect();
        parts.extend(text.interval.iter().map(|i| format!(" {i}")));
        let words = |m: &Mark| if is_sign(*m, false) { signs.sign(*m) } else { m.name().to_owned() };
        parts.extend(text.marks.iter().map(words).map(|words| format!(" {words}")));
        let below = flow(&parts, " ", self.room.saturating_sub(BELOW));
        lines.extend(below.into_iter().map(|line| painted(&format!("{:BELOW$}{}", "", line.trim_start()))));
        lines
    }
}

/// Suspect figures can be many, so they always have a sign. The mark of a shared core is rarer and has words if there is room.
fn is_sign(mark: Mark, as_signs: bool) -> bool {
    as_signs || mark == Mark::Suspect
}

/// The interval and the marks of a row, the marks as words or as signs.
fn beside(text: &RowText, as_signs: bool) -> String {
    let mut out = text.interval.clone().unwrap_or_default();
    for mark in &text.marks {
        let (between, mark) = if is_sign(*mark, as_signs) {
            (" ", mark.sign().to_string())
        } else {
            (", ", mark.name().to_owned())
        };
        if !out.is_empty() {
            out.push_str(between);
        }
        out.push_str(&mark);
    }
    out
}

/// The position of a figure within its usual range, and the range in words if there is room: `··▒▒●▒▒··  16.1 ns to 105 ns`.
fn strip(compared: &Compared, room: usize, style: &TerminalStyle) -> Option<String> {
    let words = ends(compared.usual.low, compared.usual.high, compared.unit);
    let with_words = room.checked_sub(length(&words) + 2).filter(|c| *c >= STRIP[1]);
    let columns = with_words.unwrap_or(room).min(STRIP[0]);
    if columns < STRIP[1] {
        return None;
    }
    let [empty, within, here] = if style.ascii { ['.', '=', 'o'] } else { ['·', '▒', '●'] };
    let [low, at, high] = compared.places().map(|p| (p * (columns - 1) as f64).round() as usize);
    let glyph = |i: usize| match i {
        i if i == at => style.paint(color(compared.place()), &here.to_string()),
        i if (low..=high).contains(&i) => within.to_string(),
        _ => empty.to_string(),
    };
    let strip: String = (0..columns).map(glyph).collect();
    Some(if with_words.is_some() { format!("{strip}  {words}") } else { strip })
}

fn color(place: Place) -> &'static str {
    match place {
        Place::Usual => "32",
        Place::Worse => "33",
        Place::FarWorse => "31",
    }
}
