//! A matrix as an aligned table of figures; in several parts where the terminal is too narrow for all columns.

use machmeter_data::Unit;
use machmeter_data::shape::Matrix;

use super::columns::parts;
use super::{TerminalStyle, printable};
use crate::chart::Levels;
use crate::label;

const GAP: usize = 2;

/// The table with one leading space per line.
pub(super) fn table(m: &Matrix, style: &TerminalStyle) -> String {
    // Where all cells are shares the sign stands once, in the corner.
    let shares = m.cell.unit == Unit::One;
    let levels = Levels::of(m);
    let text = |v: &Option<f64>| match v {
        Some(v) if shares => label::cell(*v, Unit::One).trim_end_matches(" %").replace("> ", ">"),
        Some(v) => label::cell(*v, m.cell.unit),
        None => "-".to_owned(),
    };
    let names: Vec<String> = m.rows.iter().map(|n| printable(n)).collect();
    let heads: Vec<String> = label::columns(m).iter().map(|n| printable(n)).collect();
    let corner = if shares { "%".to_owned() } else { printable(&m.x.label) };
    let first = names.iter().chain([&corner]).map(|n| n.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = heads
        .iter()
        .enumerate()
        .map(|(c, head)| {
            let cells = m.values.iter().filter_map(|r| r.get(c)).map(|v| text(v).chars().count());
            cells.chain([head.chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for part in parts(&widths, style.width.saturating_sub(first + 1), GAP) {
        let mut line = format!(" {corner:<first$}");
        for c in part.clone() {
            line.push_str(&format!("{:>width$}", heads[c], width = widths[c] + GAP));
        }
        out.push_str(&style.paint("2", &line));
        out.push('\n');
        for (name, row) in names.iter().zip(&m.values) {
            out.push_str(&format!(" {name:<first$}"));
            for c in part.clone() {
                let v = row.get(c).copied().flatten();
                let cell = format!("{:>width$}", text(&v), width = widths[c] + GAP);
                out.push_str(&v.map_or(cell.clone(), |v| colored(style, &levels, v, &cell)));
            }
            out.push('\n');
        }
    }
    out
}

/// Shares by what is missing: green, plain, yellow, red. Other values keep the plain color, since which way is good is not
/// known here.
fn colored(style: &TerminalStyle, levels: &Levels, value: f64, text: &str) -> String {
    match (levels, levels.level(value)) {
        (Levels::Nines, 0..=1) => style.paint("32", text),
        (Levels::Nines, 4..=5) => style.paint("33", text),
        (Levels::Nines, 6..) => style.paint("31", text),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_data::shape::Axis;

    fn met() -> Matrix {
        let names = ["none", "burn", "compile"].map(str::to_owned).to_vec();
        let values = vec![vec![Some(1.0), Some(0.987), Some(0.3)], vec![Some(0.999_999), None, Some(0.0)]];
        let rows = vec!["audio".to_owned(), "video".to_owned()];
        Matrix::named("load", names, rows, Axis::linear("deadlines met", Unit::One), values)
    }

    #[test]
    fn figures_stand_under_their_names() {
        let wide = TerminalStyle::default();
        let expected =
            " %        none  burn  compile\n audio     100  98.7       30\n video  >99.99     -        0\n";
        assert_eq!(table(&met(), &wide), expected);
        let painted = table(&met(), &TerminalStyle { color: true, ..wide });
        assert!(
            painted.contains("\u{1b}[31m       30\u{1b}[0m") && painted.contains("\u{1b}[32m     100"),
            "{painted:?}"
        );
    }

    #[test]
    fn narrow_terminals_get_parts_that_fit() {
        let narrow = TerminalStyle { width: 24, ..TerminalStyle::default() };
        let text = table(&met(), &narrow);
        assert!(text.lines().all(|l| l.chars().count() <= 24), "{text}");
        assert_eq!(text.matches("audio").count(), 2);
    }
}
