//! The page: what the machine is fit for, a row for each figure, pictures of them, and the notes that change what is read. Of several
//! probes it is short, to be read in ten seconds; of one it has all rows.

use machmeter_data::quantity::human;
use machmeter_data::record::Warning;
use machmeter_data::summary::{Compared, Fit, Fitness, Place, Row, Told, span};
use machmeter_data::{Check, CheckState, Record, Shape, Unit};

use super::{TerminalStyle, decades, pictures, printable, push_wrapped, wrap};
use crate::identity::Identity;
use crate::label;

/// Columns of headings and of names.
pub(super) const HEADING: usize = 12;
const NAME: usize = 35;
const FIGURE: usize = 16;
/// Most and fewest columns of the strip that shows what is usual.
const STRIP: [usize; 2] = [26, 9];
/// Columns for what stands beside a figure.
const BESIDE: usize = 16;
/// Notes that are told; the others are counted.
const NOTES: usize = 4;
/// Rows of a section on the page of several probes.
const ROWS: usize = 3;

/// How much of a record is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Three rows of a probe, four notes of a line.
    Brief,
    /// All rows.
    Rows,
    /// All rows, and all notes with what to do.
    All,
}

/// The page of a record.
pub(super) fn page(record: &Record, style: &TerminalStyle, depth: Depth) -> String {
    let mut out = heading(record, style);
    if !record.complete {
        let text = format!("incomplete: the run ended before its plan ({})", record.stopped_by);
        push_wrapped(&mut out, style, " ! ", "   ", &printable(&text), Some("33"));
    }
    out.push('\n');
    verdicts(&mut out, record, style);
    rows(&mut out, record, style, depth);
    lines(&mut out, record, style);
    let ladder = (pictures::LADDER, pictures::ladder(record, style));
    let taken = (pictures::TAKEN, pictures::taken(record, style));
    if ladder.1.len() + taken.1.len() > 0 {
        out.push('\n');
    }
    let room = style.width.saturating_sub(HEADING);
    for (heading, picture) in [ladder, taken] {
        let text =
            |line: &String| printable(line).chars().take(room).collect::<String>().trim_end().to_owned();
        under(&mut out, style, heading, picture.iter().map(text));
    }
    for dataset in &record.datasets {
        if let Shape::Decades(costs) = &dataset.shape {
            out.push('\n');
            out += &decades::strip(costs, style, &heading_text("COSTS", style), HEADING);
            if depth > Depth::Brief {
                let title = style.paint("1", &printable(&dataset.title));
                out += &format!("\n {title}\n{}", decades::ladder(costs, style));
            }
        }
    }
    out.push('\n');
    if depth == Depth::All {
        all_notes(&mut out, record, style);
    } else {
        notes(&mut out, record, style);
    }
    out
}

fn heading(record: &Record, style: &TerminalStyle) -> String {
    let id = Identity::of(record);
    let left = printable(&format!("{}  {}", id.name, id.line()));
    let took = match record.run.wall_ns {
        // Calculated, not measured.
        0 => String::new(),
        ns => format!(", {}", label::duration(ns as f64)),
    };
    let right = printable(&format!("{} {}{took}", record.tool.name, record.tool.version));
    let room = style.width.saturating_sub(right.chars().count() + 4);
    let left = wrap(&left, room.max(20)).into_iter().next().unwrap_or_default();
    let left = left.trim_end_matches([',', ' ']).to_owned();
    format!(" {}   {right}\n", style.paint("1", &format!("{left:<room$}")))
}

fn heading_text(text: &str, style: &TerminalStyle) -> String {
    let text = format!(" {:<width$}", printable(text), width = HEADING - 1);
    if text.trim().is_empty() { text } else { style.paint("1", &text) }
}

/// Lines of which the first stands beside the heading, the others below it.
fn under(out: &mut String, style: &TerminalStyle, heading: &str, lines: impl IntoIterator<Item = String>) {
    for (i, line) in lines.into_iter().enumerate() {
        *out += &format!("{}{line}\n", heading_text(if i == 0 { heading } else { "" }, style));
    }
}

fn verdicts(out: &mut String, record: &Record, style: &TerminalStyle) {
    let width = record.summary.fitness.iter().map(|f| f.purpose.chars().count()).max().unwrap_or(0);
    let line = |f: &Fitness| {
        let (mark, ascii, color) = match f.fit {
            Fit::Yes => ("✓", "ok", "32"),
            Fit::Unknown => ("?", "?", "0"),
            Fit::Partly => ("~", "~", "33"),
            Fit::No => ("✗", "no", "31"),
        };
        let mark = if style.ascii { format!("{ascii:<2}") } else { mark.to_owned() };
        let begin = format!(" {:<width$}  ", printable(&f.purpose));
        let lead = HEADING + mark.chars().count() + begin.chars().count();
        let reason = wrap(&printable(&f.reason), style.width.saturating_sub(lead).max(20));
        format!("{}{begin}{}", style.paint(color, &mark), reason.join(&format!("\n{}", " ".repeat(lead))))
    };
    under(out, style, "VERDICT", record.summary.fitness.iter().map(line));
    if !record.summary.fitness.is_empty() {
        out.push('\n');
    }
}

fn rows(out: &mut String, record: &Record, style: &TerminalStyle, depth: Depth) {
    let beside = [pictures::LADDER, pictures::TAKEN];
    let shown = |r: &&Row| !beside.contains(&r.section.as_str()) && (depth > Depth::Brief || !r.detail);
    let told = record.summary.rows.iter().filter(shown);
    let all: Vec<(&Row, Told)> = told.filter_map(|r| Some((r, r.told(&record.metrics)?))).collect();
    let longest =
        |of: &dyn Fn(&Told) -> String| all.iter().map(|(_, t)| of(t).chars().count()).max().unwrap_or(0);
    let figures = longest(&|t| t.figures.clone()).max(FIGURE);
    let intervals = longest(&|t| beside_figures(t, style));
    let beside = BESIDE.max(intervals + 4);
    let [room, most] = [beside, 1].map(|beside| style.width.saturating_sub(HEADING + figures + beside));
    let width = longest(&|t| t.name.clone()).min(room.max(NAME)).min(most);
    let mut section = ("", 0);
    for (row, told) in &all {
        section = if section.0 == row.section { (section.0, section.1 + 1) } else { (&row.section, 0) };
        if section.1 >= ROWS && depth == Depth::Brief {
            continue;
        }
        out.push_str(&heading_text(if section.1 == 0 { &row.section } else { "" }, style));
        // A long name reaches into the room that its figures leave, to the edge where nothing stands beside them.
        let beside = beside_figures(told, style);
        let is_bare = beside.is_empty() && told.compared.is_none();
        let line = if is_bare { style.width.saturating_sub(HEADING + 1) } else { width + figures };
        let own = told.figures.chars().count();
        let name = label::clipped(&printable(&told.name), line.saturating_sub(own).max(width));
        let column = (width + figures).saturating_sub(name.chars().count().max(width)).max(own);
        let room = style.width.saturating_sub(HEADING + width + figures + 4);
        let compared = told.compared.as_ref();
        let strip = compared.and_then(|c| strip(c, room.saturating_sub(intervals + 2), style));
        let beside = match strip {
            Some(strip) => format!("{beside:<intervals$}  {strip}"),
            // A part of an interval would be another figure.
            None if told.interval.is_some() => {
                let fits = |text: &String| text.chars().count() <= room;
                [beside, half_width(told, style)].into_iter().find(fits).unwrap_or_default()
            }
            None => beside.chars().take(room).collect(),
        };
        let figure = match compared {
            Some(c) => style.paint(color(c.place()), &format!("{:>column$}", told.figures)),
            None => format!("{:>column$}", told.figures),
        };
        *out += &format!("{}\n", format!("{name:<width$} {figure}   {beside}").trim_end());
    }
}

/// The interval and the mark of a shared core.
fn beside_figures(told: &Told, style: &TerminalStyle) -> String {
    let interval = told.interval.as_ref().map(|i| text(i, style));
    let shared = told.is_shared.then(|| "core shared".to_owned());
    interval.into_iter().chain(shared).collect::<Vec<_>>().join(", ")
}

fn half_width(told: &Told, style: &TerminalStyle) -> String {
    told.half_width.map(|h| text(&format!("± {}", human(h, Unit::One)), style)).unwrap_or_default()
}

fn text(interval: &str, style: &TerminalStyle) -> String {
    if style.ascii { interval.replace('±', "+-") } else { interval.to_owned() }
}

/// A figure's place in what is usual on machines of its kind, and the range where there is room: `··▒▒●▒▒··  16.1 to 105 ns`.
fn strip(compared: &Compared, room: usize, style: &TerminalStyle) -> Option<String> {
    let words = span(compared.usual.low, compared.usual.high, compared.unit);
    let with_words = room.checked_sub(words.chars().count() + 2).filter(|c| *c >= STRIP[1]);
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

/// What is no figure: tables of other tools, statements of tests.
fn lines(out: &mut String, record: &Record, style: &TerminalStyle) {
    let room = style.width.saturating_sub(HEADING + 1).max(20);
    for line in &record.summary.lines {
        let parts = line.lines.iter().flat_map(|text| wrap(&printable(text), room));
        under(out, style, &line.section, parts.map(|part| format!(" {part}")));
    }
}

/// What failed, and what changes what is read: one line each.
fn notes(out: &mut String, record: &Record, style: &TerminalStyle) {
    let all = label::notes(record);
    let room = style.width.saturating_sub(HEADING);
    let line = |text: &String| {
        let text = printable(text);
        if text.chars().count() <= room {
            return text;
        }
        let first = wrap(&text, room.saturating_sub(4)).into_iter().next().unwrap_or_default();
        format!("{} ...", first.trim_end_matches([' ', ',', ';', ':', '(']))
    };
    under(out, style, "NOTES", all.iter().take(NOTES).map(line));
    let doubtful = |c: &&Check| !matches!(c.state, CheckState::Pass | CheckState::NotApplicable);
    let codes: Vec<&str> = record.checks.iter().filter(doubtful).map(|c| c.id.as_str()).collect();
    let others = (record.warnings.len() + codes.len()).saturating_sub(all.len().min(NOTES));
    if others > 0 {
        let example = record.warnings.first().map_or(codes.first().copied(), |w| Some(w.code.as_str()));
        let (heading, notes) = if all.is_empty() { ("NOTES", "notes") } else { ("", "smaller notes") };
        let how = format!("What a code means: machmeter explain {}", example.unwrap_or_default());
        let notes = if others == 1 { notes.trim_end_matches('s') } else { notes };
        let rest = printable(&format!("{others} {notes}: -v or the report. {how}"));
        under(out, style, heading, wrap(&rest, room.max(20)));
    }
}

/// What failed, warns or is unknown, and all warnings with what to do.
fn all_notes(out: &mut String, record: &Record, style: &TerminalStyle) {
    let in_state = |state: CheckState| record.checks.iter().filter(move |c| c.state == state);
    for c in in_state(CheckState::Fail) {
        let limit = c.limit.as_ref().map_or(String::new(), |limit| format!(" (limit {limit})"));
        let text = format!("{} {}: {}{limit}", c.id, c.name, c.observed);
        push_wrapped(out, style, " ! ", "   ", &printable(&text), Some("31"));
    }
    for (state, sign, word) in
        [(CheckState::Warn, " ! ", "doubtful"), (CheckState::Unknown, " ? ", "unknown")]
    {
        let names: Vec<String> = in_state(state).map(|c| format!("{} {}", c.id, c.name)).collect();
        if !names.is_empty() {
            let text = format!("{word}: {}   (machmeter doctor)", names.join(", "));
            push_wrapped(out, style, sign, "   ", &printable(&text), None);
        }
    }
    for Warning { code, text, next, .. } in &record.warnings {
        let text = printable(&format!("{code} {}. Next: {next}", text.trim_end_matches('.')));
        push_wrapped(out, style, " ! ", "   ", &text, Some("33"));
    }
}
