//! The comparison as a Markdown table.

use crate::comparison::{Comparison, Row, Verdict};
use crate::view::figure;

/// The comparison as a GitHub-flavored table with the closing lines of [`text`](crate::text) as paragraphs.
pub fn markdown(c: &Comparison) -> String {
    let mut out = format!("| metric | {} | {} | change | verdict |\n", cell(&c.a.label), cell(&c.b.label));
    out.push_str("| --- | ---: | ---: | ---: | --- |\n");
    for row in &c.rows {
        let cells = [code(&row.key), side(&row.a, row), side(&row.b, row), change(row), verdict(row)];
        out += &format!("| {} |\n", cells.join(" | "));
    }
    out += &format!("\n{}\n", figure::counts(c));
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

fn side(side: &crate::Side, row: &Row) -> String {
    let half = figure::half_interval(side);
    let value = figure::value(side, row);
    if half.is_empty() { value } else { format!("{value} ± {}", half.replace('<', "&lt;")) }
}

fn change(row: &Row) -> String {
    if row.verdict.is_change() {
        format!("{} {}", figure::change(row), figure::stars(row).replace('*', "\\*"))
    } else {
        "~".to_owned()
    }
}

fn verdict(row: &Row) -> String {
    match &row.verdict {
        Verdict::Same => match row.detectable {
            Some(d) => format!("same (could see ≥ {})", figure::size(row, d)),
            None => "same".to_owned(),
        },
        Verdict::Inconclusive { why } => format!("unclear: {}", cell(why)),
        Verdict::Worse => "**WORSE**".to_owned(),
        other => figure::word(other).to_owned(),
    }
}

/// Text that cannot break out of a table cell or start markup.
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
