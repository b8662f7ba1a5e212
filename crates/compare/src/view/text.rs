//! Prints the table for a terminal or e-mail: ASCII, within a given width.

use std::collections::BTreeMap;

use crate::comparison::{Comparison, Row, Verdict};
use crate::view::figure;

/// Columns of the verdict, of a side, and of the change with its interval.
const WORD: usize = 9;
const SIDE: usize = 11;
const CHANGE: usize = 28;
/// Rows without `all`: the changed ones, then those of the page.
const ROWS: usize = 14;
/// Indentation of further lines of a row.
const INDENT: usize = 4;
/// Lines of a paragraph without `all`.
const LINES: usize = 3;

/// A comparison as lines of at most `width` columns: changes by their evidence, rows of the page, counts, the smallest detectable change. It has at most 30
/// lines if a row fits into a line; with `all`, every row and every remark. Only a word longer than a line, such as the name of a metric, exceeds the
/// width: no figure and no name is cut.
pub fn text(c: &Comparison, width: usize, all: bool) -> String {
    let mut out = String::new();
    let mut put = |line: &str| {
        out.push_str(line.trim_end());
        out.push('\n');
    };
    let rows = shown(c, all, ROWS);
    let mut body: Vec<String> =
        [&c.a, &c.b].into_iter().flat_map(|g| wrapped(&figure::group(g), width)).collect();
    for row in &rows {
        body.extend(lines(row, width));
        if let Some(why) = row.verdict.why().filter(|_| all) {
            let room = width.saturating_sub(INDENT);
            body.extend(wrapped(why, room).into_iter().map(|line| format!("{:INDENT$}{line}", "")));
        }
    }
    for line in &body {
        put(line);
    }
    let changed = c.rows.iter().filter(|r| r.verdict.is_change()).count();
    let listed = rows.iter().filter(|r| r.verdict.is_change()).count();
    if changed > listed {
        let more = format!("{:WORD$} and {} more that changed: -v", "", changed - listed);
        let lines = if more.len() <= width { vec![more] } else { wrapped(&more, width) };
        for line in &lines {
            put(line);
        }
    }
    let mut say = |text: String| {
        let lines = if text.is_empty() { Vec::new() } else { wrapped(&text, width) };
        let most = if all { lines.len() } else { LINES };
        for (i, line) in lines.iter().take(most).enumerate() {
            let is_cut = i + 1 == most && lines.len() > most;
            let whole = |line: &str| wrapped(line, width.saturating_sub(3)).swap_remove(0);
            put(&if is_cut { format!("{} ..", whole(line)) } else { line.clone() });
        }
    };
    let advice = c.advice.clone().unwrap_or_default();
    for text in
        [figure::counts(c), figure::resolution(c), figure::own_calibration(c), not_comparable(c), advice]
    {
        say(text);
    }
    for (label, keys) in [(&c.a.label, &c.only_a), (&c.b.label, &c.only_b)] {
        match keys.len() {
            0 => {}
            n if !all && n > LINES => say(format!("{n} metrics only in {label}")),
            _ => say(format!("only in {label}: {}", keys.join(", "))),
        }
    }
    for (heading, lines) in [("environment differs", &c.environment), ("note", &c.notes)] {
        if !lines.is_empty() {
            say(format!("{heading}: {}", lines.join("; ")));
        }
    }
    out
}

/// Rows in the order of the output: changes by their evidence, then the rows of the page, then, with `all`, the rest.
pub(super) fn shown(c: &Comparison, all: bool, most: usize) -> Vec<&Row> {
    let mut changed: Vec<&Row> = c.rows.iter().filter(|r| r.verdict.is_change()).collect();
    changed.sort_by(|x, y| x.p.unwrap_or(1.0).total_cmp(&y.p.unwrap_or(1.0)));
    let others =
        |page: bool| c.rows.iter().filter(move |r| !r.verdict.is_change() && (r.family == "page") == page);
    let probe = |r: &&Row| all || r.spread.is_some();
    // Rows that match a pattern are no family of the page.
    let has_page = others(true).next().is_some();
    let few = c.rows.len() <= ROWS || !has_page;
    let rest = others(false).filter(|_| all || few);
    let rows = changed.into_iter().chain(others(true).filter(probe)).chain(rest);
    rows.take(if all { usize::MAX } else { most }).collect()
}

/// Metric and the values of its parameters, the subject first: `ops.cost getppid libc latency`, `noise.source_fraction sshd 1 thread`.
pub(super) fn name(row: &Row) -> String {
    // A value may have spaces: it goes on up to the next name.
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for word in row.params.split(' ').filter(|w| !w.is_empty()) {
        match (word.split_once('='), pairs.last_mut()) {
            (Some((name, value)), _) => pairs.push((name, value.to_owned())),
            (None, Some((_, value))) => *value += &format!(" {word}"),
            (None, None) => pairs.push(("", word.to_owned())),
        }
    }
    let (first, rest): (Vec<_>, Vec<_>) =
        pairs.into_iter().partition(|p| ["operation", "source"].contains(&p.0));
    let words = first.into_iter().chain(rest).map(|p| p.1);
    std::iter::once(row.id.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

/// A row in one line of aligned columns, or in several if its parts do not fit side by side.
fn lines(row: &Row, width: usize) -> Vec<String> {
    let name = ascii(&name(row));
    let word = if let Verdict::NotComparable { .. } = row.verdict { "-" } else { figure::word(&row.verdict) };
    let ([a, b], change) = ([&row.a, &row.b].map(|s| figure::value(s, row)), figure::change_and_range(row));
    let name_width = width.saturating_sub(WORD + 2 * (SIDE + 1) + CHANGE + 2);
    let line = format!("{word:WORD$} {name:<name_width$} {a:>SIDE$} {b:>SIDE$} {change}");
    if line.trim_end().len() <= width {
        return vec![line];
    }
    let (first, room) = (format!("{word:WORD$} {name}"), width.saturating_sub(INDENT));
    let figures = format!("{a:>SIDE$} {b:>SIDE$} {change}");
    let (mut out, rest) = if first.len() <= width {
        (vec![first], vec![figures.trim_end().to_owned()])
    } else {
        (vec![word.to_owned()], vec![name, figures.trim().to_owned()])
    };
    let whole = |text: String| if text.len() <= room { vec![text] } else { wrapped(&text, room) };
    out.extend(rest.into_iter().flat_map(whole).map(|line| format!("{:INDENT$}{line}", "")));
    out
}

/// Reasons why rows are not comparable, the most frequent first.
pub(super) fn not_comparable(c: &Comparison) -> String {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for row in &c.rows {
        if let Verdict::NotComparable { why } = &row.verdict {
            *reasons.entry(why).or_default() += 1;
        }
    }
    let mut reasons: Vec<(&str, usize)> = reasons.into_iter().collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let words: Vec<String> = reasons.iter().map(|(why, n)| format!("{why} ({n})")).collect();
    if words.is_empty() { String::new() } else { format!("not comparable: {}", words.join("; ")) }
}

/// Text with `?` for every character other than printable ASCII.
fn ascii(text: &str) -> String {
    text.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect()
}

/// `text` broken at spaces into lines of at most `width`; a longer word has its own line.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in ascii(text).split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    if lines.is_empty() { vec![String::new()] } else { lines }
}
