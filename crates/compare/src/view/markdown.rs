//! Writes a comparison as a Markdown table.

use crate::comparison::{Comparison, Row};
use crate::view::figure;

/// A comparison as a GitHub-flavored table of every row, with the closing lines of [`text`](crate::text) as paragraphs.
pub fn markdown(c: &Comparison) -> String {
    let mut out = format!("| metric | {} | {} | change | verdict |\n", cell(&c.a.label), cell(&c.b.label));
    out.push_str("| --- | ---: | ---: | ---: | --- |\n");
    for row in &c.rows {
        let [a, b] = [&row.a, &row.b].map(|side| figure::value(side, row));
        let cells = [code(&row.key), a, b, figure::change_and_range(row), verdict(row)];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    let advice = c.advice.clone().unwrap_or_default();
    for text in [figure::counts(c), figure::resolution(c), figure::own_calibration(c), advice] {
        if !text.is_empty() {
            out += &format!("\n{}\n", cell(&text));
        }
    }
    for (label, keys) in [(&c.a.label, &c.only_a), (&c.b.label, &c.only_b)] {
        if !keys.is_empty() {
            let list: Vec<String> = keys.iter().map(|k| code(k)).collect();
            out += &format!("\nOnly in {}: {}\n", cell(label), list.join(", "));
        }
    }
    for (heading, lines) in [("\nEnvironment differs:\n\n", &c.environment), ("\n", &c.notes)] {
        if !lines.is_empty() {
            out.push_str(heading);
            for line in lines {
                out += &format!("- {}\n", cell(line));
            }
        }
    }
    out
}

fn verdict(row: &Row) -> String {
    let word = figure::word(&row.verdict);
    match row.verdict.why() {
        Some(why) => format!("{word}: {}", cell(why)),
        None if row.verdict.is_change() => format!("**{word}**"),
        None => word.to_owned(),
    }
}

/// Escapes text, so that it cannot end a table cell or start markup.
fn cell(s: &str) -> String {
    let of = |c| match c {
        '\n' | '\r' => " ".to_owned(),
        '<' => "&lt;".to_owned(),
        '|' | '*' | '_' | '`' | '[' | '\\' => format!("\\{c}"),
        _ => c.to_string(),
    };
    s.chars().map(of).collect()
}

fn code(s: &str) -> String {
    format!("`{}`", s.replace('`', "'").replace('|', "\\|").replace(['\n', '\r'], " "))
}
