//! The table for a terminal or a mail: ASCII, within the width asked for.

use std::collections::BTreeMap;

use crate::comparison::{Comparison, Row, Verdict};
use crate::view::figure;

/// Narrowest table that is laid out; narrower requests get this.
const MIN_WIDTH: usize = 72;
/// Columns of the verdict, of a side, of the change with its interval.
const WORD: usize = 9;
const SIDE: usize = 11;
const CHANGE: usize = 28;
/// Rows without `all`: those that changed, then those of the page.
const ROWS: usize = 14;
/// Lines of a paragraph without `all`.
const LINES: usize = 3;

/// The comparison as lines of at most `width` columns (72 at least), ending in a newline: what changed by its evidence, rows of the
/// page, counts, what could have been seen. At most 30 lines; with `all`, every row and every remark.
pub fn text(c: &Comparison, width: usize, all: bool) -> String {
    let width = width.max(MIN_WIDTH);
    let mut out = String::new();
    let mut put = |line: &str| {
        out.push_str(line.trim_end());
        out.push('\n');
    };
    for g in [&c.a, &c.b] {
        put(&fit(&figure::group(g), width));
    }
    let rows = shown(c, all);
    let name_width = width - WORD - 2 * (SIDE + 1) - CHANGE - 2;
    for row in &rows {
        put(&fit(&line(row, name_width), width));
        if let Some(why) = row.verdict.why().filter(|_| all) {
            put(&fit(&format!("{:WORD$} {why}", ""), width));
        }
    }
    let changed = c.rows.iter().filter(|r| r.verdict.is_change()).count();
    let listed = rows.iter().filter(|r| r.verdict.is_change()).count();
    if changed > listed {
        put(&format!("{:WORD$} and {} more that changed: -v", "", changed - listed));
    }
    let mut say = |text: String| {
        let lines = wrapped(&text, width);
        let most = if all { lines.len() } else { LINES };
        for (i, line) in lines.iter().take(most).enumerate() {
            let is_cut = i + 1 == most && lines.len() > most;
            put(&if is_cut { fit(&format!("{line} .."), width) } else { line.clone() });
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

/// Rows in the order in which they are told: changes by their evidence, then the page's, then, where all are asked for, the others.
pub(super) fn shown(c: &Comparison, all: bool) -> Vec<&Row> {
    let mut changed: Vec<&Row> = c.rows.iter().filter(|r| r.verdict.is_change()).collect();
    changed.sort_by(|x, y| x.p.unwrap_or(1.0).total_cmp(&y.p.unwrap_or(1.0)));
    let others =
        |page: bool| c.rows.iter().filter(move |r| !r.verdict.is_change() && (r.family == "page") == page);
    let probe = |r: &&Row| all || r.spread.is_some();
    let few = c.rows.len() <= ROWS;
    let rest = others(false).filter(|_| all || few);
    let rows = changed.into_iter().chain(others(true).filter(probe)).chain(rest);
    rows.take(if all { usize::MAX } else { ROWS }).collect()
}

/// Metric and the values of its parameters, what it is of first: `ops.cost getppid libc latency`, `noise.source_fraction sshd 1 thread`.
pub(super) fn name(row: &Row) -> String {
    let of = |word: &&str| ["operation=", "source="].iter().any(|of| word.starts_with(of));
    let (first, rest): (Vec<&str>, Vec<&str>) = row.params.split(' ').filter(|w| !w.is_empty()).partition(of);
    let value = |word: &str| word.split_once('=').map_or(word, |(_, v)| v).to_owned();
    let words = first.into_iter().chain(rest).map(value);
    std::iter::once(row.id.clone()).chain(words).collect::<Vec<_>>().join(" ")
}

fn line(row: &Row, name_width: usize) -> String {
    let name = fit(&name(row), name_width);
    let word = if let Verdict::NotComparable { .. } = row.verdict { "-" } else { figure::word(&row.verdict) };
    let ([a, b], change) = ([&row.a, &row.b].map(|s| figure::value(s, row)), figure::change_and_range(row));
    format!("{word:WORD$} {name} {a:>SIDE$} {b:>SIDE$} {change}")
}

/// Why rows are not comparable, the commonest reason first.
fn not_comparable(c: &Comparison) -> String {
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

/// Exactly `width` ASCII columns; what is cut ends in `..`.
fn fit(s: &str, width: usize) -> String {
    let ascii: String = s.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    if ascii.len() <= width { format!("{ascii:width$}") } else { format!("{}..", &ascii[..width - 2]) }
}

/// `text` broken at spaces into lines of at most `width`; a word longer than a line is cut.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = fit(word, word.chars().count().min(width));
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word),
        }
    }
    lines
}
