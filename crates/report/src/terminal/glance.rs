//! Prints the page: the verdicts, a row per figure, small pictures, and the important notes. The page of several probes is short enough to read in ten
//! seconds; the page of one probe has all its rows.

use machmeter_data::record::Warning;
use machmeter_data::summary::{Fit, Fitness};
use machmeter_data::{Check, CheckState, Record, Shape};

use super::layout::{flow, indented, length, room, under};
use super::rows::{Signs, rows};
use super::{TerminalStyle, decades, pictures, printable, push_wrapped, wrap};
use crate::identity::Identity;
use crate::label;

/// Number of notes printed; further ones are counted.
const NOTES: usize = 4;

/// Extent of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Three rows per probe, four notes of one line.
    Brief,
    /// All rows.
    Rows,
    /// All rows, and all notes with advice.
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
    verdicts(&mut out, &record.summary.fitness, style);
    if !record.summary.fitness.is_empty() {
        out.push('\n');
    }
    let mut signs = Signs::default();
    rows(&mut out, record, style, depth, &mut signs);
    lines(&mut out, record, style);
    let ladder = (pictures::LADDER, pictures::ladder(record, style, &mut signs));
    let taken = (pictures::TAKEN, pictures::taken(record, style, &mut signs));
    if ladder.1.len() + taken.1.len() > 0 {
        out.push('\n');
    }
    for (heading, picture) in [ladder, taken] {
        under(&mut out, style, heading, picture.iter().map(|line| printable(line)));
    }
    for dataset in &record.datasets {
        if let Shape::Decades(costs) = &dataset.shape {
            out.push('\n');
            let strip = decades::strip(costs, &record.metrics, style, room(style), &mut signs);
            under(&mut out, style, "COSTS", strip);
            if depth > Depth::Brief {
                let title = style.paint("1", &printable(&dataset.title));
                out += &format!("\n {title}\n{}", decades::ladder(costs, &record.metrics, style));
            }
        }
    }
    signs.legend(&mut out, style);
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
    let room = style.width.saturating_sub(length(&right) + 4);
    let parts: Vec<String> = left.split(", ").map(str::to_owned).collect();
    let shown = flow(&parts, ", ", room).swap_remove(0);
    if length(&shown) > room {
        let lines = [left, right].map(|text| wrap(&text, style.width.saturating_sub(1)).join("\n "));
        return format!(" {}\n {}\n", style.paint("1", &lines[0]), lines[1]);
    }
    format!(" {}   {right}\n", style.paint("1", &format!("{shown:<room$}")))
}

/// Least columns for the reason of a verdict; with fewer, it moves below its purpose, indented by `BELOW`.
const REASON: usize = 24;
const BELOW: usize = 2;

/// Adds a line for each verdict: a mark, the purpose, the reason.
pub(super) fn verdicts(out: &mut String, fitness: &[Fitness], style: &TerminalStyle) {
    let width = fitness.iter().map(|f| f.purpose.chars().count()).max().unwrap_or(0);
    let line = |f: &Fitness| {
        let (mark, ascii, color) = match f.fit {
            Fit::Yes => ("✓", "ok", "32"),
            Fit::Unknown => ("?", "?", "0"),
            Fit::Partly => ("~", "~", "33"),
            Fit::No => ("✗", "no", "31"),
        };
        let mark = if style.ascii { format!("{ascii:<2}") } else { mark.to_owned() };
        let begin = format!(" {:<width$}  ", printable(&f.purpose));
        let lead = length(&mark) + length(&begin);
        let (text, mark) = (printable(&f.reason), style.paint(color, &mark));
        if lead + REASON > room(style) {
            let first = format!("{mark}{}", begin.trim_end());
            let below = indented(&text, room(style).saturating_sub(BELOW), 0);
            return std::iter::once(first)
                .chain(below.into_iter().map(|l| format!("{:BELOW$}{l}", "")))
                .collect();
        }
        let reason = wrap(&text, room(style) - lead);
        let line = |(i, part): (usize, &String)| {
            if i == 0 { format!("{mark}{begin}{part}") } else { format!("{:lead$}{part}", "") }
        };
        reason.iter().enumerate().map(line).collect::<Vec<String>>()
    };
    under(out, style, "VERDICT", fitness.iter().flat_map(line));
}

/// Prints lines that are no figures: tables of other tools, statements of tests.
fn lines(out: &mut String, record: &Record, style: &TerminalStyle) {
    let room = room(style).saturating_sub(1);
    for line in &record.summary.lines {
        let parts = line.lines.iter().flat_map(|text| wrap(&printable(text), room));
        under(out, style, &line.section, parts.map(|part| format!(" {part}")));
    }
}

/// Prints failed checks and important notes, one line each.
fn notes(out: &mut String, record: &Record, style: &TerminalStyle) {
    let all = label::notes(record);
    let room = room(style);
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
        under(out, style, heading, wrap(&rest, room));
    }
}

/// Prints checks that failed, warn or are unknown, and all warnings with their advice.
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
