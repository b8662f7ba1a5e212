//! The table for a terminal or a mail: ASCII, within the width asked for.

use crate::comparison::{Comparison, Row, Side, Verdict};
use crate::evidence::direction;
use crate::view::figure;

/// Narrowest table that is laid out; narrower requests get this.
const MIN_WIDTH: usize = 72;
/// Width of one side: value, `+-`, interval.
const SIDE: usize = 15;
/// Width of the change with stars and the verdict or what could have been seen.
const CHANGE: usize = 22;

/// The comparison as a table of at most `width` columns (72 at least), ending in a newline.
///
/// `~` means that nothing was found, followed by the smallest change that would have been; stars count the adjusted
/// probability below 5, 1 and 0.1 %.
pub fn text(c: &Comparison, width: usize) -> String {
    let width = width.max(MIN_WIDTH);
    let name_width = width - 2 * (SIDE + 2) - CHANGE - 3;
    let mut out = String::new();
    let head = |s: &str| fit(s, SIDE);
    push(&mut out, &format!(" {:name_width$}| {}| {}|", "", head(&c.a.label), head(&c.b.label)));
    let mut group = "";
    for row in &c.rows {
        let short = row.params.is_empty() && row.id.len() < name_width;
        if !short && group != row.id {
            let unit = row.unit.ucum();
            push(&mut out, &fit(&format!(" {} ({unit}, {})", row.id, direction(row.better)), width));
        }
        group = &row.id;
        let name = if short { row.id.clone() } else { format!(" {}", row.params) };
        let name = fit(&name, name_width);
        push(&mut out, &format!(" {name}| {}| {}| {}", side(&row.a, row), side(&row.b, row), outcome(row)));
    }
    let mut say = |line: &str, indent: &str| out.push_str(&wrapped(line, width, indent));
    say(&figure::counts(c), " ");
    say(&resolution(c), " ");
    for row in c.rows.iter().filter(|r| explained(r)) {
        say(&format!("{}: {}", row.key, row.why()), "   ");
    }
    for (label, keys) in [(&c.a.label, &c.only_a), (&c.b.label, &c.only_b)] {
        if !keys.is_empty() {
            say(&format!("only in {label}: {}", keys.join(", ")), " ");
        }
    }
    if !c.environment.is_empty() {
        say(&format!("environment differs: {}", c.environment.join("; ")), " ");
    }
    for note in &c.notes {
        say(&format!("note: {note}"), " ");
    }
    out
}

/// Rows that need a sentence: findings with doubts, and everything unclear.
fn explained(row: &Row) -> bool {
    matches!(row.verdict, Verdict::Inconclusive { .. })
        || (row.verdict.is_change() && !row.reasons.is_empty())
}

fn side(side: &Side, row: &Row) -> String {
    let half = figure::half_interval(side);
    let half = if half.is_empty() { half } else { format!("+-{half:>4}") };
    fit(&format!("{:<9}{half}", figure::value(side, row)), SIDE)
}

fn outcome(row: &Row) -> String {
    let text = match &row.verdict {
        Verdict::Same => match row.detectable {
            Some(d) => format!("{:^8}(>= {})", "~", figure::size(row, d)),
            None => format!("{:^8}", "~"),
        },
        Verdict::Inconclusive { .. } => format!("{:^8}unclear", "?"),
        found => format!("{:>8} {:<3} {}", figure::change(row), figure::stars(row), figure::word(found)),
    };
    text.trim_end().to_owned()
}

/// What the comparison could see at all.
fn resolution(c: &Comparison) -> String {
    let relative = c.rows.iter().filter(|r| r.scale == crate::ChangeScale::Relative);
    let mut seen: Vec<f64> = relative.filter_map(|r| r.detectable).collect();
    seen.sort_by(f64::total_cmp);
    match (seen.first(), machmeter_stats::quantile::median(&seen), seen.last()) {
        (Some(best), Some(typical), Some(worst)) => format!(
            "~ nothing found; (>= x) would have been, 9 times in 10. Best {}, typical {}, worst {}.",
            short(*best),
            short(typical),
            short(*worst)
        ),
        _ => "No metric tells what could have been seen.".to_owned(),
    }
}

fn short(change: f64) -> String {
    if change >= 2.0 {
        format!("x{}", machmeter_data::quantity::digits(1.0 + change))
    } else {
        crate::judge::percent(change)
    }
}

/// Exactly `width` ASCII columns; what is cut ends in `..`.
fn fit(s: &str, width: usize) -> String {
    let ascii: String = s.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).collect();
    if ascii.len() <= width { format!("{ascii:width$}") } else { format!("{}..", &ascii[..width - 2]) }
}

fn push(out: &mut String, line: &str) {
    out.push_str(line.trim_end());
    out.push('\n');
}

/// `line` broken at spaces into lines of at most `width`, each indented. A word longer than a line is cut.
fn wrapped(line: &str, width: usize, indent: &str) -> String {
    let room = width - indent.len();
    let mut out = String::new();
    let mut current = String::new();
    for word in line.split_whitespace() {
        let word = fit(word, word.chars().count().min(room));
        if !current.is_empty() && current.len() + 1 + word.len() > room {
            push(&mut out, &format!("{indent}{current}"));
            current.clear();
        }
        if !current.is_empty() {
            current.push(' ');
        }
        current.push_str(&word);
    }
    push(&mut out, &format!("{indent}{current}"));
    out
}
